// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"io"
	"io/fs"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"golang.org/x/crypto/ssh"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/server"
)

// canaries are credentials by where they are kept; none may turn up anywhere else.
var canaries = map[string]string{
	"environment": "c4nary-environment-7f1", "git": "c4nary-git-5b2", "wrong": "c4nary-wrong-9d3", "bearer": "c4nary-bearer-1e4",
	"registry": "c4nary-registry-3a5", "url": "c4nary-url-8c6", "token": "c4nary-token-2d7", "hook": "c4nary-hook-6e8",
	"trace": "c4nary-trace-4f9", "file": "c4nary-file-0a1",
}

// seen collects what a server was sent.
type seen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (s *seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// recording serves next and collects the bodies of requests, and the headers too where nobody should send a credential.
func recording(t *testing.T, s *seen, headers bool, next http.Handler) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		_, _ = s.Write(body)
		if headers {
			fmt.Fprintln(s, r.Method, r.URL, r.Header)
			if user, password, ok := r.BasicAuth(); ok {
				fmt.Fprintln(s, user, password)
			}
		}
		next.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// leaky is a daemon with credentials in all places, and everything that it says.
type leaky struct {
	*fixture
	logs, told, elsewhere, pushed seen
	canaries                      map[string]string
}

func newLeaky(t *testing.T) *leaky {
	l := &leaky{fixture: prepareAlone(t, nil), canaries: map[string]string{}}
	for name, value := range canaries {
		l.canaries[name] = value
		// Cut where the encoding does not depend on what follows.
		l.canaries[name+" in base64"] = base64.StdEncoding.EncodeToString([]byte(value))[:16]
		l.canaries[name+" as basic credentials"] = base64.StdEncoding.EncodeToString([]byte("robot:" + value))[:24]
	}
	t.Setenv("PRERIG_CANARY", canaries["environment"])
	l.git.Username, l.git.Password = "robot", canaries["git"]
	secret := func(name, key, value string) { l.write(filepath.Join(l.c.Secrets, "team", name, key), value) }
	secret("git", "username", "robot")
	secret("git", "password", canaries["git"])
	secret("wrong", "username", "robot")
	secret("wrong", "password", canaries["wrong"])
	secret("bearer", "bearerToken", canaries["bearer"])
	secret("told", "token", canaries["token"])
	secret("registry", "username", "robot")
	secret("registry", "password", canaries["registry"])
	l.addKey(secret)
	l.write(filepath.Join(l.c.Policies, "secret.txt"), canaries["file"])
	hook, trace := filepath.Join(l.c.Secrets, "hook.key"), filepath.Join(l.c.Secrets, "trace.txt")
	l.write(hook, canaries["hook"])
	l.write(trace, "Authorization: Bearer "+canaries["trace"]+"\n")
	l.c.Receivers = append(l.c.Receivers, config.Receiver{Name: "github", Provider: "github", Secret: hook})
	l.c.Tracing = config.Tracing{Endpoint: recording(t, &l.told, false, http.NotFoundHandler()), Headers: trace, Ratio: 1}
	return l
}

// addKey adds a key for ssh, whose text is a canary.
func (l *leaky) addKey(secret func(name, key, value string)) {
	l.t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		l.t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		l.t.Fatal(err)
	}
	text := pem.EncodeToMemory(block)
	host, err := ssh.NewPublicKey(public)
	if err != nil {
		l.t.Fatal(err)
	}
	l.canaries["ssh"] = string(text[200:240])
	secret("ssh", "identity", string(text))
	secret("ssh", "known_hosts", "[127.0.0.1]:1 "+string(ssh.MarshalAuthorizedKey(host)))
	secret("broken-key", "identity", "-----BEGIN OPENSSH PRIVATE KEY-----\n"+canaries["file"]+"\n-----END OPENSSH PRIVATE KEY-----\n")
	secret("broken-key", "known_hosts", "[127.0.0.1]:1 "+string(ssh.MarshalAuthorizedKey(host)))
}

