// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// heads keeps a head as the queue does, for several processes.
type heads struct {
	mu       sync.Mutex
	head     status.Head
	revision uint64
	before   func() // called before a head is saved
}

func (h *heads) Head(context.Context) (status.Head, uint64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head, h.revision, nil
}

func (h *heads) SaveHead(_ context.Context, head status.Head, revision uint64) (uint64, error) {
	if f := h.before; f != nil {
		h.before = nil
		f()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if revision != h.revision {
		return 0, queue.ErrChanged
	}
	h.head, h.revision = head, revision+1
	return h.revision, nil
}

// openRepository reads one repository, joinRepository does as a worker.
func openRepository(ctx context.Context, r Repository, options ...Option) (*Catalog, error) {
	return OpenAll(ctx, []Origin{{Repository: &r}}, false, nil, options...)
}

func joinRepository(ctx context.Context, r Repository) (*Catalog, error) {
	return OpenAll(ctx, []Origin{{Repository: &r}}, true, nil)
}

const good = "{git: {url: https://h/a}}"

// place is a repository as a process with a mirror of its own reads it.
func place(t *testing.T, r *gittest.Repository, h *heads, path, state string) Repository {
	t.Helper()
	store := git.NewStore(state, git.DefaultLimits())
	return Repository{URL: r.URL, Path: path, Interval: time.Hour, Heads: h, Open: func(context.Context) (*git.Mirror, *git.Remote, error) {
		remote, err := git.NewRemote(r.URL, nil, nil)
		if err != nil {
			return nil, nil, err
		}
		mirror, err := store.Mirror(r.URL)
		return mirror, remote, err
	}}
}

func problems(c *Catalog) map[string]string {
	out := map[string]string{}
	for _, e := range c.All() {
		out[e.Key] = errorText(e.Err)
	}
	return out
}

func TestFilesOfARepository(t *testing.T) {
	r := gittest.New(t).Repository(t, "pipelines")
	for name, target := range map[string]string{
		"p/link.yaml": "../elsewhere/linked.yaml", "p/out.yaml": "../../../etc/passwd", "p/absolute.yaml": "/etc/passwd", "p/nowhere.yaml": "none",
		"p/loop.yaml": "loop.yaml", "p/dir.yaml": "sub", "p/again": ".",
	} {
		if err := os.MkdirAll(filepath.Join(r.Work, "p/sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, filepath.Join(r.Work, name)); err != nil {
			t.Fatal(err)
		}
	}
	commit := r.Commit("first", map[string]string{
		"p/one.yaml": pipeline("one", good) + "---\n" + pipeline("two", "{gti: {url: x}}"), "p/sub/three.json": `{"apiVersion": "prerig.dev/v1alpha1", "kind": "RenderPipeline", "metadata": {"name": "three"}, "spec": {"source": {"git": {"url": "https://h/a"}}}}`,
		"p/relative.yaml": pipeline("relative", "{dir: {path: x}}"), "p/absolute-dir.yaml": pipeline("local", "{dir: {path: /x}}"),
		"p/huge.yaml": strings.Repeat("# nothing\n", maxFile/10+1), "p/bomb.yaml": bomb, "p/README.md": "nothing", "p/.hidden/x.yaml": pipeline("hidden", good),
		"elsewhere/linked.yaml": pipeline("linked", good), "elsewhere/other.yaml": pipeline("other", good),
	})
	c, err := openRepository(t.Context(), place(t, r, &heads{}, "p", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	got := problems(c)
	for key, want := range map[string]string{
		"one": "", "three": "", "linked": "", "local": "",
		"two": "reading p/one.yaml: line 15: spec.source.gti: unknown field, did you mean git?", "relative": "line 7: spec.source.dir.path: must be absolute",
		"p/out.yaml": "leads out of the source tree", "p/absolute.yaml": "leads out of the source tree", "p/nowhere.yaml": "p/nowhere.yaml",
		"p/loop.yaml": "too many symbolic links: more than 40", "p/huge.yaml": "the file has more than", "bomb": "reading p/bomb.yaml",
	} {
		text, ok := got[key]
		if !ok || !strings.Contains(text, want) || (want == "") != (text == "") || text != "" && !strings.HasSuffix(text, "(at main@sha1:"+commit+")") {
			t.Errorf("%s: got %q (%v), want %q", key, text, ok, want)
		}
	}
	if len(got) != 12 {
		t.Errorf("entries: %v", got)
	}
	for _, path := range []string{"none", "p/one.yaml", "../p"} {
		if _, err := openRepository(t.Context(), place(t, r, &heads{}, path, t.TempDir())); err == nil || !strings.Contains(err.Error(), r.URL) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}

// bomb is a document whose aliases stand for a million items.
var bomb = "apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: bomb}\na: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n" +
	"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"

// TestProcessesAgree has two daemons that refresh and a worker that only follows.
func TestProcessesAgree(t *testing.T) {
	r := gittest.New(t).Repository(t, "pipelines")
	r.Commit("first", map[string]string{"a.yaml": pipeline("a", good)})
	h := &heads{}
	open := func(open func(context.Context, Repository, ...Option) (*Catalog, error)) *Catalog {
		t.Helper()
		c, err := open(t.Context(), place(t, r, h, "", t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	one, two := open(openRepository), open(openRepository)
	if h.revision != 1 {
		t.Errorf("the head was saved %d times", h.revision)
	}
	r.Commit("second", map[string]string{"b.yaml": pipeline("b", good)})
	worker := open(func(ctx context.Context, r Repository, _ ...Option) (*Catalog, error) { return joinRepository(ctx, r) }) // at the commit of the others, not at the newest
	if got := worker.Status(); got.Pipelines != 1 || got.Revision != one.Status().Revision {
		t.Errorf("the worker joined at %+v", got)
	}
	var told []string
	worker.OnChange(func(changed []string) { told = append(told, changed...) })
	// While the first is about to say where it is, the second finds a later commit: the first must not go back behind it.
	h.before = func() {
		r.Commit("third", map[string]string{"c.yaml": pipeline("c", good)})
		if _, err := two.Refresh(t.Context()); err != nil {
			t.Error(err)
		}
	}
	changed, err := one.Refresh(t.Context())
	if diff := cmp.Diff([]string{"b", "c"}, changed); err != nil || diff != "" {
		t.Errorf("%v: %s", err, diff)
	}
	for range 2 {
		if err := worker.Follow(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"b", "c"}, told); diff != "" || worker.Status().Revision != two.Status().Revision || one.Status().Revision != two.Status().Revision {
		t.Errorf("the worker was told %s; %s, %s, %s", diff, one.Status().Revision, two.Status().Revision, worker.Status().Revision)
	}
	other := place(t, r, h, "elsewhere", t.TempDir())
	if _, err := joinRepository(t.Context(), other); err == nil || !strings.Contains(err.Error(), "give both the same configuration") {
		t.Errorf("a worker with another configuration: %v", err)
	}
}

// TestBeginningWithoutTheServer starts again from the mirror, and without one not at all.
func TestBeginningWithoutTheServer(t *testing.T) {
	s := gittest.New(t)
	var away atomic.Bool
	s.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		if away.Load() {
			http.Error(w, "away", http.StatusServiceUnavailable)
		}
		return away.Load()
	})
	r := s.Repository(t, "pipelines")
	first := r.Commit("first", map[string]string{"a.yaml": pipeline("a", good)})
	h, state := &heads{}, t.TempDir()
	if _, err := openRepository(t.Context(), place(t, r, h, "", state)); err != nil {
		t.Fatal(err)
	}
	away.Store(true)
	second := r.Commit("second", map[string]string{"b.yaml": pipeline("b", good)})
	c, err := openRepository(t.Context(), place(t, r, h, "", state))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Status(); got.Revision != "main@sha1:"+first || got.Pipelines != 1 || !strings.Contains(got.Error, "503") || !got.Checked.IsZero() {
		t.Errorf("%+v", got)
	}
	if joined, err := joinRepository(t.Context(), place(t, r, h, "", state)); err != nil || joined.Status().Pipelines != 1 {
		t.Errorf("a worker: %v", err)
	}
	if _, err := openRepository(t.Context(), place(t, r, h, "", t.TempDir())); err == nil {
		t.Error("began with nothing")
	}
	if _, err := openRepository(t.Context(), place(t, r, &heads{}, "", state)); err == nil {
		t.Error("began with a commit that nobody named")
	}
	changed := make(chan []string, 1)
	c.OnChange(func(keys []string) { changed <- keys })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan bool)
	go func() { c.Poll(ctx); close(done) }()
	away.Store(false)
	c.Wake()
	select {
	case keys := <-changed:
		if got := c.Status(); len(keys) != 1 || keys[0] != "b" || got.Revision != "main@sha1:"+second || got.Error != "" {
			t.Errorf("%v, %+v", keys, got)
		}
	case <-time.After(time.Minute):
		t.Error("the server is back, and nobody has looked")
	}
	cancel()
	<-done
}

// TestACommitOfPipelinesIsNotForgotten has the mirror fetch many others, as a repository of pipelines may hold applications
// and rendered branches too.
func TestACommitOfPipelinesIsNotForgotten(t *testing.T) {
	r := gittest.New(t).Repository(t, "pipelines")
	commit := r.Commit("first", map[string]string{"a.yaml": pipeline("a", good)})
	state := t.TempDir()
	p := place(t, r, &heads{}, "", state)
	c, err := openRepository(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	mirror, remote, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r.InWork("checkout", "-q", "-b", "other")
	remembered := func() string {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(state, "*.git", "shallow"))
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		data, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	for i := range 66 {
		r.Commit("other", map[string]string{"x": strings.Repeat("x", i+1)})
		if _, err := mirror.Fetch(t.Context(), remote, git.Ref{Name: "refs/heads/other"}); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasSuffix(remembered(), commit+"\n") {
		t.Fatal("the case shows nothing")
	}
	if changed, err := c.Refresh(t.Context()); err != nil || len(changed) > 0 {
		t.Fatal(changed, err)
	}
	if !strings.HasSuffix(remembered(), commit+"\n") {
		t.Error("a look at the repository did not put off that its commit is forgotten")
	}
}

func TestEventsAboutTheRepositoryOfPipelines(t *testing.T) {
	r := gittest.New(t).Repository(t, "pipelines")
	r.Commit("first", map[string]string{"a.yaml": pipeline("a", good)})
	p := place(t, r, &heads{}, "", t.TempDir())
	p.Ref = "refs/heads/main"
	c, err := openRepository(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		change event.Change
		want   bool
	}{
		"its branch":      {event.Change{Git: &event.GitChange{URLs: []string{r.URL}, Ref: "refs/heads/main"}}, true},
		"another branch":  {event.Change{Git: &event.GitChange{URLs: []string{r.URL}, Ref: "refs/heads/rendered"}}, false},
		"no reference":    {event.Change{Git: &event.GitChange{URLs: []string{strings.Replace(r.URL, "pipelines", "Pipelines", 1)}}}, true},
		"another":         {event.Change{Git: &event.GitChange{URLs: []string{"https://h/b"}, Ref: "refs/heads/main"}}, false},
		"deleted":         {event.Change{Git: &event.GitChange{URLs: []string{r.URL}, Ref: "refs/heads/main", Deleted: true}}, false},
		"Flux, by branch": {event.Change{Flux: &event.FluxChange{Kind: "GitRepository", Name: "x", Revision: "main@sha1:abc"}}, true},
		"Flux, OCI":       {event.Change{Flux: &event.FluxChange{Kind: "OCIRepository", Name: "x", Revision: "main@sha256:abc"}}, false},
	} {
		changes := []event.Change{tc.change}
		flux := tc.change.Flux != nil && tc.change.Flux.Kind == "GitRepository" // the pipeline may be meant as well
		if got := c.Concerns(changes); got != tc.want || c.Watches(changes) != tc.want || !flux && len(c.Match(changes)) > 0 {
			t.Errorf("%s: concerns it %v, watched %v, pipelines %v", name, got, c.Watches(changes), c.Match(changes))
		}
	}
	dir, _ := open(t, map[string]string{"a.yaml": pipeline("a", good)})
	if dir.Concerns([]event.Change{{Git: &event.GitChange{URLs: []string{r.URL}}}}) {
		t.Error("a directory has no repository")
	}
	if changed, err := dir.Refresh(t.Context()); err != nil || changed != nil || !errors.Is(dir.Follow(t.Context(), ""), nil) {
		t.Errorf("a directory was refreshed: %v, %v", changed, err)
	}
}

// TestAServerThatHangsHoldsUpNobody: jobs look whether others are further, and events come one after the other.
func TestAServerThatHangsHoldsUpNobody(t *testing.T) {
	s := gittest.New(t)
	var hangs atomic.Bool
	asked, answer := make(chan bool, 10), make(chan bool)
	s.Intercept(func(http.ResponseWriter, *http.Request) bool {
		if hangs.Load() {
			asked <- true
			<-answer
		}
		return false
	})
	r := s.Repository(t, "pipelines")
	r.Commit("first", map[string]string{"a.yaml": pipeline("a", good)})
	c, err := openRepository(t.Context(), place(t, r, &heads{}, "", t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	hangs.Store(true)
	r.Commit("second", map[string]string{"b.yaml": pipeline("b", good)})
	var group sync.WaitGroup
	var found atomic.Int32
	refresh := func() {
		group.Go(func() {
			changed, err := c.Refresh(t.Context())
			if err != nil {
				t.Error(err)
			}
			found.Add(int32(len(changed)))
		})
	}
	refresh()
	<-asked
	refresh() // waits, and will ask after the first
	for c.origins[0].repo.waiting.Load() == 0 {
		time.Sleep(time.Millisecond)
	}
	// None of these return before the server answers if they wait for it.
	if changed, err := c.Refresh(t.Context()); err != nil || len(changed) > 0 {
		t.Error(changed, err)
	}
	if err := c.Follow(t.Context(), ""); err != nil {
		t.Error(err)
	}
	hangs.Store(false)
	close(answer)
	group.Wait()
	if found.Load() != 1 || c.Status().Pipelines != 2 {
		t.Errorf("%d changes found, %+v", found.Load(), c.Status())
	}
}

// TestSecretsStayOutOfErrors has a private repository and a wrong token, and a pipeline with credentials in a URL.
func TestSecretsStayOutOfErrors(t *testing.T) {
	s := gittest.New(t)
	r := s.Repository(t, "pipelines")
	r.Commit("first", map[string]string{"a.yaml": pipeline("a", "{git: {url: https://bob:hunter2@h/a}}"), "b.yaml": pipeline("b", "{git: {url: 'https://bob:hunter2@h:port/b'}}")})
	s.Username, s.Password = "robot", "right"
	p := place(t, r, &heads{}, "", t.TempDir())
	anonymous := p.Open
	secret := map[string][]byte{"username": []byte("robot"), "password": []byte("wrong-token")}
	p.Open = func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
		mirror, _, err := anonymous(ctx)
		if err != nil {
			return nil, nil, err
		}
		remote, err := git.NewRemote(r.URL, secret, nil)
		return mirror, remote, err
	}
	if _, err := openRepository(t.Context(), p); err == nil || !strings.Contains(err.Error(), "pipelines_git.secret") || strings.Contains(err.Error(), "wrong-token") {
		t.Errorf("a wrong token: %v", err)
	}
	secret["password"] = []byte("right")
	c, err := openRepository(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for key, text := range problems(c) {
		if text == "" || strings.Contains(text, "hunter2") {
			t.Errorf("%s: %q", key, text)
		}
	}
}
