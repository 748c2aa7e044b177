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
	log     *slog.Logger
}

// Limit returns what builds up to workers pipelines at once, beside half as many that take long.
func Limit(builder Interface, workers int, log *slog.Logger) *Limited {
	return &Limited{builder: builder, lanes: newLanes(workers), log: log}
}

// Build builds when there is a place. It begins again where it had to make way for others, so that the result is always that
// of one build from its beginning to its end.
func (l *Limited) Build(ctx context.Context, p *v1alpha1.RenderPipeline, files *tree.Tree) (built *Built, err error) {
	err = l.lanes.runInLane(ctx, p.Key(), func(ctx context.Context) error {
		l.log.Debug("rendering", "pipeline", p.Key())
		built, err = l.builder.Build(ctx, p, files)
		return err
	})
	return built, err
}

// IsSlow reports whether the last build of a pipeline took so long that nobody should wait for the next.
func (l *Limited) IsSlow(pipeline string) bool { return l.lanes.isSlow(pipeline) }

// buildLanes share the renderers out, so that pipelines whose renders hang or take long do not keep the others waiting. A render
// begins in the quick lane. One that is at it for longer than slowAfter while others wait has to leave it: for the slow
// lane, which has places of its own, or, where these are taken, it is stopped and begins again when there is one. A
// pipeline that is known to be slow takes a place in the quick lane only while nobody else wants it.
type buildLanes struct {
	quick, slow chan struct{}
	after       time.Duration // slowAfter, except in tests

	mu      sync.Mutex
	waiting int             // for the quick lane
	wanted  chan struct{}   // closed when somebody begins to wait
	known   map[string]bool // pipelines that were slow the last time
}

// slowAfter is when a render counts as slow. Most take some milliseconds.
const slowAfter = 3 * time.Second

// errMakeWay is why a render is stopped that has to leave the quick lane.
var errMakeWay = errors.New("the render makes way for others and begins again")

func newLanes(workers int) *buildLanes {
	workers = max(1, workers)
	return &buildLanes{
		after: slowAfter, quick: make(chan struct{}, workers), slow: make(chan struct{}, max(1, workers/2)),
		wanted: make(chan struct{}), known: map[string]bool{},
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
func (l *buildLanes) runInLane(ctx context.Context, pipeline string, do func(context.Context) error) error {
	stay := l.after
	if l.isSlow(pipeline) {
		stay = 0
	}
	at, err := l.takeSlot(ctx, stay == 0)
	if err != nil {
		return err
	}
	if at == l.quick {
		left, err := l.inQuick(ctx, pipeline, stay, do)
		if !left {
			return err
		}
		select {
		case l.slow <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-l.slow }()
	return l.runTimed(ctx, pipeline, do)
}

func (l *buildLanes) runTimed(ctx context.Context, pipeline string, do func(context.Context) error) error {
	start := time.Now()
	err := do(ctx)
	l.noteDuration(pipeline, time.Since(start))
	return err
}

// takeSlot waits for a place. One that is slow waits for either lane, and not ahead of others for the quick one.
func (l *buildLanes) takeSlot(ctx context.Context, slow bool) (chan struct{}, error) {
	if slow {
		select {
		case l.slow <- struct{}{}:
			return l.slow, nil
		default:
		}
		quick := l.quick
		if l.hasWaiting() {
			quick = nil
		}
		select {
		case quick <- struct{}{}:
			return l.quick, nil
		case l.slow <- struct{}{}:
			return l.slow, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	select {
	case l.quick <- struct{}{}:
		return l.quick, nil
	default:
	}
	l.addWaiting(1)
	defer l.addWaiting(-1)
	select {
	case l.quick <- struct{}{}:
		return l.quick, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *buildLanes) addWaiting(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting += n; n > 0 {
		close(l.wanted)
		l.wanted = make(chan struct{})
	}
}

func (l *buildLanes) hasWaiting() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting > 0
}

// inQuick calls do in the quick lane, whose place it gives back. It says that do had to leave before it was done.
func (l *buildLanes) inQuick(ctx context.Context, pipeline string, stay time.Duration, do func(context.Context) error) (left bool, err error) {
	doing, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	ended := make(chan struct{})
	moved := make(chan bool, 1)
	go func() { moved <- l.watchRender(ended, stay, func() { stop(errMakeWay) }) }()
	err = l.runTimed(doing, pipeline, do)
	close(ended)
	if <-moved {
		<-l.slow
	} else {
		<-l.quick
	}
	if err != nil && errors.Is(context.Cause(doing), errMakeWay) && ctx.Err() == nil {
		l.noteDuration(pipeline, l.after)
		return true, nil
	}
	return false, err
}

// watchRender looks after a render in the quick lane: when its time is up and others wait, it moves it to the slow lane, or stops
// it where that is full. It says whether the place that the render has is one of the slow lane.
func (l *buildLanes) watchRender(ended <-chan struct{}, stay time.Duration, leave func()) (moved bool) {
	timer := time.NewTimer(stay)
	defer timer.Stop()
	select {
	case <-ended:
		return false
	case <-timer.C:
	}
	for {
		l.mu.Lock()
		crowded, wanted := l.waiting > 0, l.wanted
		l.mu.Unlock()
		if crowded {
			select {
			case l.slow <- struct{}{}:
				<-l.quick
				return true
			default:
				leave()
				return false
			}
		}
		select {
		case <-ended:
			return false
		case <-wanted:
		}
	}
}
