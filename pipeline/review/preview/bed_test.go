// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/storetest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source"
)

// talk is a host in memory with one pull request.
type talk struct {
	mu       sync.Mutex
	in       pullrequest.Incoming
	asked    int
	statuses []pullrequest.CommitStatus
	kept     []string
	finished int
	// asking is called before an answer, keepErr and statusErr fail calls.
	asking             func()
	keepErr, statusErr error
}

func (h *talk) Incoming(context.Context, int64) (*pullrequest.Incoming, error) {
	h.mu.Lock()
	asking := h.asking
	h.asked++
	h.mu.Unlock()
	if asking != nil {
		asking()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	in := h.in
	return &in, nil
}

func (h *talk) Keep(_ context.Context, _ int64, c pullrequest.KeptComment) (pullrequest.Written, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.kept = append(h.kept, c.Text)
	return pullrequest.Written{}, h.keepErr
}

func (h *talk) Finish(context.Context, int64, pullrequest.KeptComment) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finished++
	return h.keepErr
}

func (h *talk) SetStatus(_ context.Context, _ *pullrequest.Incoming, s pullrequest.CommitStatus) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.statusErr == nil {
		h.statuses = append(h.statuses, s)
	}
	return h.statusErr
}

func (h *talk) MaxBody() int { return 10000 }

// said are the states that were set.
func (h *talk) said() (out []pullrequest.CommitState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.statuses {
		out = append(out, s.State)
	}
	return out
}

// bed previews pull request 7 of a repository with the branches main and topic. Nothing is rendered: its turn never yields a result.
type bed struct {
	*testing.T
	*Previewer
	host       *talk
	repository *gittest.Repository
	server     *gittest.Server
	head       string
	mu         sync.Mutex
	idle       int
	// whenIdle is what becomes of a turn.
	whenIdle func(ctx context.Context) error
}

const bedKey = "team/app"

func newBed(t *testing.T, preview string) *bed {
	t.Helper()
	b := &bed{T: t, server: gittest.New(t), whenIdle: func(context.Context) error { return errCount }}
	b.repository = b.server.Repository(t, "config")
	b.repository.Commit("first", map[string]string{"app/a.yaml": "kind: ConfigMap\n"})
	b.repository.InWork("checkout", "-q", "-b", "topic")
	b.repository.InWork("commit", "-q", "--allow-empty", "-m", "second")
	b.repository.InWork("push", "-q", "origin", "topic")
	b.head = strings.TrimSpace(b.repository.InWork("rev-parse", "HEAD"))
	b.host = &talk{in: pullrequest.Incoming{Number: 7, State: pullrequest.StateOpen, Base: "main", Head: "topic", HeadCommit: b.head}}
	dir := t.TempDir()
	text := strings.NewReplacer("URL", b.repository.URL, "PREVIEW", preview).Replace(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: app, namespace: team}
spec:
  source: {git: {url: "URL", ref: {branch: main}}}
  build: {path: app}
  publish: [{git: {url: "URL", branch: rendered, path: app}}]
  preview: {provider: Gitea, secretRef: {name: token}PREVIEW}
`)
	if err := os.WriteFile(filepath.Join(dir, "app.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := catalog.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := c.Get(bedKey); !ok || e.Err != nil {
		t.Fatalf("the pipeline: %+v", e)
	}
	q, store := storetest.Open(t)
	fetcher := source.New(source.Options{StateDir: t.TempDir()})
	b.Previewer = New(Options{
		Catalog: c, PipelinesDir: dir, Store: store, Queue: q, Heads: fetcher, Own: Side{Fetcher: fetcher}, Forks: Side{Fetcher: fetcher}, AtOnce: 2,
		WhenIdle: func(ctx context.Context, _ func(context.Context) error) error {
			b.mu.Lock()
			b.idle++
			b.mu.Unlock()
			return b.whenIdle(ctx)
		},
		Host: func(context.Context, *v1alpha1.RenderPipeline) (pullrequest.Conversation, error) { return b.host, nil },
	})
	return b
}

func (b *bed) one() *status.Preview {
	return &status.Preview{Namespace: "team", Repository: b.repository.URL, Number: 7}
}

// event notes one event.
func (b *bed) event() {
	b.Helper()
	e := event.Event{ID: "e", Changes: []event.Change{{Pull: &event.PullChange{URLs: []string{b.repository.URL}, Number: 7, Base: "main"}}}}
	if err := b.Note(context.WithoutCancel(b.Context()), e, time.Now().UTC()); err != nil {
		b.Error(err)
	}
}

// known is what is stored.
func (b *bed) known() *status.Preview {
	b.Helper()
	one, err := b.Store.LoadPreview(b.Context(), b.one().Key())
	if err != nil {
		b.Fatal(err)
	}
	return one
}

// try does what is wanted once.
func (b *bed) try() *status.Preview {
	b.Helper()
	if err := b.Store.Sync(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.previewPullRequest(b.Context(), b.one())
	return b.known()
}

func (b *bed) renders() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.idle
}

// running runs the Previewer until the test stops it.
func (b *bed) running() (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); b.Previewer.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-ended })
	b.Cleanup(stop)
	return stop
}

// eventually waits for something that a Previewer does.
func (b *bed) eventually(what string, is func() bool) {
	b.Helper()
	for deadline := time.Now().Add(3 * time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("waiting for %s: %+v", what, b.known())
		}
	}
}

func (b *bed) isDone() bool { one := b.known(); return one != nil && one.Wanted.IsZero() }
