// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/run"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/review/preview"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/telemetry"
)

// Options beside the configuration.
type Options struct {
	// Version of Prerig.
	Version string
	// Log.
	Log *slog.Logger
	// Render is for tests.
	Render render.Options
	// Watchdog has limits for tests; its Log and LeftBehind are set. Nil for the usual ones.
	Watchdog *watchdog.Watchdog
	// Reload has Serve look for changed pipelines each time that something comes. It may be nil.
	Reload <-chan os.Signal
	// Listening is called with the addresses once they are open: of webhooks and of the page, the second empty without one.
	Listening func(hooks, admin string)
}

// components are what every process has.
type components struct {
	c       *config.Config
	o       Options
	queue   *queue.Queue
	catalog *catalog.Catalog
	fetcher *source.Fetcher
	pool    *render.Pool
	builder *build.Builder
	store   *status.Store
	runner  *run.Runner
	remover *prune.Remover
	preview *preview.Previewer
	metrics *telemetry.Metrics
	keeper  *prune.Keeper
	targets *publish.Targets

	promoter *promotion.Promoter
	dialer   *egress.Dialer
	secrets  secret.Reader
	cluster  *cluster // nil without one

	artifacts *externalartifact.Keeper // nil without one

	watchdog *watchdog.Watchdog
	planner  *plan.Planner // nil where this process does not plan
	workers  workerWatch
}

