// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package giteatest runs Gitea itself for tests, with users, tokens and repositories. make gitea builds the program; without it, the
// tests that need it are skipped. It is not part of the product.
package giteatest

import (
	"bytes"
	"cmp"
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
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/freeport"
)

var (
	program = flag.String("gitea", "", "program of Gitea to open pull requests at; make e2e-gitea builds it")
	modules = flag.String("gitea-root", "", "directory of Gitea's module, which holds its templates")
)

// settings have everything as small as it can be.
const settings = `
RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = DIR
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = NUMBER
ROOT_URL = SHOWN/
PUBLIC_URL_DETECTION = never
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
MAX_RESPONSE_ITEMS = PAGE
[indexer]
ISSUE_INDEXER_TYPE = db
[log]
LEVEL = error
[cron]
ENABLED = false
[webhook]
ALLOWED_HOST_LIST = loopback
`

// Server is a Gitea that runs.
type Server struct {
	// T is the test that errors end.
	T testing.TB
	// URL of the server, without a slash at its end.
	URL string
	// Admin is a token of the user root, who may do everything.
	Admin string
	// Repositories holds the bare repositories, as OWNER/NAME.git.
	Repositories string

	config string
}

// Options of a server.
type Options struct {
	// URL is the server's own URL as configured, such as that of a proxy; "" means its listen address.
	URL string
	// Page is how many items lists have at once, 0 for 50, the default of Gitea.
	Page int
}

// Start runs Gitea with an empty database until the test ends. The test is skipped if the program is not available.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if *program == "" {
		t.Skip("Gitea is not there: make e2e-gitea builds it and runs this test")
	}
	dir := t.TempDir()
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(address)
	g := &Server{T: t, URL: "http://" + address, Repositories: filepath.Join(dir, "data", "gitea-repositories"), config: filepath.Join(dir, "app.ini")}
	text := strings.NewReplacer("= DIR", "= "+dir, "NUMBER", port, "= ROOT", "= "+*modules,
		"SHOWN", cmp.Or(o.URL, g.URL), "PAGE", fmt.Sprint(cmp.Or(o.Page, 50))).Replace(settings)
	if err := os.WriteFile(g.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	g.run("migrate")
	g.User("root", "--admin")
	g.Admin = g.Token("root", "all")
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
		response, err := http.Get(g.URL + "/api/v1/version")
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

func (g *Server) command(arguments ...string) *exec.Cmd {
	c := exec.Command(*program, append(arguments, "--config", g.config)...)
	c.Dir = filepath.Dir(g.config)
	c.Env = append(os.Environ(), "HOME="+c.Dir, "GITEA_WORK_DIR="+c.Dir)
	return c
}

func (g *Server) run(arguments ...string) string {
	g.T.Helper()
	out, err := g.command(arguments...).Output()
	if err != nil {
		g.T.Fatalf("gitea %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// User makes a user, whose password is of-NAME-1234.
func (g *Server) User(name string, more ...string) {
	g.T.Helper()
	g.run(append([]string{"admin", "user", "create", "--username", name, "--password", "of-" + name + "-1234", "--email", name + "@example.com", "--must-change-password=false"}, more...)...)
}

// tokenLine matches the token in Gitea's output, which may also contain log lines.
var tokenLine = regexp.MustCompile(`(?m)^[0-9a-f]{40}$`)

// Token makes a token of a user, with scopes as Gitea names them.
func (g *Server) Token(user, scopes string) string {
	g.T.Helper()
	out := g.run("admin", "user", "generate-access-token", "--username", user, "--token-name", fmt.Sprint("t", time.Now().UnixNano()), "--scopes", scopes, "--raw")
	token := tokenLine.FindString(out)
	if token == "" {
		g.T.Fatalf("making a token of %s: Gitea printed %q", user, out)
	}
	return token
}

// API calls the API as a person does, by the rights of a token.
func (g *Server) API(token, method, path string, in, out any) int {
	g.T.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		g.T.Fatal(err)
	}
	request, err := http.NewRequest(method, g.URL+"/api/v1"+path, bytes.NewReader(data))
	if err != nil {
		g.T.Fatal(err)
	}
	request.Header.Set("Authorization", "token "+token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		g.T.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		g.T.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(answer, out); err != nil {
			g.T.Fatalf("%s %s: %d %s", method, path, response.StatusCode, answer)
		}
	}
	return response.StatusCode
}

// Must is API for what has to succeed.
func (g *Server) Must(token, method, path string, in, out any) {
	g.T.Helper()
	if status := g.API(token, method, path, in, out); status >= 400 {
		g.T.Fatalf("%s %s: %d", method, path, status)
	}
}

// Write makes a commit on a branch, which is made from another where that is not "".
func (g *Server) Write(token, repository, branch, from, file string) string {
	g.T.Helper()
	in := map[string]any{"branch": branch, "content": base64.StdEncoding.EncodeToString([]byte(branch + file)), "message": "write " + file}
	if from != "" {
		in["branch"], in["new_branch"] = from, branch
	}
	var out struct {
		Commit struct {
			SHA string `json:"sha"`
		} `json:"commit"`
	}
	g.Must(token, http.MethodPost, "/repos/"+repository+"/contents/"+file, in, &out)
	return out.Commit.SHA
}
