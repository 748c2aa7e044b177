// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Side is what one kind of pull requests is rendered with.
type Side struct {
	// Fetcher and Builder fetch sources, remote bases and charts, and build. Secrets are for places that are compared
	// with.
	Fetcher *source.Fetcher
	Builder *build.Builder
	Secrets secret.Reader
	// Artifacts has what is published as ExternalArtifacts; nil means that it is not known.
	Artifacts *externalartifact.Keeper
}

// Options of a Previewer.
type Options struct {
	// Catalog is the pipelines, PipelinesDir the directory that they are from.
	Catalog      *catalog.Catalog
	PipelinesDir string
	// Store keeps what is known of previews, Queue locks.
	Store *status.Store
	Queue *queue.Queue
	// Heads fetches heads, apart from the sources of pipelines.
	Heads *source.Fetcher
	// Own is for heads in the repository itself, Forks for others: it has no secrets.
	Own, Forks Side
	// WhenIdle calls a function while no other render is wanted, see build.Limited.
	WhenIdle func(ctx context.Context, do func(context.Context) error) error
	// Host opens the host of a pipeline's pull requests.
	Host func(ctx context.Context, p *v1alpha1.RenderPipeline) (pullrequest.Conversation, error)
	// AtOnce is how many pull requests are previewed at the same time.
	AtOnce int
	// MaxKept bounds, in bytes, what Heads and Forks each keep of repositories; 0 means no limit. The oldest
	// fetched data is removed first.
	MaxKept int64
	// ExternalURL is where the web page is, "" for nowhere that others reach.
	ExternalURL string
	// Watchdog abandons what hangs; nil does so too, without reporting.
	Watchdog *watchdog.Watchdog
	// Log.
	Log *slog.Logger
}

// Previewer previews pull requests. It is safe for concurrent use.
type Previewer struct {
	Options
	wake chan struct{}

	mu      sync.Mutex
	running map[string]*running
	// grown reports whether data may have been fetched since the size was last checked, full whether no preview
	// begins until some of it is removed.
	grown, full bool
	// pauses holds the pauses of previews that could not proceed: another process works on them, or the store
	// cannot be read.
	pauses map[string]pause
}

// pause is until when something is left alone, and how long the last pause was.
type pause struct {
	until time.Time
	took  time.Duration
}

// running is a preview that is under way in this process.
type running struct {
	fork  bool
	group string
	stop  context.CancelCauseFunc
}

// New returns a Previewer.
func New(o Options) *Previewer {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Previewer{Options: o, wake: make(chan struct{}, 1), running: map[string]*running{},
		pauses: map[string]pause{}, grown: true}
}

const (
	// lookEvery is how often it is looked for what others have noted, or is to be tried again.
	lookEvery = 2 * time.Second
	// sweepEvery is how often previews whose pipelines were deleted are searched.
	sweepEvery = 24 * time.Hour
	// maxKept bounds how many open pull requests of one repository are known for one namespace.
	maxKept = 1000
	// pauseForks is the least time between the end of a preview of a fork's pull request, or of one that failed, and
	// the beginning of its next.
	pauseForks = 20 * time.Second
	// minPause and maxPause bound how long a preview that could not proceed is left alone.
	minPause, maxPause = 2 * time.Second, time.Minute
)

// errMakeWay is why the preview of a fork's pull request is stopped.
var errMakeWay = errors.New("a pull request of the repository itself goes first")

// isEarly reports whether a preview has to wait. No wait is longer than a host may request: a time further ahead
// was recorded before the clock was set back.
func isEarly(one *status.Preview, now time.Time) bool {
	return now.Before(one.NotBefore) && one.NotBefore.Sub(now) <= pullrequest.LongestWait
}

// isPaused reports whether the next preview has to wait for a while after the last.
func isPaused(one *status.Preview) bool { return (one.Fork || one.Failed) && !one.Ended.IsZero() }

