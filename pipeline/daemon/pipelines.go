// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"log/slog"
	"os"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/review/preview"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
)

// openCatalog reads the pipelines from the configured origins: files, repositories, and the cluster unless it is nil.
// A worker joins the other processes at their commits. An inspection has no store.
func openCatalog(
	ctx context.Context, c *config.Config, fetcher *source.Fetcher, store *status.Store, objects *cluster, worker bool, log *slog.Logger,
) (*catalog.Catalog, error) {
	rules, err := pipelineRules(c, store)
	if err != nil {
		return nil, err
	}
	var from []catalog.Origin
	if c.Pipelines != "" {
		from = append(from, catalog.Origin{Name: c.PipelinesName(), Dir: c.Pipelines})
	}
	for _, g := range c.Repositories() {
		var heads catalog.Heads = &ownHeads{}
		if store != nil {
			heads = store.Heads(g.Name)
		}
		one := catalog.Origin{Name: g.Name, Repository: repositoryOf(g, fetcher, heads, worker)}
		if one.Tenants, err = g.ParsedTenants(); err != nil {
			return nil, err
		}
		from = append(from, one)
	}
	if objects != nil {
		one := catalog.Origin{Name: c.ClusterName(), Objects: objects.watcher}
		// Tenants of the configuration that own the same namespaces define the permissions of their authors.
		if one.Name != "" {
			if one.Tenants, err = c.Kubernetes.ParsedTenants(); err != nil {
				return nil, err
			}
		}
		from = append(from, one)
	}
	return catalog.OpenAll(ctx, from, worker, log, rules)
}

// repositoryOf returns a repository of the configuration as the catalog reads it. A worker only follows the others.
func repositoryOf(g config.PipelinesGit, from *source.Fetcher, heads catalog.Heads, worker bool) *catalog.Repository {
	namespace, name := g.SecretName()
	interval := g.Interval
	if worker {
		interval = 0
	}
	return &catalog.Repository{
		URL: g.URL, Ref: g.RefName(), Path: g.Path, Interval: interval, Heads: heads,
		Open: func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
			return from.Repository(ctx, namespace, g.URL, referenceTo(name))
		},
	}
}

// pipelineRules are what the configuration and what is known of pipelines ask of each.
func pipelineRules(c *config.Config, store *status.Store) (catalog.Option, error) {
	tenants, err := c.ParsedTenants()
	if err != nil {
		return nil, err
	}
	reach, _, err := c.ParsedEgress()
	rules := catalog.Rules{Tenants: tenants, Reach: reach, AllowHostFiles: c.AllowHostFiles}
	if store != nil {
		rules.Registered = func(pipeline string) []v1alpha1.Publish {
			registered, _ := store.Registration(pipeline)
			return registered.Publish
		}
		rules.Names = store.Registered
	}
	return catalog.WithRules(rules), err
}

