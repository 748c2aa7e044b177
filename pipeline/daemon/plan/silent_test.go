// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
)

// places are registries that are asked for their secrets, and for nothing else as nothing is tagged.
type places struct {
	silent    []string
	ask       func()
	asked     []string
	deadlines []time.Time
}

func (s *places) Secret(ctx context.Context, _, name string, _ secret.Purpose) (map[string][]byte, error) {
	s.asked = append(s.asked, name)
	deadline, _ := ctx.Deadline()
	s.deadlines = append(s.deadlines, deadline)
	if s.ask != nil {
		s.ask()
	}
	if slices.Contains(s.silent, name) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return nil, nil
}

func registryOf(name string) string { return "oci://" + name + ".example.com/apps" }

// look looks at what a pipeline has published to places, and returns those that have not answered then.
func (s *places) look(ctx context.Context, t *testing.T, wait time.Duration, names ...string) (marked []string) {
	t.Helper()
	var pipeline v1alpha1.RenderPipeline
	var state status.State
	for _, name := range names {
		to := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: registryOf(name), SecretRef: &meta.LocalObjectReference{Name: name}}}
		pipeline.Spec.Publish = append(pipeline.Spec.Publish, to)
		state.Status.Published = append(state.Status.Published, v1alpha1.Published{Target: to.Target(), Revision: "sha256:1"})
	}
	p := &Planner{Log: slog.New(slog.DiscardHandler), targetWait: wait}
	targets := publish.Readers(source.New(source.Options{StateDir: t.TempDir()}), s, nil)
	if p.needsDriftRun(ctx, targets, &pipeline, &state, time.Now()) {
		t.Error("a run is asked for, and nothing has changed")
	}
	for _, name := range names {
		if p.unresponsiveTargets.isUnresponsive(registryOf(name)) {
			marked = append(marked, name)
		}
	}
	return marked
}

// expiring is a context whose deadline is when expire is called.
type expiring struct {
	context.Context
	done chan struct{}
}

func (e expiring) expire() { close(e.done) }

func (e expiring) Done() <-chan struct{} { return e.done }

func (e expiring) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestOnlyAPlaceThatHadItsTimeIsSilent looks at places for pipelines whose time is up sooner or later.
func TestOnlyAPlaceThatHadItsTimeIsSilent(t *testing.T) {
	over, meanwhile := expiring{t.Context(), make(chan struct{})}, expiring{t.Context(), make(chan struct{})}
	over.expire()
	for _, one := range []struct {
		name                  string
		ctx                   context.Context
		wait                  time.Duration
		ask                   func()
		silent, asked, marked []string
	}{
		{name: "all answer", ctx: t.Context(), wait: time.Minute, asked: []string{"a", "b"}},
		{name: "one does not answer", ctx: t.Context(), wait: 50 * time.Millisecond, silent: []string{"a"}, asked: []string{"a"}, marked: []string{"a"}},
		{name: "the time of the source is up before", ctx: over, wait: time.Minute},
		{name: "the time of the source is up meanwhile", ctx: meanwhile, wait: time.Minute, ask: meanwhile.expire, silent: []string{"a"}, asked: []string{"a"}},
	} {
		s := &places{silent: one.silent, ask: one.ask}
		marked := s.look(one.ctx, t, one.wait, "a", "b")
		if diff := cmp.Diff([][]string{one.asked, one.marked}, [][]string{s.asked, marked}); diff != "" {
			t.Errorf("%s: what is asked, and what is marked (-want +got):\n%s", one.name, diff)
		}
	}
}

// TestEachPlaceHasItsOwnTime: one that takes long takes nothing from the next one.
func TestEachPlaceHasItsOwnTime(t *testing.T) {
	s := &places{ask: func() { time.Sleep(20 * time.Millisecond) }}
	s.look(t.Context(), t, 30*time.Second, "a", "b")
	if len(s.deadlines) != 2 || !s.deadlines[1].After(s.deadlines[0]) {
		t.Errorf("places may answer until %v", s.deadlines)
	}
}
