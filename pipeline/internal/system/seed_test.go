// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
)

// onePull is a Git host with the API of Gitea, as far as one pull request needs it. What is sent to it is kept.
type onePull struct {
	mu   sync.Mutex
	sent seen
	pull map[string]any
}

// ServeHTTP implements http.Handler.
func (o *onePull) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	_, _ = o.sent.Write(append(body, '\n'))
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	branch := func(name string) map[string]any {
		return map[string]any{"label": in[name], "ref": in[name], "repo_id": 1}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Total-Count", "1")
	switch {
	case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pulls"):
		o.pull = map[string]any{"number": 1, "state": "open", "title": in["title"], "body": in["body"], "head": branch("head"), "base": branch("base")}
		w.WriteHeader(http.StatusCreated)
	case r.Method == http.MethodPatch && o.pull != nil:
		for _, key := range []string{"title", "body", "state"} {
			if in[key] != nil {
				o.pull[key] = in[key]
			}
		}
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pulls"):
		list := []any{}
		if o.pull != nil && r.URL.Query().Get("state") == o.pull["state"] {
			list = append(list, o.pull)
		}
		_ = json.NewEncoder(w).Encode(list)
		return
	case o.pull == nil:
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(o.pull)
}

// addForms adds what a secret may look like: as it is, in hex, escaped, and in base64 wherever it stands in what is encoded.
func (l *leaky) addForms(name, value string) {
	l.canaries[name] = value
	l.canaries[name+" in hex"], l.canaries[name+" in capital hex"] = hex.EncodeToString([]byte(value)), fmt.Sprintf("%X", value)
	l.canaries[name+" in a query"], l.canaries[name+" in a path"] = url.QueryEscape(value), url.PathEscape(value)
	l.canaries[name+" as bytes"] = strings.Trim(fmt.Sprint([]byte(value)), "[]")
	for before := range 3 {
		for kind, encoding := range map[string]*base64.Encoding{"base64": base64.StdEncoding, "base64 of URLs": base64.URLEncoding} {
			text := encoding.EncodeToString([]byte("..."[:before] + value))
			l.canaries[fmt.Sprintf("%s in %s, %d", name, kind, before)] = text[4 : len(text)-4] // the ends depend on what is around it
		}
	}
}

// watchRenderers keeps what renderers are told by their arguments and environments, until the function that it returns is called.
func watchRenderers(to *seen) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			for _, dir := range renderers() {
				for _, file := range []string{"environ", "cmdline"} {
					text, _ := os.ReadFile(filepath.Join(dir, file))
					fmt.Fprintf(to, "%s %s\n", file, strings.ReplaceAll(string(text), "\x00", " "))
				}
			}
			select {
			case <-done:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return sync.OnceFunc(func() { close(done); <-ended })
}

// TestASeedIsNotShown publishes an encrypted Secret, and looks for the seed of the encryption in everything that leaves the daemon. What the
// gate finds is shown with its place.
func TestASeedIsNotShown(t *testing.T) {
	l := &leaky{fixture: prepare(t, nil), canaries: map[string]string{}}
	const seed = "c4nary seed/1b6+%~?0123456789abcdef&é"
	l.addForms("seed", seed)
	l.write(filepath.Join(l.c.Secrets, "team/shop/seed"), seed)
	l.write(filepath.Join(l.c.Secrets, "team/gitea/token"), "any")
	host := &onePull{}
	gitea := httptest.NewServer(host)
	t.Cleanup(gitea.Close)
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l.c.Tracing = config.Tracing{Endpoint: recording(t, &l.told, false, http.NotFoundHandler()), Ratio: 1}
	l.write(filepath.Join(l.c.Secrets, "team/gitea/.hosts"), gitea.URL)
	add := func(name string, replace ...string) {
		l.write(filepath.Join(l.c.Pipelines, name+".yaml"), strings.NewReplacer(replace...).Replace(pipelineYAML(name, l.repository.URL)))
	}
	add("web", "build: {path: apps/web}", "build: {helm: {chart: apps/web, namespace: shop, kubeVersion: 1.33.4}}", "publish: [{git: {branch: rendered}}]",
		"gates: {schemas: {rules: {schema-unknown-field: Warning}}}\n  publish: [{git: {branch: reviewed, pullRequest: {provider: Gitea, url: \""+gitea.URL+"/api/v1\", secretRef: {name: gitea}}}, "+
			"secrets: Encrypt, encryption: {age: ["+identity.Recipient().String()+"], secretRef: {name: shop}}}]")
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {password: any}\n"
	wrong := func(image string) string {
		return strings.Replace(deployment("web", image), "spec:\n", "spec:\n  replica: 1\n", 1)
	}
	l.repository.Commit("first", map[string]string{
		"apps/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "apps/web/templates/s.yaml": secret, "apps/web/templates/d.yaml": wrong("web:1"),
	})
	var told seen
	stopWatching := watchRenderers(&told)
	t.Cleanup(stopWatching)
	l.startWith(daemon.Options{Log: slog.New(slog.NewTextHandler(&l.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	l.eventually("waiting for the first pull request", func() string { return missing(host.sent.String(), "web:1") })
	l.push(l.repository.Commit("second", map[string]string{"apps/web/templates/d.yaml": wrong("web:2")}))
	const place = "reviewed:web/shop/deployment-web.yaml:"
	l.eventually("waiting for the pull request", func() string {
		if text := host.sent.String(); !strings.Contains(text, "web:2") || !strings.Contains(text, "schema-unknown-field") || !strings.Contains(text, place) {
			return "it says " + text
		}
		return ""
	})
	l.eventually("waiting for the finding", func() string {
		api, page := "", ""
		for path, text := range l.outputs() {
			if strings.HasPrefix(path, "/runs") {
				page += text
			} else if strings.HasPrefix(path, "/api/v1/diff") && strings.Contains(text, place) {
				api = text
			}
		}
		for _, p := range l.pipelines("team/web") {
			for _, run := range p.Runs {
				api += strings.Join(run.Findings, "\n")
			}
		}
		if !strings.Contains(api, place) || !strings.Contains(page, place) {
			return "the status has " + api
		}
		return ""
	})
	stopWatching()
	outputs := l.outputs()
	l.stop()
	outputs["logs"], outputs["traces"], outputs["pull requests"], outputs["renderers"] = l.logs.String(), l.told.String(), host.sent.String(), told.String()
	l.stored(outputs)
	for where, text := range outputs {
		if text == "" {
			t.Errorf("nothing came out at %s", where)
		}
		for name, value := range l.canaries {
			if strings.Contains(text, value) && !strings.Contains(where, l.c.TokenFile()) {
				t.Errorf("%s is in %s", name, where)
			}
		}
	}
	if !strings.Contains(outputs["renderers"], "cmdline ") || !strings.Contains(outputs["/metrics"], "prerig_") {
		t.Error("no renderer or no metric was seen")
	}
}