// pipelinesWhere returns the valid pipelines of which something is true.
func pipelinesWhere(pipelines *catalog.Catalog, isTrue func(*v1alpha1.RenderPipeline) bool) (keys []string) {
	for _, e := range pipelines.All() {
		if e.Pipeline != nil && isTrue(e.Pipeline) {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// planning decides which pipelines run, and what becomes of those that were deleted or wait for a merge.
type planning struct {
	catalog  *catalog.Catalog
	planner  *plan.Planner
	keeper   *prune.Keeper
	promoter *promotion.Promoter
	preview  *preview.Previewer
	log      *slog.Logger
}

// newPlanning returns what plans with the components, until ctx is done. Waves wait for the clusters.
func newPlanning(ctx context.Context, from *components, clusters []clusterWatcher) *planning {
	c, log := from.config, from.options.Log
	p := &planning{catalog: from.catalog, preview: from.preview, log: log}
	p.planner = &plan.Planner{
		Catalog: from.catalog, PipelinesDir: c.Pipelines, Fetcher: from.fetcher, Secrets: from.secrets,
		Artifacts: from.artifacts, Builder: from.builder, Store: from.store, Queue: from.queue, Debounce: c.Debounce,
		Watchdog: from.watchdog, Log: log,
	}
	p.keeper = &prune.Keeper{
		Catalog: from.catalog, Store: from.store, Queue: from.queue,
		Delay: c.Removals.Delay, MaxShare: c.Removals.MaxShare, Log: log,
		Plan: func(pipelines []string, reason string) { go p.planUntilAccepted(ctx, pipelines, newCause(reason)) },
	}
	p.promoter = &promotion.Promoter{
		Catalog: from.catalog, Store: from.store, Queue: from.queue, Targets: from.targets, Log: log,
		Consider: func(ctx context.Context, pipelines []string, reason string) error {
			cause := newCause(reason)
			cause.Drift, cause.Moved, cause.Now = true, true, true
			return p.planner.Consider(ctx, pipelines, cause)
		},
		Clusters: rolloutChecks(clusters),
	}
	return p
}

// checkRemovals has the keeper look at the pipelines before anything is planned for them. What it cannot do now it does later.
func (p *planning) checkRemovals(ctx context.Context) {
	if err := p.keeper.Check(ctx); err != nil && ctx.Err() == nil {
		p.log.Warn("looking for deleted pipelines; the daemon retries", "error", err)
	}
}

// handleEvent plans for an event. One about the repository of the pipelines first has these read, so that a pipeline that came
// with it runs as well.
func (p *planning) handleEvent(ctx context.Context, e event.Event, stored time.Time) error {
	if err := p.preview.Note(ctx, e, stored); err != nil {
		return err
	}
	if !p.catalog.Concerns(e.Changes) {
		return p.planner.Event(ctx, e, stored)
	}
	changed, err := p.catalog.RefreshConcerned(ctx, e.Changes)
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if len(changed) > 0 {
		p.checkRemovals(ctx)
	}
	// After an error it is read later, by Poll; the pipelines that are known need not wait for that.
	keys := append(p.catalog.Match(e.Changes), changed...)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	p.planUntilAccepted(ctx, keys, plan.CauseOf(e, stored))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return p.planner.EventAtTargets(ctx, e, stored, keys) // what is published may be in the same repository
}

// reloadWhenAsked checks for changed pipelines on each request, as services do on SIGHUP.
func (p *planning) reloadWhenAsked(ctx context.Context, asked <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		p.log.Info("looking for changed pipelines, as asked")
		if _, err := p.catalog.Reload(); err != nil {
			p.log.Error("the pipelines cannot be read; those that are known stay", "error", err)
		}
		// Refresh logs the errors of a repository.
		if changed, _ := p.catalog.Refresh(ctx); len(changed) > 0 {
			p.checkRemovals(ctx)
			p.planUntilAccepted(ctx, changed, newCause("reload"))
		}
	}
}

// watchFiles follows the files of pipelines and policies.
func (p *planning) watchFiles(ctx context.Context, group *errgroup.Group, policies string) {
	p.catalog.OnChange(func(changed []string) {
		go func() {
			p.checkRemovals(ctx)
			p.planUntilAccepted(ctx, changed, newCause("pipeline changed"))
		}()
	})
	group.Go(func() error {
		return p.catalog.Watch(ctx, func(string) {
			using := pipelinesWhere(p.catalog, func(pipeline *v1alpha1.RenderPipeline) bool {
				return slices.ContainsFunc(pipeline.Spec.Policies, func(ref v1alpha1.PolicyRef) bool { return ref.File != "" })
			})
			p.planUntilAccepted(ctx, using, newCause("policy changed"))
		}, policies)
	})
	group.Go(func() error {
		p.catalog.Poll(ctx)
		return nil
	})
}

// planUntilAccepted plans, and retries until the queue accepts the result.
func (p *planning) planUntilAccepted(ctx context.Context, keys []string, cause plan.Cause) {
	for ctx.Err() == nil {
		err := p.planner.Consider(ctx, keys, cause)
		if err == nil {
			return
		}
		p.log.Warn("planning is tried again", "id", cause.ID, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}

// newCause is one that no event is.
func newCause(reason string) plan.Cause {
	return plan.Cause{ID: rand.Text(), Reason: reason, Since: time.Now()}
}
