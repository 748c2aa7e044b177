// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/server"
)

// tenants are two teams on one daemon: one that works, whose repositories are the fixture's, and a hostile one with a Git server of
// its own.
type tenants struct {
	*fixture
	each    int // pipelines of each
	version int
	evil    *gittest.Repository
	// heard is everything that the hostile team's servers were sent.
	heard seen
}

// goodPassword is what the good team's server asks for, and goodContent stands in its manifests.
const (
	goodPassword = "canary-password-of-the-good-team"
	goodContent  = "canary-content-of-the-good-team"
)

func newTenants(t *testing.T, each int) *tenants {
	t.Helper()
	f := &tenants{fixture: prepareAlone(t, nil), each: each}
	f.git.Username, f.git.Password = "good", goodPassword
	f.evil = gittest.New(t).Repository(t, "evil")
	f.c.Limits.Timeout, f.c.Limits.Memory = 20*time.Second, "512Mi"
	f.c.RequireSecretHosts = true
	f.c.Tenants = []config.Tenant{
		{Directory: "good", Namespaces: []string{"team"}, Sources: []string{f.repository.URL}, Targets: []string{f.repository.URL}},
		{Directory: "evil", Namespaces: []string{"evil"}},
	}
	f.write(filepath.Join(f.c.Secrets, "team", "git", "username"), "good")
	f.write(filepath.Join(f.c.Secrets, "team", "git", "password"), goodPassword)
	f.write(filepath.Join(f.c.Secrets, "team", "git", ".hosts"), f.git.URL)
	files := map[string]string{}
	for i := range each {
		name := goodName(i)
		files["apps/"+name+"/app.yaml"] = deployment(name, goodContent+":0")
		text := strings.Replace(pipelineYAML(name, f.repository.URL), "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: git}", 1)
		f.write(filepath.Join(f.c.Pipelines, "good", name+".yaml"), strings.Replace(text, "branch: rendered", "branch: rendered, secretRef: {name: git}", 1))
	}
	f.repository.Commit("first", files)
	return f
}

// next pushes a change of one application, and returns how long it took from the event to the rendered commit.
func (f *tenants) next() time.Duration {
	f.t.Helper()
	f.version++
	name, image := goodName(f.version%f.each), fmt.Sprintf("%s:%d", goodContent, f.version)
	commit := f.repository.Commit(image, map[string]string{"apps/" + name + "/app.yaml": deployment(name, image)})
	begin := time.Now()
	f.push(commit)
	f.shows(name+"/shop/deployment-"+name+".yaml", image+"\n")
	return time.Since(begin)
}

// rounds returns the times of some changes.
func (f *tenants) rounds(n int) (took []time.Duration) {
	f.t.Helper()
	for range n {
		took = append(took, f.next())
	}
	return took
}

// hostilePipelines returns what the hostile team writes, by name: renders that hang, spin, eat, print garbage without an end, or take just
// not long enough to be slow; servers that never answer in all places; templates without an end; and files that reach for what is the
// good team's.
func (f *tenants) hostilePipelines() map[string]string {
	f.t.Helper()
	address, slow := silent(f.t), trickling(f.t)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(&f.heard, r.Method, r.URL, r.Header)
		http.NotFound(w, r)
	}))
	f.t.Cleanup(listener.Close)
	own := func(name string, replace ...string) string {
		text := strings.Replace(pipelineYAML(name, f.evil.URL), "namespace: team", "namespace: evil", 1)
		text = strings.Replace(text, "branch: rendered", "branch: rendered, url: "+f.evil.URL, 1)
		return strings.NewReplacer(replace...).Replace(text)
	}
	source := "url: " + f.evil.URL + ", ref"
	kinds := []func(name string) string{}
	for _, how := range []string{"busy", "hang", "busy", "spin", "eat", "busy", "garbage", "flood", "errors", "busy"} {
		kinds = append(kinds, func(name string) string { return own(name, "apps/"+name, "apps/bad-"+how) })
	}
	const target = "publish: [{git: {branch: rendered, url: "
	kinds = append(kinds,
		func(name string) string { return own(name, source, "url: \"http://"+address+"/"+name+".git\", ref") },
		func(name string) string { return own(name, source, "url: \""+slow+"/"+name+".git\", ref") },
		func(name string) string {
			return own(name, "apps/"+name, "apps/web", target+f.evil.URL, target+"\"http://"+address+"/x.git\"")
		},
		func(name string) string {
			return own(name, "apps/"+name, "apps/web", "publish:", "notify: [{cloudEvent: {url: \"http://"+address+"/\"}}]\n  publish:")
		},
		func(name string) string {
			return own(name, "apps/"+name, "apps/web", "branch: rendered", "branch: "+name+", message: '{{range 100000000000}}{{end}}x'")
		},
		// What is the good team's: its repository without and with its secret, its namespace, its secret for another server, its path.
		func(name string) string { return own(name, f.evil.URL, f.repository.URL) },
		func(name string) string {
			return own(name, f.evil.URL, f.repository.URL, "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: ../team/git}")
		},
		func(name string) string {
			return own(name, "namespace: evil", "namespace: team", f.evil.URL, listener.URL+"/evil.git", "ref: {branch: main}", "ref: {branch: main}, secretRef: {name: git}")
		},
		func(name string) string {
			return own(name, "apps/"+name, "apps/web", target+f.evil.URL, target+f.repository.URL+", path: "+goodName(0)+", adopt: true")
		},
		func(string) string {
			return own(goodName(1), "namespace: evil", "namespace: team", "apps/good-1", "apps/web")
		},
	)
	out := map[string]string{}
	for i := range f.each {
		name := fmt.Sprint("evil-", i)
		out[name] = kinds[i%len(kinds)](name)
	}
	return out
}

