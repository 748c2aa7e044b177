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

// Limited builds no more pipelines at once than there are places, and lets those whose renders hang or take long keep no
// others waiting. It is safe for concurrent use.
type Limited struct {
	builder Interface
	lanes   *buildLanes
	teams   Teams
	log     *slog.Logger
}

// Teams says who shares the places of a Limited.
type Teams struct {
	// Of returns the team that a namespace belongs to; nil takes each namespace for a team.
	Of func(namespace string) string
	// Reserve keeps a place free for other teams, where there are two or more. Without it a team may hold them all, until others
	// want one that becomes free.
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
	return &Limited{builder: builder, lanes: newLanes(workers, teams.Reserve), teams: teams, log: log}
}

// Build builds when there is a place. It begins again where it had to make way for others, so that the result is always that
// of one build from its beginning to its end.
func (l *Limited) Build(ctx context.Context, p *v1alpha1.RenderPipeline, files *tree.Tree) (built *Built, err error) {
	err = l.lanes.runInLane(ctx, work{pipeline: p.Key(), team: l.teams.of(p)}, func(ctx context.Context) error {
		l.log.Debug("rendering", "pipeline", p.Key())
		built, err = l.builder.Build(ctx, p, files)
		return err
	})
	return built, err
}

// IsSlow reports whether the last build of a pipeline took so long that nobody should wait for the next.
func (l *Limited) IsSlow(pipeline string) bool { return l.lanes.isSlow(pipeline) }

// work is what takes a place: a pipeline's render, and the team that it counts for.
type work struct{ pipeline, team string }

// buildLanes share the renderers out, so that pipelines whose renders hang or take long do not keep the others waiting. A render
// begins in the quick lane. One that is at it for longer than slowAfter while others wait has to leave it: for the slow
// lane, which has places of its own, or, where these are taken, it is stopped and begins again when there is one. A
// pipeline that is known to be slow takes a place in the quick lane only while nobody else wants it.
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

// noteDuration notes how long a render took.
func (l *buildLanes) noteDuration(pipeline string, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if took < l.after {
		delete(l.known, pipeline)
		return
	}
	l.known[pipeline] = true
}

// runInLane calls do when there is a place, and again where it had to make way. Its error is that of do, or that of the context.
func (l *buildLanes) runInLane(ctx context.Context, w work, do func(context.Context) error) error {
	stay := l.after
	if l.isSlow(w.pipeline) {
		stay = 0
	}
	at, err := l.takePlace(ctx, w.team, stay == 0)
	if err != nil {
		return err
	}
	if at == l.quick {
		left, err := l.inQuick(ctx, w, stay, do)
		if !left {
			return err
		}
		if err := l.slow.take(ctx, w.team); err != nil {
			return err
		}
	}
	defer l.slow.giveBack(w.team)
	return l.runTimed(ctx, w.pipeline, do)
}

func (l *buildLanes) runTimed(ctx context.Context, pipeline string, do func(context.Context) error) error {
	start := time.Now()
	err := do(ctx)
	l.noteDuration(pipeline, time.Since(start))
	return err
}

// takePlace waits for a place. One that is slow waits for either lane, and behind all others for the quick one.
func (l *buildLanes) takePlace(ctx context.Context, team string, slow bool) (*places, error) {
	if !slow {
		return l.quick, l.quick.take(ctx, team)
	}
	if l.slow.tryTake(team) {
		return l.slow, nil
	}
	quick, own := l.quick.join(team, rankSlow), l.slow.join(team, rankFirst)
	select {
	case <-quick.granted:
		l.slow.leave(own)
		return l.quick, nil
	case <-own.granted:
		l.quick.leave(quick)
		return l.slow, nil
	case <-ctx.Done():
		l.quick.leave(quick)
		l.slow.leave(own)
		return nil, ctx.Err()
	}
}

// inQuick calls do in the quick lane, whose place it gives back. It says that do had to leave before it was done.
func (l *buildLanes) inQuick(ctx context.Context, w work, stay time.Duration, do func(context.Context) error) (left bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	moved := make(chan bool, 1)
	go func() { moved <- l.watchRender(ended, w.team, stay, func() { stop(errMakeWay) }) }()
	err = l.runTimed(doing, w.pipeline, do)
	close(ended)
	if <-moved {
		l.slow.giveBack(w.team)
	} else {
		l.quick.giveBack(w.team)
	}
	if err != nil && errors.Is(context.Cause(doing), errMakeWay) && ctx.Err() == nil {
		l.noteDuration(w.pipeline, l.after)
		return true, nil
	}
	return false, err
}

// watchRender looks after a render in the quick lane: when its time is up and others want its place, it moves it to the slow lane, or
// stops it where that is full. It says whether the place that the render has is one of the slow lane.
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
			l.quick.giveBack(team)
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
