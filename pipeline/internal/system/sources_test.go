// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/server"
)

// severalSources is a fixture with pipelines app0, app1 and plain: the first two have bases, a policy and a patch of further sources,
// each on a server of its own with its own credentials.
type severalSources struct {
	*fixture
	platformServer, valuesServer *gittest.Server
	platform, values             *gittest.Repository
}

func newSeveralSources(t *testing.T) *severalSources {
	t.Helper()
	s := &severalSources{fixture: prepare(t, nil), platformServer: gittest.New(t), valuesServer: gittest.New(t)}
	for name, of := range map[string]*gittest.Server{"platform": s.platformServer, "values": s.valuesServer} {
		of.Username, of.Password = name, "key-of-"+name
		for key, text := range map[string]string{"username": name, "password": "key-of-" + name, ".hosts": of.URL} {
			s.write(filepath.Join(s.c.Secrets, "team", name, key), text)
		}
	}
	s.platform, s.values = s.platformServer.Repository(t, "platform"), s.valuesServer.Repository(t, "values")
	s.platform.Commit("bases", map[string]string{
		"web/kustomization.yaml": "resources: [web.yaml]\n", "web/web.yaml": deployment("web", "web:1"),
		"mesh.yaml": "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: mesh}\nspec: {istio: {injector: {builtIn: istio}}}\n",
	})
	files := map[string]string{"apps/plain/web.yaml": deployment("plain", "plain:1")}
	values := map[string]string{}
	for i := range 2 {
		name := fmt.Sprintf("app%d", i)
		files["apps/"+name+"/kustomization.yaml"] = "resources: [../../platform/web]\ncomponents: [../../deploy/values/" + name + "]\n"
		values[name+"/kustomization.yaml"] = replicas(1)
		text := strings.Replace(pipelineYAML(name, s.repository.URL), "  policies: [{builtIn: istio}]\n", "  policies: [{path: platform/mesh.yaml}]\n", 1)
		s.write(filepath.Join(s.c.Pipelines, name+".yaml"), text+fmt.Sprintf("  sources:\n  - {mountPath: platform, git: {url: %s, ref: {branch: main}, secretRef: {name: platform}}}\n"+
			"  - {mountPath: deploy/values, git: {url: %s, ref: {branch: main}, secretRef: {name: values}}}\n", s.platform.URL, s.values.URL))
	}
	s.write(filepath.Join(s.c.Pipelines, "plain.yaml"), pipelineYAML("plain", s.repository.URL))
	s.values.Commit("values", values)
	s.repository.Commit("apps", files)
	return s
}

// replicas is a component that sets the number of replicas.
func replicas(n int) string {
	return fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nreplicas: [{name: web, count: %d}]\n", n)
}

// TestSeveralSources has a daemon with real Git servers: pushes to each source, one that does not answer, one that is rolled back, and a
// restart.
func TestSeveralSources(t *testing.T) {
	s := newSeveralSources(t)
	var seen atomic.Pointer[string] // credentials that a server got and that are not its own
	var down atomic.Bool
	for name, of := range map[string]*gittest.Server{"": s.git, "platform": s.platformServer, "values": s.valuesServer} {
		of.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
			if user, password, ok := r.BasicAuth(); ok && (user != name || password != "key-of-"+name) {
				seen.Store(&user)
			}
			if name == "values" && down.Load() {
				http.Error(w, "not now", http.StatusForbidden)
				return true
			}
			return false
		})
	}
	s.start()
	const file0, file1 = "app0/shop/deployment-web.yaml", "app1/shop/deployment-web.yaml"
	s.shows(file0, "image: web:1")
	s.shows(file1, "istio-proxy")
	s.shows("plain/shop/deployment-plain.yaml", "istio-proxy")
	s.allReady(3)

	// A push to a source runs those that read what it changed, and no others.
	pushed := func(r *gittest.Repository, files map[string]string, want ...string) string {
		t.Helper()
		before := s.runsOf()
		commit := r.Commit("change", files)
		s.pushTo(r, commit)
		changed := func() (out []string) {
			for _, p := range s.pipelines() {
				if before[p.Name] != s.runsOf()[p.Name] {
					out = append(out, p.Name)
				}
			}
			return out
		}
		s.eventually("waiting for runs", func() string {
			if got := changed(); len(got) < len(want) {
				return fmt.Sprintf("%v ran, want %v", got, want)
			}
			return ""
		})
		time.Sleep(300 * time.Millisecond) // for those that must not run
		if got := changed(); strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%v ran, want %v", got, want)
		}
		return commit
	}
	one := pushed(s.values, map[string]string{"app1/kustomization.yaml": replicas(3)}, "team/app1")
	s.shows(file1, "replicas: 3")
	two := pushed(s.platform, map[string]string{"web/web.yaml": deployment("web", "web:2")}, "team/app0", "team/app1")
	s.shows(file0, "image: web:2")
	s.shows(file1, "image: web:2")
	pushed(s.platform, map[string]string{"README.md": "x"})
	pushed(s.values, map[string]string{"README.md": "x"})
	pushed(s.repository, map[string]string{"apps/plain/web.yaml": deployment("plain", "plain:2")}, "team/plain")

	message := s.repository.Git("log", "-1", "--format=%B", "rendered", "--", file1)
	for _, want := range []string{
		"Prerig-Source: " + s.repository.URL + "\n", "Prerig-Mounted-Source: platform " + s.platform.URL + " main@sha1:" + two + "\n",
		"Prerig-Mounted-Source: deploy/values " + s.values.URL + " main@sha1:" + one + "\n", "--revision platform=main@sha1:" + two + " --revision deploy/values=main@sha1:" + one,
	} {
		if !strings.Contains(message, want) {
			t.Errorf("the commit's message lacks %q:\n%s", want, message)
		}
	}
	p := s.pipelines("team/app1")[0]
	if len(p.Sources) != 2 || p.Sources[0].MountPath != "platform" || p.Sources[0].URL != s.platform.URL || p.Sources[0].Revision != "main@sha1:"+two || len(p.Status.Published[0].Sources) != 2 {
		t.Errorf("the status has %+v, %+v", p.Sources, p.Status.Published)
	}
	page, err := http.Get("http://" + s.page + "/pipeline?name=team/app1")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(page.Body)
	page.Body.Close()
	if shown := string(text); err != nil || strings.Count(shown, "Mounted at") != 2 || strings.Count(shown, two) < 2 || strings.Count(shown, one) < 2 {
		t.Errorf("the page lacks sources, %v:\n%s", err, shown)
	}

	// One source does not answer: the others wait, and what is published stays.
	down.Store(true)
	commits := s.commits()
	s.pushTo(s.platform, s.platform.Commit("change", map[string]string{"web/web.yaml": deployment("web", "web:3")}))
	s.eventually("waiting for the failure", func() string {
		for _, p := range s.pipelines("team/app0", "team/app1") {
			if p.State != server.StateFailing || !strings.Contains(p.Message, "spec.sources[1], the source at deploy/values: ") {
				return p.State + ": " + p.Message
			}
		}
		return ""
	})
	if got := s.commits(); got != commits || !strings.Contains(s.rendered(file0), "image: web:2") {
		t.Errorf("%d commits, then %d:\n%s", commits, got, s.rendered(file0))
	}
	if p := s.pipelines("team/plain")[0]; p.State != server.StateReady {
		t.Errorf("the pipeline without that source is %s: %s", p.State, p.Message)
	}
	down.Store(false)
	s.shows(file0, "image: web:3") // without another event
	s.shows(file1, "image: web:3")

	// A source is rolled back; a daemon that was away meanwhile finds out.
	s.stop()
	s.platform.InWork("reset", "-q", "--hard", two)
	s.platform.InWork("push", "-q", "-f", "origin", "main")
	s.start()
	s.shows(file0, "image: web:2")
	s.shows(file1, "image: web:2")
	if got := s.rendered(file1); !strings.Contains(got, "replicas: 3") {
		t.Errorf("the other source was rolled back too:\n%s", got)
	}
	if user := seen.Load(); user != nil {
		t.Errorf("a server got the credentials of %s, which are another's", *user)
	}
}