// addPipelines adds one that works with everything that takes a credential, and those that fail with one in hand.
func (l *leaky) addPipelines() {
	other := recording(l.t, &l.elsewhere, true, http.NotFoundHandler())
	redirecting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// By another name it is another host.
		http.Redirect(w, r, strings.Replace(other, "127.0.0.1", "localhost", 1)+r.URL.RequestURI(), http.StatusFound)
	}))
	l.t.Cleanup(redirecting.Close)
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	host := strings.TrimPrefix(recording(l.t, &l.pushed, false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != canaries["registry"] {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		store.ServeHTTP(w, r)
	})), "http://")
	sink := recording(l.t, &l.told, false, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	hosts := strings.Join([]string{l.git.URL, redirecting.URL, other, "http://" + host}, "\n")
	for _, name := range []string{"git", "wrong", "bearer", "registry"} {
		l.write(filepath.Join(l.c.Secrets, "team", name, ".hosts"), hosts)
	}
	add := func(name string, replace ...string) {
		text := strings.Replace(pipelineYAML(name, l.repository.URL), "build: {path: apps/"+name, "build: {path: apps/web", 1)
		text = strings.Replace(text, "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: git}", 1)
		text = strings.Replace(text, "branch: rendered}", "branch: rendered, path: "+name+", secretRef: {name: git}}", 1)
		l.write(filepath.Join(l.c.Pipelines, name+".yaml"), strings.NewReplacer(replace...).Replace(text))
	}
	registryTo := func(secret string) string {
		return "publish: [{oci: {url: \"oci://" + host + "/" + secret + "\", insecure: true, secretRef: {name: " + secret + "}}}, {git: {branch: rendered, path: "
	}
	const to = "publish: [{git: {branch: rendered, path: "
	add("good", to, registryTo("registry"), "policies:",
		"notify: [{cloudEvent: {url: \""+sink+"\", secretRef: {name: told}}}, {fluxReceiver: {url: \""+sink+"\", secretRef: {name: told}}}]\n  policies:")
	add("refused-by-registry", to, registryTo("wrong"))
	add("refused-by-git", "ref: {branch: main}, secretRef: {name: git}", "ref: {branch: main}, secretRef: {name: wrong}")
	add("bearer", "secretRef: {name: git}", "secretRef: {name: bearer}")
	add("redirected", l.repository.URL, redirecting.URL+"/config.git")
	add("redirected-bearer", l.repository.URL, redirecting.URL+"/config.git", "secretRef: {name: git}", "secretRef: {name: bearer}")
	add("redirected-registry", to, strings.Replace(registryTo("registry"), host, strings.TrimPrefix(redirecting.URL, "http://"), 1))
	add("in-the-url", l.repository.URL, strings.Replace(l.repository.URL, "http://", "http://robot:"+canaries["url"]+"@", 1))
	add("ssh", l.repository.URL, "ssh://git@127.0.0.1:1/config.git", "{name: git}", "{name: ssh}")
	add("broken-key", l.repository.URL, "ssh://git@127.0.0.1:1/config.git", "{name: git}", "{name: broken-key}")
	add("no-secret", "{name: git}", "{name: none}")
	add("policy-file", "policies: [{builtIn: istio}]", "policies: [{file: secret.txt}]")
	add("other-namespace", "{name: git}", "{name: \"../team/git\"}")
	for _, name := range []string{"environment", "reads-files"} {
		add(name, "apps/web", "apps/"+name)
	}
}

