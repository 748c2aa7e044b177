// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
)

// Planner asks for runs. It is safe for concurrent use.
type Planner struct {
	// Catalog is the pipelines, PipelinesDir the directory that they are from.
	Catalog      *catalog.Catalog
	PipelinesDir string
	// Fetcher polls sources, Builder determines the changes.
	Fetcher *source.Fetcher
	// Secrets reads the secrets of the places that are published to; it may be nil.
	Secrets secret.Reader
	// Artifacts keeps the published ExternalArtifacts; nil if none are published.
	Artifacts *externalartifact.Keeper
	Builder   *build.Builder
	Store     *status.Store
	Queue     *queue.Queue
	// Debounce is the least time between two runs of a pipeline that events ask for.
	Debounce time.Duration
	// Watchdog abandons hanging polls of sources; with nil they are abandoned, too, but not reported.
	Watchdog *watchdog.Watchdog
	Log      *slog.Logger

	unchanged build.UnchangedCache

	unresponsiveTargets unresponsiveSources // by their URLs
	targetWait          time.Duration       // 0 for targetTimeout
	batchWait           time.Duration       // 0 for the constant batchWait

	shared     *source.Shared // looks that pipelines with several sources have in common
	shareLooks sync.Once

	postponed []string // pipelines that are due, and whose sources the timer is at; only the timer uses it

	requesting sync.RWMutex // read while a run is asked for, locked to note a look

	sources sourceTable

	mu        sync.Mutex
	next      map[string]time.Time // when a pipeline may run again
	looked    map[string]time.Time // when a pipeline's source was looked at last
	intervals map[string]time.Time // sources that the timer is at, and since which tick
	timing    time.Time            // when the timer began
}

// Cause is why pipelines are looked at.
type Cause struct {
	// ID is included in every log line from here to the commit, Reason is for people.
	ID, Reason string
	// Since is when it came.
	Since time.Time
	// Drift also looks at what is published.
	Drift bool
	// Moved reports whether a published branch has moved, so that runs in progress may have read it too early.
	Moved bool
	// Now does not wait for further events.
	Now bool

	answered func()              // called when a source has answered, or will not, and what is published is looked at
	planned  func(source string) // called when a source was planned; may be nil
}

// Event plans for one event.
func (p *Planner) Event(ctx context.Context, e event.Event, stored time.Time) error {
	touched := p.Catalog.Match(e.Changes)
	if err := p.Consider(ctx, touched, CauseOf(e, stored)); err != nil {
		return err
	}
	return p.EventAtTargets(ctx, e, stored, touched)
}

// EventAtTargets plans for those pipelines that an event concerns where they publish to, but those that were considered already, which are
// sorted.
func (p *Planner) EventAtTargets(ctx context.Context, e event.Event, stored time.Time, considered []string) error {
	proposed := slices.DeleteFunc(p.Catalog.MatchProposed(e.Changes), func(key string) bool {
		_, found := slices.BinarySearch(considered, key)
		return found
	})
	cause := CauseOf(e, stored)
	cause.Drift, cause.Moved = true, true
	return p.Consider(ctx, proposed, cause)
}

// CauseOf is the cause that an event is.
func CauseOf(e event.Event, stored time.Time) Cause {
	return Cause{ID: e.ID, Reason: "event from " + e.Receiver, Since: stored}
}

// fetchTimeout is how long a source may take to answer. After that its pipelines run anyway, and report the problem
// in their status. Few events are planned at the same time, so it is short.
const fetchTimeout = 10 * time.Second

// Consider requests a run of those pipelines whose result would differ. An error means that the queue could not be
// asked; no event is lost if the same keys are considered again.
func (p *Planner) Consider(ctx context.Context, keys []string, cause Cause) error {
	entries := p.runnableEntries(keys)
	if len(entries) == 0 {
		return nil
	}
	ctx, span := otel.Tracer("prerig").Start(ctx, "plan")
	defer span.End()
	span.SetAttributes(attribute.String("prerig.id", cause.ID), attribute.Int("prerig.pipelines", len(entries)))
	begun, err := p.findBegun(ctx)
	if err != nil {
		return err
	}
	trace, count := queue.TraceOf(ctx), 0
	for jobs := range p.planSources(ctx, entries, begun, cause) {
		count += len(jobs)
		batch := p.batchSize(jobs, begun.before)
		for i := range jobs {
			jobs[i].Batch, jobs[i].Trace = batch, trace
			if !cause.Now {
				jobs[i].NotBefore = p.earliestRunTime(jobs[i].Pipeline)
			}
			if err := p.requestRun(ctx, jobs[i]); err != nil {
				return err
			}
		}
	}
	if err := begun.queueError(); err != nil {
		return err
	}
	p.Log.Info("planned", "id", cause.ID, "reason", cause.Reason, "looked at", len(entries), "to run", count, "took", time.Since(cause.Since))
	return nil
}