// Serve receives events, plans and, unless there are no workers, runs jobs until ctx is done. After the disk was
// full, it restarts by itself.
func Serve(ctx context.Context, c *config.Config, o Options) error {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	limitMemory("/", o.Log)
	for again := false; ; again = true {
		err := serveOnce(ctx, c, o)
		if ctx.Err() != nil {
			if err != nil {
				o.Log.Warn("the daemon was stopped while work was running", "error", err)
			}
			return nil
		}
		if err == nil || !again && !errors.Is(err, queue.ErrBroken) {
			return err
		}
		o.Log.Error("the daemon starts again", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}

func serveOnce(ctx context.Context, c *config.Config, o Options) error {
	var hooks net.Listener
	if c.NATS.URL != "" {
		// A cluster that has just lost a node needs some seconds: who sends meanwhile waits, and is not turned away. An embedded
		// queue may have to wait for the end of a process that still has the address.
		var err error
		if hooks, err = listenHooks(c); err != nil {
			return err
		}
		defer hooks.Close()
	}
	p, closing, err := openComponents(ctx, c, o, false)
	if err != nil {
		return err
	}
	defer closing()
	planner := p.newPlanner()
	p.planner = planner
	all := ctx
	running, end := context.WithCancel(all)
	defer end()
	group, ctx := errgroup.WithContext(running)
	p.planAfterwards(ctx, planner)
	archives, err := p.listenArtifacts()
	if err == nil {
		err = p.openListeners(ctx, group, planner, hooks)
	}
	if err != nil {
		// What is open already must not keep the addresses from the next start.
		end()
		closeListener(archives)
		_ = group.Wait()
		return err
	}
	p.startWork(ctx, group, planner)
	p.serveArtifacts(ctx, group, archives)
	return p.waitForGroup(all, ctx, group)
}

// newPlanner returns the planner of all components.
func (p *components) newPlanner() *plan.Planner {
	return &plan.Planner{
		Catalog: p.catalog, PipelinesDir: p.c.Pipelines, Fetcher: p.fetcher, Secrets: p.secrets, Artifacts: p.artifacts, Builder: p.builder, Store: p.store, Queue: p.queue,
		Debounce: p.c.Debounce, Watchdog: p.watchdog, Log: p.o.Log,
	}
}

// planAfterwards makes what has pipelines planned that others have left or promoted.
func (p *components) planAfterwards(ctx context.Context, planner *plan.Planner) {
	p.keeper = &prune.Keeper{
		Catalog: p.catalog, Store: p.store, Queue: p.queue, Delay: p.c.Removals.Delay, MaxShare: p.c.Removals.MaxShare, Log: p.o.Log,
		Plan: func(pipelines []string, reason string) {
			go p.planUntilAccepted(ctx, planner, pipelines, newCause(reason))
		},
	}
	p.promoter = &promotion.Promoter{Catalog: p.catalog, Store: p.store, Queue: p.queue, Targets: p.targets, Log: p.o.Log}
	p.promoter.Consider = func(ctx context.Context, pipelines []string, reason string) error {
		cause := newCause(reason)
		cause.Drift, cause.Moved, cause.Now = true, true, true
		return planner.Consider(ctx, pipelines, cause)
	}
}

// startWork starts all background work, which runs until ctx is done.
func (p *components) startWork(ctx context.Context, group *errgroup.Group, planner *plan.Planner) {
	p.watchFiles(ctx, group, planner)
	p.followCluster(ctx, group, planner)
	if p.c.Workers > 0 {
		group.Go(func() error { return p.queue.Work(ctx, p.c.InFlight, p.handleJob) })
		p.runPreviews(ctx, group)
	}
	group.Go(func() error {
		return p.queue.Events(ctx, eventSlots, func(ctx context.Context, e event.Event, stored time.Time) error {
			return p.handleEvent(ctx, planner, e, stored)
		})
	})
	group.Go(func() error { return p.queue.Watch(ctx) })
	group.Go(func() error { p.watchWorkers(ctx); return nil })
	p.watchClusters(ctx, group)
	group.Go(func() error { p.keeper.Run(ctx); return nil })
	group.Go(func() error { p.promoter.Run(ctx); return nil })
	group.Go(func() error { planner.Timer(ctx); return nil })
	group.Go(func() error { p.reloadWhenAsked(ctx, planner); return nil })
	group.Go(func() error {
		// While the daemon was down, events may have been missed and pipelines removed.
		p.checkRemovals(ctx)
		p.planUntilAccepted(ctx, planner, entryKeys(p.catalog.All()), newCause("start"))
		return nil
	})
}

// Work runs jobs that another process has planned until ctx is done.
func Work(ctx context.Context, c *config.Config, o Options) error {
	if c.NATS.URL == "" {
		return errors.New("configuration nats.url: must be given, as a worker shares the queue of others")
	}
	if c.Workers == 0 {
		return errors.New("configuration workers: must be more than 0 for a worker")
	}
	if o.Log != nil {
		limitMemory("/", o.Log)
	}
	p, closing, err := openComponents(ctx, c, o, true)
	if err != nil {
		return err
	}
	defer closing()
	all := ctx
	group, ctx := errgroup.WithContext(all)
	group.Go(func() error { return p.queue.Work(ctx, c.InFlight, p.handleJob) })
	p.runPreviews(ctx, group)
	group.Go(func() error { return p.catalog.Watch(ctx, func(string) {}) })
	group.Go(func() error { p.catalog.Poll(ctx); return nil })
	p.joinCluster(ctx, group)
	return p.waitForGroup(all, ctx, group)
}

// eventSlots is how many events are planned at the same time: a source that does not answer must not hold up others.
const eventSlots = 32

// openComponents opens everything. On the way back from an error it closes what is open.
func openComponents(ctx context.Context, c *config.Config, o Options, worker bool) (p *components, closing func(), err error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p = &components{c: c, o: o, metrics: telemetry.NewMetrics(o.Version)}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, nil, fmt.Errorf("making the state directory: %w", err)
	}
	limits, err := c.RenderLimits()
	if err != nil {
		return nil, nil, err
	}
	telemetry.TellTraceErrors(o.Log)
	stopTracing, err := telemetry.Trace(c.Tracing, o.Version)
	if err != nil {
		return nil, nil, err
	}
	if p.queue, err = openQueue(ctx, c, o.Log); err != nil {
		return nil, nil, err
	}
	storing, stopStoring := context.WithCancel(context.WithoutCancel(ctx))
	closing = func() {
		if p.runner != nil {
			sendLastNotices(p.runner, shutdownGrace, o.Log)
		}
		stopStoring()
		if p.pool != nil {
			p.pool.Close()
		}
		p.queue.Close()
		if p.artifacts != nil {
			_ = p.artifacts.Close()
		}
		flushing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = stopTracing(flushing)
	}
	if err := p.openRest(ctx, storing, limits, worker); err != nil {
		closing()
		return nil, nil, err
	}
	return p, closing, nil
}

// openRest opens what needs the queue.
func (p *components) openRest(ctx, storing context.Context, limits render.Limits, worker bool) error {
	c, o := p.c, p.o
	var err error
	if p.store, err = status.NewStore(storing, p.queue); err != nil {
		return err
	}
	reach, rules, err := c.ParsedEgress()
	if err != nil {
		return err
	}
	p.dialer = egress.NewDialer(rules)
	if err := p.openCluster(ctx, storing); err != nil {
		return err
	}
	p.fetcher = newFetcher(c, limits, p.dialer, reach, p.secrets)
	p.openWatchdog()
	if err := p.openCatalog(ctx, worker); err != nil {
		return err
	}
	if o.Render.Warm == 0 {
		o.Render.Warm = min(c.Workers, 4)
	}
	o.Render.Namespaces = p.reportNamespaceIsolation
	if p.pool, err = render.NewPool(o.Render); err != nil {
		return err
	}
	if c.Workers > 0 {
		go p.reportIsolation(storing)
	}
	bases, err := c.RemotePatterns()
	if err != nil {
		return err
	}
	secrets := p.secrets
	charts := chart.New(chart.Options{StateDir: c.State, Secrets: secrets, Dialer: p.dialer, Sources: reach.Sources})
	p.builder = &build.Builder{Renderer: p.pool, Validator: gate.InstalledValidator(), Policies: c.Policies, Limits: limits, Repositories: p.fetcher, Charts: charts, Bases: bases, Cache: p.openBuildCache(), Objects: p.policyObjects(), Cluster: p.policyCompleter(), Version: o.Version}
	targets := publish.NewTargets(p.fetcher, secrets, p.queue.Lock, limits.Read, p.watchdog)
	targets.Hosts = publish.NewHosts(secrets, p.dialer)
	targets.Turn = promotion.TurnsOf(p.store)
	targets.LimitRuns(c.InFlight)
	if err := p.openArtifacts(); err != nil {
		return err
	}
	targets.Artifacts = p.artifacts
	p.targets = targets
	p.remover = &prune.Remover{Catalog: p.catalog, Store: p.store, Queue: p.queue, Targets: targets, Version: o.Version, Log: o.Log}
	p.runner = run.New(run.Options{
		Catalog: p.catalog, PipelinesDir: c.Pipelines, Fetcher: p.fetcher, Targets: targets, Remover: p.remover, Builder: p.builder,
		Store: p.store, Queue: p.queue, Notifier: p.newNotifier(secrets), Workers: c.Workers, Teams: p.rendererTeams(), History: c.History, ExternalURL: c.ExternalURL,
		Observe: p.metrics.Run, ReadCluster: p.readCluster, Watchdog: p.watchdog, Log: o.Log,
	})
	if err := p.openPreviews(reach, limits, secrets); err != nil {
		return err
	}
	return nil
}

// newNotifier returns what sends notifications, and counts them.
func (p *components) newNotifier(secrets secret.Reader) *notify.Notifier {
	n := notify.New(secrets, p.dialer)
	n.Observe = p.metrics.Notification
	return n
}

// rendererTeams are who shares the renderers: tenants, and namespaces that belong to none.
func (p *components) rendererTeams() build.Teams {
	return build.Teams{
		Of: func(namespace string) string {
			if team := p.catalog.TenantOfNamespace(namespace); team != "" {
				return team
			}
			return namespace
		},
		Reserve: p.catalog.Tenants() > 1,
	}
}

// newFetcher returns what reads sources, with limits that follow from those of the renderer.
func newFetcher(c *config.Config, limits render.Limits, dialer *egress.Dialer, reach tenant.Reach, secrets secret.Reader) *source.Fetcher {
	artifacts := oci.DefaultLimits()
	artifacts.Tree = tree.Limits{FileBytes: limits.Read.FileBytes, TotalBytes: artifacts.Tree.TotalBytes, Files: artifacts.Tree.Files, Entries: artifacts.Tree.Entries}
	return source.New(source.Options{
		StateDir: c.State, Secrets: secrets, AllowDir: c.AllowLocal, OCI: artifacts, Dialer: dialer, Sources: reach.Sources,
	})
}

// newCause is one that no event is.
func newCause(reason string) plan.Cause {
	return plan.Cause{ID: rand.Text(), Reason: reason, Since: time.Now()}
}

func entryKeys(entries []catalog.Entry) []string {
	var out []string
	for _, e := range entries {
		out = append(out, e.Key)
	}
	return out
}