// attack adds the hostile team's pipelines, and pushes, sends and floods until the test ends the context.
func (f *tenants) attack(ctx context.Context) (ended func()) {
	f.t.Helper()
	for name, text := range f.hostilePipelines() {
		f.write(filepath.Join(f.c.Pipelines, "evil", name+".yaml"), text)
	}
	var all sync.WaitGroup
	repeat := func(pause time.Duration, do func(i int)) {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				do(i)
				select {
				case <-ctx.Done():
				case <-time.After(pause):
				}
			}
		})
	}
	tell := func(url, after string, i int) {
		body, _ := json.Marshal(map[string]any{"git": map[string]any{"urls": []string{url}, "ref": "refs/heads/main", "after": after}})
		_, _ = post(f.hooks, body, fmt.Sprint(url, after, i))
	}
	repeat(300*time.Millisecond, func(i int) {
		files := map[string]string{"apps/web/app.yaml": deployment("web", fmt.Sprint("image:", i))}
		for _, how := range []string{"busy", "hang", "spin", "eat", "garbage", "flood", "errors"} {
			files["apps/bad-"+how+"/app.yaml"] = deployment("web", fmt.Sprint("image:", i))
		}
		tell(f.evil.URL, f.evil.Commit(fmt.Sprint(i), files), i)
	})
	repeat(50*time.Millisecond, func(i int) { tell(f.repository.URL, strings.Repeat("ab", 20), i) }) // a lie about the good team's
	body := bytes.Repeat([]byte("x"), event.MaxBody)
	for range 10 {
		repeat(100*time.Millisecond, func(int) { holdDelivery(f.t, f.hooks, body, time.Second) })
	}
	return all.Wait
}

// TestATenantsNeighbourIsHostile has a hostile team that floods, hangs, fills, loops and lies with as many pipelines as the good one has.
// PRERIG_E2E=full has 50 of each. The good team's changes are all published, and nothing of it is seen or changed. How long they take is
// printed and not judged: the servers and the attackers share the processors with the daemon here. make e2e-hostile measures it.
func TestATenantsNeighbourIsHostile(t *testing.T) {
	each, rounds := 20, 3
	if full() {
		each, rounds = 50, 25
	}
	f := newTenants(t, each)
	f.startWith(daemon.Options{Render: render.Options{Command: []string{self(t), takenOver}}})
	f.allReady(each)
	f.rounds(2)
	alone := f.rounds(rounds)
	ctx, cancel := context.WithCancel(t.Context())
	ended := f.attack(ctx)
	defer ended()
	defer cancel()
	f.eventually("waiting for the hostile pipelines to be known", func() string {
		n := 0
		for _, p := range f.pipelines() {
			if !strings.HasPrefix(p.Name, "team/") && p.State != server.StateNew {
				n++
			}
		}
		if n < each/3 {
			return fmt.Sprint(n, " of them have run")
		}
		return ""
	})
	beside := f.rounds(rounds)
	t.Logf("from the event to the commit, of %d pipelines: alone %v, median %v; beside %d hostile ones %v, median %v (%.2f times)", each,
		alone, median(alone), each, beside, median(beside), float64(median(beside))/float64(median(alone)))
	f.checkNothingIsTaken()
}

// checkNothingIsTaken looks for what is the good team's in all that the hostile one has, and the other way round.
func (f *tenants) checkNothingIsTaken() {
	f.t.Helper()
	for _, p := range f.pipelines() {
		if strings.HasPrefix(p.Name, "team/good-") && p.State != server.StateReady {
			f.t.Errorf("%s is %s: %s", p.Name, p.State, p.Message)
		}
		if text, _ := json.Marshal(p); strings.HasPrefix(p.Name, "evil/") && (bytes.Contains(text, []byte(goodPassword)) || bytes.Contains(text, []byte(goodContent))) {
			f.t.Errorf("%s shows what is the good team's: %s", p.Name, text)
		}
	}
	if strings.Contains(f.heard.String(), goodPassword) || strings.Contains(f.heard.String(), "Authorization") {
		f.t.Errorf("a server of the hostile team was sent credentials: %s", f.heard.String())
	}
	for _, branch := range strings.Fields(f.evil.Git("branch", "--format=%(refname:short)")) {
		if found := f.evil.Git("log", "-p", "--format=%B", branch); strings.Contains(found, goodContent) {
			f.t.Errorf("the branch %s of the hostile team has what is the good team's", branch)
		}
	}
	for _, line := range strings.Split(f.repository.Git("ls-tree", "-r", "--name-only", "rendered"), "\n") {
		if !strings.HasPrefix(line, "good-") && !strings.HasPrefix(line, ".prerig/") {
			f.t.Errorf("somebody has published %s", line)
		}
	}
	if log := f.repository.Git("log", "--format=%B", "rendered"); strings.Contains(log, "evil") {
		f.t.Errorf("a commit of the hostile team's is on the good one's branch:\n%s", log)
	}
}