// runnableEntries returns the pipelines that could run.
func (p *Planner) runnableEntries(keys []string) []catalog.Entry {
	found, gone := p.Catalog.GetAll(keys)
	for _, key := range gone {
		p.forgetPipeline(key)
	}
	return slices.DeleteFunc(found, func(e catalog.Entry) bool { return e.Err != nil })
}

// planSources polls each source once and yields the jobs to run, in one batch if all sources answer soon.
func (p *Planner) planSources(ctx context.Context, entries []catalog.Entry, begun *begunJobs, cause Cause) iter.Seq[[]queue.Job] {
	groups := map[string][]catalog.Entry{}
	var order []string
	for _, e := range entries {
		key := p.sources.keyOf(e, p.PipelinesDir)
		if _, ok := groups[key]; !ok {
			order = append(order, key)
		}
		groups[key] = append(groups[key], e)
	}
	order = byTurns(order, func(key string) string { return groups[key][0].Scope().Team() })
	return collectJobs(len(order), cmp.Or(p.batchWait, batchWait), func(i int, answered func()) []queue.Job {
		cause := cause
		cause.answered = answered
		if cause.planned != nil {
			defer cause.planned(order[i])
		}
		return p.planSourceSafely(ctx, order[i], groups[order[i]], begun, cause)
	})
}

// byTurns orders sources so that teams take turns: the many slow sources of one do not keep those of others waiting.
func byTurns(sources []string, teamOf func(source string) string) []string {
	turn, seen := map[string]int{}, map[string]int{}
	for _, source := range sources {
		team := teamOf(source)
		turn[source] = seen[team]
		seen[team]++
	}
	out := slices.Clone(sources)
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(turn[a], turn[b]) })
	return out
}

// planTimeout bounds the look at one source and what is worked out of it for its pipelines.
const planTimeout = 5 * time.Minute

// planSourceSafely plans the pipelines of one source, and requests runs of all of them if that panics or hangs: the
// runs will report the problem. Otherwise the event would be redelivered after each start, and block all other
// planning forever.
func (p *Planner) planSourceSafely(ctx context.Context, key string, entries []catalog.Entry, begun *begunJobs, cause Cause) (jobs []queue.Job) {
	step := watchdog.Step{Name: watchdog.StepPlan, Subject: entries[0].Key, Limit: planTimeout}
	jobs, err := watchdog.Run(ctx, p.Watchdog, step, func(ctx context.Context) ([]queue.Job, error) {
		return p.planSource(ctx, key, entries, begun, cause), nil
	})
	if err == nil {
		return jobs
	}
	if stack, ok := fault.StackOf(err); ok {
		p.Log.Error("looking at a source has panicked", "id", cause.ID, "pipelines", len(entries), "error", err, "stack", stack)
	} else {
		p.Log.Warn("polling a source hangs; the status of its pipelines has the reason", "id", cause.ID, "pipelines", len(entries), "error", err)
	}
	for _, e := range entries {
		job := cause.newJob(e)
		if !e.Pipeline.Spec.Suspend && !p.Store.Control(e.Key).Suspended {
			jobs = append(jobs, job)
		}
	}
	return jobs
}

// newJob returns a job for the cause. If a published branch has moved, the published output is checked in any case:
// no other event reports that.
func (c Cause) newJob(e catalog.Entry) queue.Job {
	return queue.Job{Pipeline: e.Key, Cause: c.ID, Reason: c.Reason, Since: c.Since, Spec: e.Digest, Drift: c.Drift && c.Moved}
}