// Note stores which pull requests an event is about, so that no part of it is lost when it returns nil.
func (p *Previewer) Note(ctx context.Context, e event.Event, stored time.Time) error {
	for _, change := range e.Changes {
		if change.Pull == nil {
			continue
		}
		noted := map[string]bool{}
		for _, key := range p.Catalog.MatchPull(change.Pull) {
			entry, ok := p.Catalog.Get(key)
			if !ok || entry.Pipeline == nil || entry.Pipeline.Spec.Preview == nil {
				continue
			}
			namespace, repository := entry.Pipeline.Metadata.Namespace, entry.Pipeline.Spec.Source.Git.URL
			group := status.PreviewGroup(namespace, repository)
			if noted[group] {
				continue
			}
			noted[group] = true
			if err := p.schedulePreview(ctx, &status.Preview{Namespace: namespace, Repository: repository, Number: change.Pull.Number, Since: stored, Cause: e.ID, Wanted: stored}); err != nil {
				return err
			}
		}
	}
	p.wakeRunLoop()
	return nil
}

// schedulePreview has a pull request previewed again.
func (p *Previewer) schedulePreview(ctx context.Context, fresh *status.Preview) error {
	key := fresh.Key()
	if p.Store.Preview(key) == nil && p.countStoredPreviews(status.PreviewGroup(fresh.Namespace, fresh.Repository)) >= maxKept && !p.dropFork(ctx, fresh) {
		p.Log.Warn("a pull request is not previewed, as too many are open", "preview", key, "open", maxKept)
		return nil
	}
	err := p.Store.ChangePreview(ctx, key, func(was *status.Preview) *status.Preview {
		if was == nil {
			return fresh
		}
		if !fresh.Wanted.After(was.Wanted) {
			fresh.Wanted = was.Wanted.Add(1)
		}
		was.Cause, was.Wanted, was.Tries, was.NotBefore = fresh.Cause, fresh.Wanted, 0, was.HostAfter
		if paused := was.Ended.Add(pauseForks); isPaused(was) && was.NotBefore.Before(paused) {
			was.NotBefore = paused
		}
		return was
	})
	if errors.Is(err, queue.ErrChanged) {
		return p.schedulePreview(ctx, fresh)
	}
	return err
}

func (p *Previewer) countStoredPreviews(group string) (count int) {
	for _, key := range p.Store.Previews() {
		if strings.HasPrefix(key, group) {
			count++
		}
	}
	return count
}

// wakeRunLoop has Run look at once.
func (p *Previewer) wakeRunLoop() {
	select {
	case p.wake <- struct{}{}:
	default: // it is about to
	}
}

// Run previews until ctx is done, and returns when what was under way has ended. What has not ended begins again after
// the next start.
func (p *Previewer) Run(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	ticker, daily := time.NewTicker(lookEvery), time.NewTicker(sweepEvery)
	defer ticker.Stop()
	defer daily.Stop()
	for ctx.Err() == nil {
		p.makeRoom(ctx)
		for _, one := range p.duePreviews(time.Now()) {
			if run, working := p.beginIfRoom(ctx, one); run != nil {
				all.Go(func() {
					p.finishRunningPreview(one.Key(), run, p.previewPullRequest(working, one))
				})
			}
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		case <-daily.C:
			p.recheckOrphanedPreviews(ctx)
		case <-p.wake:
		}
	}
}

// recheckOrphanedPreviews checks previews again whose pipelines no longer exist, and which no event will be about, so
// that they are dropped.
func (p *Previewer) recheckOrphanedPreviews(ctx context.Context) {
	for _, key := range p.Store.Previews() {
		one := p.Store.Preview(key)
		if one == nil || !one.Wanted.IsZero() || len(p.entriesOf(one)) > 0 {
			continue
		}
		one.Wanted = time.Now().UTC()
		if err := p.schedulePreview(ctx, one); err != nil && ctx.Err() == nil {
			p.Log.Warn("a preview without pipelines is kept for longer", "preview", key, "error", err)
		}
	}
}