// TestNoCredentialGetsOut has pipelines that work and that fail with credentials in hand, and looks for these in
// everything that leaves the daemon.
func TestNoCredentialGetsOut(t *testing.T) {
	l := newLeaky(t)
	l.addPipelines()
	up := strings.Repeat("../", 12)
	l.repository.Commit("first", map[string]string{
		"apps/web/app.yaml": deployment("web", "image:1"),
		// A name without a value in such a file stands for the variable of the process.
		"apps/environment/kustomization.yaml": "configMapGenerator:\n- {name: x, namespace: shop, envs: [x.env]}\ngeneratorOptions: {disableNameSuffixHash: true}\n",
		"apps/environment/x.env":              "PRERIG_CANARY\nPATH\nOTHER=value\n",
		"apps/reads-files/kustomization.yaml": "secretGenerator:\n- {name: x, files: [\"" + up + l.c.Secrets + "/team/git/password\"]}\n",
	})
	l.startWith(daemon.Options{Log: slog.New(slog.NewJSONHandler(&l.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	want := map[string]string{
		"good": "Ready ", "environment": "Ready ", "refused-by-registry": "Failing ", "refused-by-git": "the server asks for credentials|refuses", "bearer": "credentials",
		"redirected": "Failing ", "redirected-bearer": "Failing ", "redirected-registry": "Failing ", "in-the-url": "Invalid ", "ssh": "Failing ",
		"broken-key": "private key", "no-secret": "there is no secret", "policy-file": "expected a mapping", "other-namespace": "", "reads-files": "Stalled ",
	}
	l.eventually("waiting for the states", func() string {
		found := map[string]string{}
		for _, p := range l.pipelines() {
			name := strings.TrimSuffix(filepath.Base(p.File), ".yaml")
			found[name] = p.State + " " + p.Message
			if p.State == server.StateNew {
				return name + " is new"
			}
		}
		for name, text := range want {
			one, ok := found[name]
			first, second, _ := strings.Cut(text, "|")
			if !ok || !strings.Contains(one, first) && (second == "" || !strings.Contains(one, second)) {
				return name + " is " + one
			}
		}
		return ""
	})
	config := l.rendered("environment/shop/configmap-x.yaml")
	if !strings.Contains(config, "OTHER: value") || strings.Contains(config, "/bin") {
		t.Errorf("the generator read the environment:\n%s", config)
	}
	l.push(l.repository.Commit("second", map[string]string{"apps/web/app.yaml": deployment("web", "image:2")}))
	l.shows("good/shop/deployment-web.yaml", "image:2")
	l.eventually("waiting for the notifications", func() string {
		if strings.Count(l.told.String(), "Published") < 2 {
			return "none"
		}
		return ""
	})
	l.processes()
	outputs := l.outputs()
	l.stop()
	outputs["logs"], outputs["notifications and traces"], outputs["another host"], outputs["registry"] = l.logs.String(), l.told.String(), l.elsewhere.String(), l.pushed.String()
	l.stored(outputs)
	for where, text := range outputs {
		if len(text) == 0 && where != "another host" {
			t.Errorf("nothing came out at %s", where)
		}
		for name, value := range l.canaries {
			if i := strings.Index(text, value); i >= 0 {
				t.Errorf("the credential %s is in %s: …%s…", name, where, text[max(0, i-200):min(len(text), i+100)])
			}
		}
	}
	if !strings.Contains(outputs["another host"], "GET ") {
		t.Error("nobody was redirected to the other host: that it was told no credential proves nothing")
	}
}

// processes looks at the renderers that wait for work, which are all alike.
func (l *leaky) processes() {
	l.t.Helper()
	l.eventually("waiting for renderers", func() string {
		if len(renderers()) == 0 {
			return "none"
		}
		return ""
	})
	time.Sleep(200 * time.Millisecond) // they have enclosed themselves
	for _, dir := range renderers() {
		// How often to collect garbage is all that a renderer is told by its environment.
		for _, file := range []string{"environ", "cmdline"} {
			text, _ := os.ReadFile(filepath.Join(dir, file))
			env := strings.Trim(string(text), "\x00")
			if file == "environ" && env != "" && env != "GOGC=400" || strings.Contains(string(text), "c4nary") {
				l.t.Errorf("a renderer has %s %q", file, text)
			}
		}
		files, _ := os.ReadDir(dir + "/fd")
		for _, file := range files {
			target, err := os.Readlink(filepath.Join(dir, "fd", file.Name()))
			if err == nil && !strings.HasPrefix(target, "pipe:") && !strings.HasPrefix(target, "anon_inode:") && !strings.HasPrefix(target, "/sys/fs/cgroup") {
				l.t.Errorf("a renderer has the file %s open", target)
			}
		}
	}
}

// outputs are pages, API and metrics.
func (l *leaky) outputs() map[string]string {
	l.t.Helper()
	out := map[string]string{}
	paths := []string{"/", "/metrics", "/api/v1/pipelines", "/api/v1/catalog"}
	for _, p := range l.pipelines() {
		paths = append(paths, "/pipeline?name="+p.Name, "/pipeline?pipeline="+p.Name)
		for _, one := range l.pipelines(p.Name) { // the list leaves out the runs
			for _, run := range one.Runs {
				paths = append(paths, "/runs?pipeline="+p.Name+"&run="+run.ID, "/api/v1/diff?pipeline="+p.Name+"&run="+run.ID)
			}
		}
	}
	for _, path := range paths {
		resp, err := http.Get("http://" + l.page + path)
		if err != nil {
			l.t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			l.t.Fatal(err)
		}
		out[path] = string(text)
	}
	return out
}

// stored adds what is in Git, and in the daemon's state, but for the token of the API, which is kept there.
func (l *leaky) stored(out map[string]string) {
	l.t.Helper()
	out["commits"] = l.repository.Git("log", "--all", "-p", "--format=%an %ae %cn %ce %B %N")
	token, err := os.ReadFile(l.c.TokenFile())
	if err != nil {
		l.t.Fatal(err)
	}
	l.canaries["API token"] = strings.TrimSpace(string(token))
	err = filepath.WalkDir(l.c.State, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || name == l.c.TokenFile() || entry.Type()&fs.ModeSocket != 0 {
			return err
		}
		text, err := os.ReadFile(name)
		if len(text) > 0 {
			out["state "+name] = string(text)
		}
		return err
	})
	if err != nil {
		l.t.Fatal(err)
	}
}
