// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/build/cache"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
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
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/chart"
	"github.com/prerig/prerig/pipeline/source/giturl"
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
	config    *config.Config
	options   Options
	metrics   *telemetry.Metrics
	queue     *queue.Queue
	store     *status.Store
	watchdog  *watchdog.Watchdog
	dialer    *egress.Dialer
	cluster   *cluster // nil without one
	secrets   secret.Reader
	fetcher   *source.Fetcher
	catalog   *catalog.Catalog
	pool      *render.Pool
	builder   *build.Builder
	artifacts *externalartifact.Keeper // nil without one
	targets   *publish.Targets
	remover   *prune.Remover
	runner    *run.Runner
	preview   *preview.Previewer
}

// Serve receives events, plans and, if it has workers, runs jobs until ctx is done. After the disk was
// full, or the servers of its queue have lost a stream, it restarts by itself.
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
		if err == nil || !again && !errors.Is(err, queue.ErrBroken) && !errors.Is(err, queue.ErrLost) {
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
	all := ctx
	running, end := context.WithCancel(all)
	defer end()
	group, ctx := errgroup.WithContext(running)
	clusters := newClusterWatchers(p)
	planned := newPlanning(ctx, p, clusters)
	workers := newWorkerWatch(p.queue, c.NATS.AckWait, o.Log)
	s, err := openServer(p, server.Options{
		Catalog: p.catalog, Store: p.store, Queue: p.queue,
		Planner: planned.planner, Keeper: planned.keeper, Promoter: planned.promoter,
		Problem:   func() error { return readinessProblem(c.State, p.queue, workers, planned.planner) },
		IsWaiting: workers.isWaiting, Clusters: verifiedClusters(clusters), Version: o.Version, Log: o.Log,
	})
	if err != nil {
		return err
	}
	registerPolledMetrics(p, planned, workers, s)
	if err = serveArtifacts(ctx, group, p); err == nil {
		err = openListeners(ctx, group, p, s, hooks)
	}
	if err != nil {
		// What is open already must not keep the addresses from the next start.
		end()
		_ = group.Wait()
		return err
	}
	startWork(ctx, group, p, planned)
	watchClusters(ctx, group, clusters)
	group.Go(func() error { workers.watchWorkers(ctx); return nil })
	return waitForGroup(all, ctx, group, o.Log)
}