// duePreviews returns the previews that are to begin, those of forks last. One that is under way ends before it begins
// again, whatever has happened since: events that keep coming must not keep it from ending.
func (p *Previewer) duePreviews(now time.Time) (out []*status.Preview) {
	p.mu.Lock()
	maps.DeleteFunc(p.pauses, func(key string, one pause) bool { return p.running[key] == nil && now.After(one.until.Add(maxPause)) })
	p.mu.Unlock()
	for _, key := range p.Store.Previews() {
		one := p.Store.Preview(key)
		if one == nil || one.Wanted.IsZero() {
			continue
		}
		p.mu.Lock()
		run, until := p.running[key], p.pauses[key].until
		p.mu.Unlock()
		if run == nil && !isEarly(one, now) && !now.Before(until) {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b *status.Preview) int {
		if a.Fork != b.Fork {
			return map[bool]int{true: 1, false: -1}[a.Fork]
		}
		return cmp.Or(a.Wanted.Compare(b.Wanted), cmp.Compare(a.Number, b.Number))
	})
	return out
}

// beginIfRoom records that a preview is under way, or returns nil without room for it. Forks leave room for
// others if the limit is more than one, and are stopped for them if it is not. They do not count against the limit of
// the repository itself.
func (p *Previewer) beginIfRoom(ctx context.Context, one *status.Preview) (*running, context.Context) {
	group := status.PreviewGroup(one.Namespace, one.Repository)
	most := p.previewConcurrencyLimit(one)
	p.mu.Lock()
	defer p.mu.Unlock()
	forks, inGroup := 0, 0
	var lesser *running
	for _, other := range p.running {
		if other.fork {
			forks, lesser = forks+1, other
		}
		if other.group == group && (one.Fork || !other.fork) {
			inGroup++
		}
	}
	full := len(p.running) >= p.AtOnce
	switch {
	case p.full:
		return nil, nil
	case inGroup >= most, one.Fork && (full || forks >= max(1, p.AtOnce-1)):
		return nil, nil
	case full:
		if lesser != nil {
			lesser.stop(errMakeWay) // its end has this one looked for again
		}
		return nil, nil
	}
	working, stop := context.WithCancelCause(ctx)
	run := &running{fork: one.Fork, group: group, stop: stop}
	p.running[one.Key()] = run
	return run, working
}

// finishRunningPreview triggers the next look at once, unless the preview could not proceed.
func (p *Previewer) finishRunningPreview(key string, run *running, done bool) {
	run.stop(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, key)
	p.grown = true
	if p.full {
		p.wakeRunLoop()
	}
	if done {
		delete(p.pauses, key)
		p.wakeRunLoop()
		return
	}
	took := max(minPause, min(maxPause, 2*p.pauses[key].took))
	p.pauses[key] = pause{time.Now().Add(took), took}
}

// previewConcurrencyLimit returns how many pull requests are previewed concurrently for the pipelines of a preview: the
// strictest of their limits.
func (p *Previewer) previewConcurrencyLimit(one *status.Preview) int {
	most := 0
	for _, e := range p.entriesOf(one) {
		if n := e.Pipeline.Spec.Preview.Most; most == 0 || n < most {
			most = n
		}
	}
	return max(1, most)
}

// entriesOf returns the pipelines of a preview, whatever branch they follow.
func (p *Previewer) entriesOf(one *status.Preview) (out []catalog.Entry) {
	for _, key := range p.Catalog.MatchPull(&event.PullChange{URLs: []string{one.Repository}}) {
		e, ok := p.Catalog.Get(key)
		if !ok || e.Err != nil || e.Pipeline.Spec.Preview == nil || e.Pipeline.Metadata.Namespace != one.Namespace {
			continue
		}
		if giturl.Same(e.Pipeline.Spec.Source.Git.URL, one.Repository) && !e.Pipeline.Spec.Suspend &&
			!p.Store.Control(key).Suspended {
			out = append(out, e)
		}
	}
	return out
}