// forgetPipeline drops the memory of a removed pipeline.
func (p *Planner) forgetPipeline(key string) {
	p.unchanged.Forget(key)
	p.sources.forgetPipeline(key)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, key)
	delete(p.looked, key)
}

// planSource plans for the pipelines of one source, one group at a time for each source.
func (p *Planner) planSource(ctx context.Context, key string, entries []catalog.Entry, begun *begunJobs, cause Cause) []queue.Job {
	defer p.sources.release(key) // after its turn is released
	done, err := p.sources.unresponsive.acquirePollTurn(ctx, key, p.sources.acquire(key))
	done = sync.OnceFunc(done)
	defer done()
	resolved, stored := time.Now(), p.Store.Seen()
	settled := p.sources.lastSettled(key, entries, cause)
	var rendered []*status.State
	if settled == nil {
		rendered = statesOf(p.Store, entries)
	}
	looking, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	first := entries[0]
	var snapshot *source.Snapshot
	if err == nil {
		snapshot, err = p.fetchSafely(looking, key, first)
	}
	if err != nil && looking.Err() != nil && ctx.Err() == nil {
		p.sources.unresponsive.markUnresponsive(key)
	}
	if err != nil {
		p.Log.Warn("a source could not be polled; the status of its pipelines has the reason", "id", cause.ID, "pipelines", len(entries), "error", err)
	}
	if snapshot != nil {
		p.sources.unresponsive.recordSourceAnswer(key)
		p.recordSourcePoll(entries, resolved)
	}
	if cause.Drift {
		done() // the servers that are published to may be slow, and what is known of the source stays as it is
		cause.answered()
	}
	pending, ok := begun.pendingJobsAmong(ctx, entries)
	if !ok {
		return nil // the whole plan is made again
	}
	some, ok := settled.pipelinesToExamine(p, snapshot, pending)
	if ok {
		entries = some.entries
	}
	if rendered == nil {
		rendered = statesBefore(p.Store, entries, stored)
	}
	look := p.unchanged.At(p.Builder, snapshot)
	plan := sourcePlan{p: p, snapshot: snapshot, resolved: resolved, look: look, pending: pending, cause: cause, open: map[string]bool{}}
	plan.planEntries(ctx, entries, rendered)
	switch {
	case cause.Drift: // it asks for more than others do
	case snapshot == nil:
		p.sources.setSettled(key, nil)
	case ok:
		settled.recordPartialCheck(look, some, plan.open)
	default:
		p.sources.setSettled(key, &settledSource{entries: entries, stored: stored, unneeded: look.Unneeded(), open: plan.open})
	}
	return plan.jobs
}

// recordSourcePoll notes when the source of pipelines was looked at. The caller has the source's turn, so the last one
// noted is the newest.
func (p *Planner) recordSourcePoll(entries []catalog.Entry, at time.Time) {
	p.requesting.Lock()
	defer p.requesting.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.looked == nil {
		p.looked = map[string]time.Time{}
	}
	for _, e := range entries {
		p.looked[e.Key] = at
	}
}

// dropOldRevision removes the revision from a job whose source was polled again before the job was requested, since
// a plan waits for slow sources. That poll may have found that no run is needed, and this job would restore the
// earlier revision.
func (p *Planner) dropOldRevision(job *queue.Job) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.looked[job.Pipeline].Equal(job.Resolved) {
		job.Revision, job.Resolved, job.Mounted = "", time.Time{}, nil
	}
}

// statesOf returns the current states of pipelines, for their record of the last render; see queue.Job.
func statesOf(store *status.Store, entries []catalog.Entry) []*status.State {
	out := make([]*status.State, len(entries))
	for i, e := range entries {
		out[i] = store.Get(e.Key)
	}
	return out
}

// sourceHadFailed reports whether a pipeline's status records a source that did not answer.
func sourceHadFailed(state *status.State) bool {
	c := state.Condition()
	return c != nil && c.Reason == "SourceFailed"
}

// earliestRunTime returns when a pipeline may run: at once if it has not run recently, otherwise when the minimum
// interval has passed. Further events do not postpone that, so that a busy repository is still rendered.
func (p *Planner) earliestRunTime(key string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = map[string]time.Time{}
	}
	now := time.Now()
	if next := p.next[key]; now.Before(next) {
		return next
	}
	p.next[key] = now.Add(p.Debounce)
	return now
}