// TestKilledBetweenTheFetchesOfSources kills the daemon while it has asked one source and waits for the other, again and again, with
// pushes to both: no result is made of an older revision than the one before it, and in the end both are the newest.
func TestKilledBetweenTheFetchesOfSources(t *testing.T) {
	s := newSeveralSources(t)
	c := chaosOn(s.fixture, size{}, 0)
	asked := make(chan struct{}, 1)
	var holding atomic.Bool
	s.valuesServer.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if !holding.Load() {
			return false
		}
		select {
		case asked <- struct{}{}:
		default:
		}
		<-r.Context().Done() // the process is gone
		return true
	})
	s.valuesServer.Requests.Add(0) // the race detector sees no order between this goroutine and what another process causes but by it
	p := c.serve(c.c, false)
	const file = "app0/shop/deployment-web.yaml"
	showing := func(n int) {
		t.Helper()
		s.eventually(fmt.Sprintf("waiting for %d", n), func() string {
			if got := s.rendered(file); !strings.Contains(got, fmt.Sprintf("image: web:%d\n", n)) || !strings.Contains(got, fmt.Sprintf("replicas: %d\n", n)) {
				return fmt.Sprintf("got %.300q", got)
			}
			return ""
		})
	}
	showing(1)
	for n := 2; n <= 4; n++ {
		holding.Store(true)
		select {
		case <-asked:
		default:
		}
		for r, files := range map[*gittest.Repository]map[string]string{
			s.platform: {"web/web.yaml": deployment("web", fmt.Sprintf("web:%d", n))}, s.values: {"app0/kustomization.yaml": replicas(n)},
		} {
			commit := r.Commit("change", files)
			body := fmt.Sprintf(`{"git": {"urls": [%q], "ref": "refs/heads/main", "after": %q}}`, r.URL, commit)
			if status, err := post(c.address, []byte(body), commit); err != nil || status != http.StatusAccepted {
				t.Fatalf("the webhook was answered with %d, %v", status, err)
			}
		}
		select {
		case <-asked:
		case <-time.After(time.Minute):
			t.Fatal("the source was not asked for")
		}
		before := s.rendered(file)
		p.hold(true)
		if !p.kill() {
			t.Fatal("the daemon was gone already")
		}
		p.gone()
		if got := s.rendered(file); got != before {
			t.Errorf("without one of the sources there is a new result:\n%s", got)
		}
		holding.Store(false)
		p.hold(false)
		if !p.awaitUp(2 * time.Minute) {
			t.Fatal("the daemon did not come up again")
		}
		showing(n)
	}
	image, count := 0, 0
	for _, commit := range strings.Fields(s.repository.Git("rev-list", "--reverse", "rendered", "--", file)) {
		var nowImage, nowCount int
		for line := range strings.Lines(s.repository.Git("show", commit+":"+file)) {
			_, _ = fmt.Sscanf(strings.TrimSpace(line), "image: web:%d", &nowImage)
			_, _ = fmt.Sscanf(strings.TrimSpace(line), "replicas: %d", &nowCount)
		}
		if nowImage < image || nowCount < count || nowImage == 0 || nowCount == 0 {
			t.Errorf("commit %s goes back from %d and %d to %d and %d", commit, image, count, nowImage, nowCount)
		}
		image, count = nowImage, nowCount
	}
}
