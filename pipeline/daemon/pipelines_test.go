// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/status"
	"github.com/prerig/prerig/pipeline/tenant"
	"github.com/prerig/prerig/pipeline/watchdog"
)

// hangingHeads are those of a store that does not answer from some time on, whatever a context says.
type hangingHeads struct {
	hang  atomic.Bool
	until chan struct{}
}

func (h *hangingHeads) Head(context.Context) (status.Head, uint64, error) {
	if h.hang.Load() {
		<-h.until
	}
	return status.Head{}, 0, nil
}

func (h *hangingHeads) SaveHead(context.Context, status.Head, uint64) (uint64, error) { return 1, nil }

// TestARepositoryThatHangsHoldsUpNoOtherTeamsJobs leaves a look at one team's pipelines behind, and begins a job of another one.
func TestARepositoryThatHangsHoldsUpNoOtherTeamsJobs(t *testing.T) {
	h := &hangingHeads{until: make(chan struct{})}
	t.Cleanup(func() { close(h.until) })
	repository := &catalog.Repository{URL: "https://git.example.com/a.git", Heads: h, Open: func(context.Context) (*git.Mirror, *git.Remote, error) {
		return nil, nil, errors.New("no answer")
	}}
	c, err := catalog.OpenAll(t.Context(), []catalog.Origin{
		{Name: "a", Repository: repository, Tenants: []tenant.Tenant{{Namespaces: []string{"a"}}}},
		{Name: "b", Dir: t.TempDir(), Tenants: []tenant.Tenant{{Namespaces: []string{"b"}}}},
	}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &components{catalog: c, watchdog: &watchdog.Watchdog{Grace: time.Millisecond, Longest: 10 * time.Millisecond}}
	h.hang.Store(true)
	if err := p.followOthers(t.Context(), "a/x"); !errors.Is(err, watchdog.ErrOverdue) {
		t.Fatalf("a repository that hangs gives %v", err)
	}
	p.watchdog.Longest = time.Minute
	if err := p.followOthers(t.Context(), "b/y"); err != nil {
		t.Errorf("a job of another team gets %v", err)
	}
}
