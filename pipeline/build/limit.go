// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Limited limits the number of concurrent builds to the number of places, and keeps renders that hang or take long
// from delaying others. It is safe for concurrent use.
type Limited struct {
	builder     Interface
	lanes       *buildLanes
	tenantSlots Teams
	log         *slog.Logger
}

// Teams describes who shares the places of a Limited.
type Teams struct {
	// Of returns the team that a namespace belongs to; nil treats each namespace as a team.
	Of func(namespace string) string
	// Reserve keeps a place free for other teams, if two or more exist. Without it a team may hold all places until
	// others want one that becomes free.
	Reserve bool
}

// of returns the team that a pipeline belongs to.
func (t Teams) of(p *v1alpha1.RenderPipeline) string {
	if t.Of == nil {
		return p.Metadata.Namespace
	}
	return t.Of(p.Metadata.Namespace)
}

// Limit returns what builds up to workers pipelines at once, beside half as many that take long.
func Limit(builder Interface, workers int, teams Teams, log *slog.Logger) *Limited {
	return &Limited{builder: builder, lanes: newLanes(workers, teams.Reserve), tenantSlots: teams, log: log}
}

// Build builds when a place is free. It restarts if it had to yield to others, so that the result is always that of
// one complete build.
func (l *Limited) Build(ctx context.Context, p *v1alpha1.RenderPipeline, files *tree.Tree) (built *Built, err error) {
	err = l.lanes.runInLane(ctx, work{pipeline: p.Key(), team: l.tenantSlots.of(p)}, func(ctx context.Context) error {
		l.log.Debug("rendering", "pipeline", p.Key())
		built, err = l.builder.Build(ctx, p, files)
		return err
	})
	return built, err
}

// Check calls do, which checks a result of a pipeline, when a place is free: a check needs as much of the machine as a render, and has
// the same limits. do may be called again from its beginning.
func (l *Limited) Check(ctx context.Context, p *v1alpha1.RenderPipeline, do func(context.Context) error) error {
	return l.lanes.runInLane(ctx, work{pipeline: "check of " + p.Key(), team: l.tenantSlots.of(p)}, do)
}

// IsSlow reports whether the last build of a pipeline took so long that callers should not wait for the next.
func (l *Limited) IsSlow(pipeline string) bool { return l.lanes.isSlow(pipeline) }

// work is what occupies a place: a pipeline's render, and the team that it counts for.
type work struct{ pipeline, team string }

// buildLanes distributes the renderers so that renders that hang or take long do not delay other pipelines. A
// render begins in the quick lane. If it runs for longer than slowAfter while others wait, it must leave: it moves
// to the slow lane, which has places of its own, or, if these are taken, it is stopped and restarted when one is
// free. A pipeline that is known to be slow uses a place in the quick lane only while no other render wants it.
type buildLanes struct {
	quick, slow *places
	after       time.Duration // slowAfter, except in tests
	grace       time.Duration // idleGrace, except in tests

	mu    sync.Mutex
	known map[string]bool // pipelines that were slow the last time
}

// slowAfter is when a render counts as slow. Most take some milliseconds.
const slowAfter = 3 * time.Second

// errMakeWay is why a render is stopped that has to leave the quick lane.
var errMakeWay = errors.New("the render makes way for others and begins again")

func newLanes(workers int, reserve bool) *buildLanes {
	workers = max(1, workers)
	return &buildLanes{
		after: slowAfter, grace: idleGrace, quick: newPlaces(workers, reserve), slow: newPlaces(max(1, workers/2), reserve), known: map[string]bool{},
	}
}

// isSlow reports whether a pipeline's last render was slow.
func (l *buildLanes) isSlow(pipeline string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known[pipeline]
}

// recordRenderDuration notes how long a render took.
func (l *buildLanes) recordRenderDuration(pipeline string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if took < l.after {
		delete(l.known, pipeline)
		return
	}
	l.known[pipeline] = true
}

// runInLane calls do when a place is free, and again if it had to yield. Its error is that of do, or that of the
// context.
func (l *buildLanes) runInLane(ctx context.Context, w work, do func(context.Context) error) error {
	stay := l.after
	if l.isSlow(w.pipeline) {
		stay = 0
	}
	at, err := l.acquirePlaceInLane(ctx, w.team, stay == 0)
	if err != nil {
		return err
	}
	if at == l.quick {
		left, err := l.runInQuickLane(ctx, w, stay, do)
		if !left {
			return err
		}
		if err := l.slow.acquirePlace(ctx, w.team); err != nil {
			return err
		}
	}
	defer l.slow.releasePlace(w.team)
	return l.runTimed(ctx, w.pipeline, do)
}

func (l *buildLanes) runTimed(ctx context.Context, pipeline string, do func(context.Context) error) error {
	start := time.Now()
	err := do(ctx)
	l.recordRenderDuration(pipeline, time.Since(start))
	return err
}

// acquirePlaceInLane waits for a place. One that is slow waits for either lane, and behind all others for the quick
// one.
func (l *buildLanes) acquirePlaceInLane(ctx context.Context, team string, slow bool) (*places, error) {
	if !slow {
		return l.quick, l.quick.acquirePlace(ctx, team)
	}
	if l.slow.tryTake(team) {
		return l.slow, nil
	}
	quick, own := l.quick.startWaiting(team, rankSlow), l.slow.startWaiting(team, rankFirst)
	select {
	case <-quick.granted:
		l.slow.stopWaiting(own)
		return l.quick, nil
	case <-own.granted:
		l.quick.stopWaiting(quick)
		return l.slow, nil
	case <-ctx.Done():
		l.quick.stopWaiting(quick)
		l.slow.stopWaiting(own)
		return nil, ctx.Err()
	}
}

// runInQuickLane calls do in the quick lane, and releases its place. It reports whether do had to leave before it was
// done.
func (l *buildLanes) runInQuickLane(ctx context.Context, w work, stay time.Duration, do func(context.Context) error) (left bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	moved := make(chan bool, 1)
	go func() { moved <- l.watchRender(ended, w.team, stay, func() { stop(errMakeWay) }) }()
	err = l.runTimed(doing, w.pipeline, do)
	close(ended)
	if <-moved {
		l.slow.releasePlace(w.team)
	} else {
		l.quick.releasePlace(w.team)
	}
	if err != nil && errors.Is(context.Cause(doing), errMakeWay) && ctx.Err() == nil {
		l.recordRenderDuration(w.pipeline, l.after)
		return true, nil
	}
	return false, err
}

// watchRender watches a render in the quick lane: when its time is up and others want its place, it moves the
// render to the slow lane, or stops it if that lane is full. It reports whether the render's place is now in the
// slow lane.
func (l *buildLanes) watchRender(ended <-chan struct{}, team string, stay time.Duration, leave func()) (moved bool) {
	timer := time.NewTimer(stay)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-timer.C:
	}
	for {
		wanted, changed := l.quick.isWanted(team, rankSlow)
		switch {
		case wanted && l.slow.tryTake(team):
			l.quick.releasePlace(team)
			return true
		case wanted:
			leave()
			return false
		}
		select {
		case <-ended:
			return false
		case <-changed:
		}
	}
}