// startWork starts all background work, which runs until ctx is done.
func startWork(ctx context.Context, group *errgroup.Group, p *components, planned *planning) {
	planned.watchFiles(ctx, group, p.config.Policies)
	if p.cluster != nil {
		p.cluster.followObjects(ctx, group, p, planned)
	}
	if p.config.Workers > 0 {
		runJobs(ctx, group, p)
	}
	group.Go(func() error { return p.queue.Events(ctx, eventSlots, planned.handleEvent) })
	group.Go(func() error { return p.queue.Watch(ctx) })
	group.Go(func() error { planned.keeper.Run(ctx); return nil })
	group.Go(func() error { planned.promoter.Run(ctx); return nil })
	group.Go(func() error { planned.planner.Timer(ctx); return nil })
	group.Go(func() error { planned.reloadWhenAsked(ctx, p.options.Reload); return nil })
	group.Go(func() error {
		// While the daemon was down, events may have been missed and pipelines removed.
		planned.checkRemovals(ctx)
		var all []string
		for _, e := range p.catalog.All() {
			all = append(all, e.Key)
		}
		planned.planUntilAccepted(ctx, all, newCause("start"))
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	limitMemory("/", o.Log)
	p, closing, err := openComponents(ctx, c, o, true)
	if err != nil {
		return err
	}
	defer closing()
	all := ctx
	group, ctx := errgroup.WithContext(all)
	runJobs(ctx, group, p)
	group.Go(func() error { return p.queue.Watch(ctx) })
	group.Go(func() error { return p.catalog.Watch(ctx, func(string) {}) })
	group.Go(func() error { p.catalog.Poll(ctx); return nil })
	if p.cluster != nil {
		p.cluster.joinCluster(ctx, group, p)
	}
	return waitForGroup(all, ctx, group, o.Log)
}

// eventSlots is how many events are planned at the same time: a source that does not answer must not hold up others.
const eventSlots = 32

// openComponents opens everything. On the way back from an error it closes what is open.
func openComponents(ctx context.Context, c *config.Config, o Options, worker bool) (p *components, closing func(), err error) {
	p = &components{config: c, options: o, metrics: telemetry.NewMetrics(o.Version)}
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return nil, nil, c.Placed("state", fmt.Errorf("making the state directory: %w; choose a directory with --state", err))
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
	c, o := p.config, p.options
	var err error
	if p.store, err = status.NewStore(storing, p.queue); err != nil {
		return err
	}
	reach, rules, err := c.ParsedEgress()
	if err != nil {
		return err
	}
	p.dialer = egress.NewDialer(rules)
	if p.cluster, err = openCluster(ctx, storing, c, o, p.queue); err != nil {
		return err
	}
	p.secrets = newSecrets(c, p.cluster, &p.catalog)
	p.fetcher = newFetcher(c, limits, p.dialer, reach, p.secrets)
	p.watchdog = newWatchdog(o, p.metrics)
	if p.catalog, err = openCatalog(ctx, c, p.fetcher, p.store, p.cluster, worker, o.Log); err != nil {
		return err
	}
	if err := p.openBuilder(storing, limits, reach.Sources); err != nil {
		return err
	}
	if p.artifacts, err = openArtifacts(c, o, p.catalog, p.queue); err != nil {
		return err
	}
	p.targets = publish.NewTargets(p.fetcher, p.secrets, p.queue.Lock, limits.Read, p.watchdog)
	p.targets.Hosts = publish.NewHosts(p.secrets, p.dialer)
	p.targets.Turn = promotion.TurnsOf(p.store)
	p.targets.Artifacts = p.artifacts
	p.targets.LimitRuns(c.InFlight)
	p.remover = &prune.Remover{
		Catalog: p.catalog, Store: p.store, Queue: p.queue, Targets: p.targets, Version: o.Version, Log: o.Log,
	}
	p.runner = run.New(run.Options{
		Catalog: p.catalog, PipelinesDir: c.Pipelines, Fetcher: p.fetcher, Targets: p.targets, Remover: p.remover,
		Builder: p.builder, Store: p.store, Queue: p.queue, Notifier: newNotifier(p.secrets, p.dialer, p.metrics),
		Workers: c.Workers, Teams: rendererTeams(p.catalog), History: c.History, ExternalURL: c.ExternalURL,
		Observe: p.metrics.Run, ReadCluster: p.cluster.readAgain, Watchdog: p.watchdog, Log: o.Log,
	})
	p.preview, err = p.newPreviewer(reach, limits)
	return err
}

// openBuilder opens the pool of renderers and what builds with it. sources are the addresses that charts may be fetched from.
func (p *components) openBuilder(storing context.Context, limits render.Limits, sources []giturl.Pattern) error {
	c, o := p.config, p.options
	if o.Render.Warm == 0 {
		o.Render.Warm = min(c.Workers, 4)
	}
	o.Render.Namespaces = func(have bool, err error) { reportNamespaceIsolation(have, err, p.metrics, o.Log) }
	var err error
	if p.pool, err = render.NewPool(o.Render); err != nil {
		return err
	}
	validator := gate.InstalledValidator()
	if c.Workers > 0 {
		go reportIsolation(storing, p.pool, p.metrics, o.Log)
		if validator == nil {
			o.Log.Warn(gate.NotInstalled)
		}
	}
	bases, err := c.RemotePatterns()
	if err != nil {
		return err
	}
	p.builder = &build.Builder{
		Renderer: p.pool, Validator: validator, Policies: c.Policies, Limits: limits, Repositories: p.fetcher,
		Charts: chart.New(chart.Options{StateDir: c.State, Secrets: p.secrets, Dialer: p.dialer, Sources: sources}),
		Bases:  bases, Cache: openBuildCache(c, p.metrics, o.Log),
		Objects: p.cluster.policyObjects(), Cluster: p.cluster.policyCompleter(), Version: o.Version,
	}
	return nil
}

// openBuildCache returns the build cache, or nil if builds are not cached.
func openBuildCache(c *config.Config, metrics *telemetry.Metrics, log *slog.Logger) *build.Cache {
	size, err := c.BuildCacheSize()
	if err != nil || size == 0 || c.Workers == 0 {
		return nil // the configuration was checked
	}
	store := cache.Open(cache.Options{Dir: c.BuildCacheDir(), MaxBytes: size, Log: log})
	return &build.Cache{Store: store, Check: c.BuildCache.Check, Observe: metrics.Remembered}
}

// newWatchdog returns one that has what hangs logged and counted.
func newWatchdog(o Options, metrics *telemetry.Metrics) *watchdog.Watchdog {
	dog := &watchdog.Watchdog{Log: o.Log, LeftBehind: metrics.LeftBehind}
	if o.Watchdog != nil {
		dog.Grace, dog.Longest = o.Watchdog.Grace, o.Watchdog.Longest
	}
	return dog
}

// newNotifier returns what sends notifications, and counts them.
func newNotifier(secrets secret.Reader, dialer *egress.Dialer, metrics *telemetry.Metrics) *notify.Notifier {
	n := notify.New(secrets, dialer)
	n.Observe = metrics.Notification
	return n
}

// rendererTeams are who shares the renderers: tenants, and namespaces that belong to none.
func rendererTeams(pipelines *catalog.Catalog) build.Teams {
	return build.Teams{
		Of: func(namespace string) string {
			if team := pipelines.TenantOfNamespace(namespace); team != "" {
				return team
			}
			return namespace
		},
		Reserve: pipelines.Tenants() > 1,
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
