// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/giturl"
	"github.com/prerig/prerig/pipeline/pullrequest"
)

var (
	giteaProgram = flag.String("gitea", "", "program of Gitea to open pull requests at; make e2e-gitea builds it")
	giteaRoot    = flag.String("gitea-root", "", "directory of Gitea's module, which holds its templates")
)

// giteaConfig has lists in pages of three, and everything else as small as it can be.
const giteaConfig = `
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = DIR
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = NUMBER
ROOT_URL = http://127.0.0.1:NUMBER/
STATIC_ROOT_PATH = ROOT
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = DIR/gitea.db
SQLITE_JOURNAL_MODE = WAL
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2$1000$50
[service]
DISABLE_REGISTRATION = true
[api]
MAX_RESPONSE_ITEMS = 3
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
LEVEL = error
[cron]
ENABLED = false
`

// giteaServer is a Gitea that runs.
type giteaServer struct {
	t      *testing.T
	url    string
	config string
	// admin's token does what people do.
	admin string
}

// startGitea runs Gitea with an empty database until the test ends.
func startGitea(t *testing.T) *giteaServer {
	t.Helper()
	if *giteaProgram == "" {
		t.Skip("Gitea is not there: make e2e-gitea builds it and runs this test")
	}
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	g := &giteaServer{t: t, url: "http://127.0.0.1:" + port, config: filepath.Join(dir, "app.ini")}
	text := strings.NewReplacer("= DIR", "= "+dir, "NUMBER", port, "= ROOT", "= "+*giteaRoot).Replace(giteaConfig)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("migrate")
	g.user("root", "--admin")
	g.admin = g.token("root", "all")
	server := g.command("web")
	var log bytes.Buffer
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Wait() }()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
		if t.Failed() {
			t.Logf("Gitea said:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		response, err := http.Get(g.url + "/api/v1/version")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return g
			}
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("Gitea ended: %v", err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("Gitea does not answer")
		}
	}
}

func (g *giteaServer) command(arguments ...string) *exec.Cmd {
	c := exec.Command(*giteaProgram, append(arguments, "--config", g.config)...)
	c.Dir = filepath.Dir(g.config)
	c.Env = append(os.Environ(), "HOME="+c.Dir, "GITEA_WORK_DIR="+c.Dir)
	return c
}

func (g *giteaServer) run(arguments ...string) string {
	g.t.Helper()
	out, err := g.command(arguments...).Output()
	if err != nil {
		g.t.Fatalf("gitea %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (g *giteaServer) user(name string, more ...string) {
	g.t.Helper()
	g.run(append([]string{"admin", "user", "create", "--username", name, "--password", "of-" + name + "-1234", "--email", name + "@example.com", "--must-change-password=false"}, more...)...)
}

func (g *giteaServer) token(user, scopes string) string {
	g.t.Helper()
	out := g.run("admin", "user", "generate-access-token", "--username", user, "--token-name", fmt.Sprint("t", time.Now().UnixNano()), "--scopes", scopes, "--raw")
	lines := strings.Split(out, "\n")
	return lines[len(lines)-1]
}

// api calls the API as a person does, by the rights of a token.
func (g *giteaServer) api(token, method, path string, in, out any) int {
	g.t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		g.t.Fatal(err)
	}
	request, err := http.NewRequest(method, g.url+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			g.t.Fatalf("%s %s: %d %s", method, path, response.StatusCode, answer)
		}
	}
	return response.StatusCode
}

// must is api for what has to succeed.
func (g *giteaServer) must(token, method, path string, in, out any) {
	g.t.Helper()
	if status := g.api(token, method, path, in, out); status >= 400 {
		g.t.Fatalf("%s %s: %d", method, path, status)
	}
}

// write makes a commit on a branch, which is made from another where that is not "".
func (g *giteaServer) write(token, repository, branch, from, file string) string {
	g.t.Helper()
	in := map[string]any{"branch": branch, "content": base64.StdEncoding.EncodeToString([]byte(branch + file)), "message": "write " + file}
	if from != "" {
		in["branch"], in["new_branch"] = from, branch
	}
	var out struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	g.must(token, http.MethodPost, "/repos/"+repository+"/contents/"+file, in, &out)
	return out.Commit.SHA
}

func (g *giteaServer) open(repository, token string) pullrequest.Host {
	g.t.Helper()
	return open(g.t, pullrequest.Options{
		Provider: giturl.Gitea, Repository: g.url + "/" + repository + ".git", Credentials: pullrequest.Credentials{Token: token},
	})
}
