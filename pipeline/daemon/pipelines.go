// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source/git"
)

// openCatalog reads the pipelines from the configured origins. A worker joins the other processes at their commits.
func (p *components) openCatalog(ctx context.Context, worker bool) error {
	rules, err := p.pipelineRules()
	if err != nil {
		return err
	}
	var from []catalog.Origin
	if p.c.Pipelines != "" {
		from = append(from, catalog.Origin{Name: p.c.PipelinesName(), Dir: p.c.Pipelines})
	}
	for _, g := range p.c.Repositories() {
		one := catalog.Origin{Name: g.Name, Repository: p.repositoryOf(g, worker)}
		if one.Tenants, err = g.ParsedTenants(); err != nil {
			return err
		}
		from = append(from, one)
	}
	if p.cluster != nil {
		one := catalog.Origin{Name: p.c.ClusterName(), Objects: p.cluster.watcher}
		if one.Tenants, err = p.clusterTenants(); err != nil {
			return err
		}
		from = append(from, one)
	}
	p.catalog, err = catalog.OpenAll(ctx, from, worker, p.o.Log, rules)
	return err
}

// repositoryOf returns a repository of the configuration as the catalog reads it. A worker only follows the others.
func (p *components) repositoryOf(g config.PipelinesGit, worker bool) *catalog.Repository {
	namespace, name := g.SecretName()
	var secret *meta.LocalObjectReference
	if name != "" {
		secret = &meta.LocalObjectReference{Name: name}
	}
	interval := g.Interval
	if worker {
		interval = 0
	}
	var heads catalog.Heads = &ownHeads{}
	if p.store != nil {
		heads = p.store.Heads(g.Name)
	}
	return &catalog.Repository{
		URL: g.URL, Ref: g.RefName(), Path: g.Path, Interval: interval, Heads: heads,
		Open: func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
			return p.fetcher.Repository(ctx, namespace, g.URL, secret)
		},
	}
}

// pipelineRules are what the configuration and what is known of pipelines ask of each.
func (p *components) pipelineRules() (catalog.Option, error) {
	tenants, err := p.c.ParsedTenants()
	if err != nil {
		return nil, err
	}
	reach, _, err := p.c.ParsedEgress()
	rules := catalog.Rules{Tenants: tenants, Reach: reach, AllowHostFiles: p.c.AllowHostFiles}
	if p.store != nil {
		rules.Registered = func(pipeline string) []v1alpha1.Publish {
			registered, _ := p.store.Registration(pipeline)
			return registered.Publish
		}
		rules.Names = p.store.Registered
	}
	return catalog.WithRules(rules), err
}

// followTimeout bounds the reading of the pipelines as they were when a job was planned.
const followTimeout = 2 * time.Minute

// handleJob does one job with the pipelines as they were when it was planned, or as they are now.
func (p *components) handleJob(ctx context.Context, job queue.Job) error {
	if err := p.followOthers(ctx, job.Pipeline); err != nil {
		return &queue.RetryError{After: 5 * time.Second, Err: err}
	}
	if _, ok := p.catalog.Get(job.Pipeline); !ok {
		removed, err := p.remover.Remove(ctx, job)
		if removed != nil {
			p.metrics.Removed()
		}
		if removed != nil || err != nil {
			return err
		}
	}
	return p.runner.Do(ctx, job)
}

// followOthers reads the pipelines as the process has that planned a job. Where that hangs it is for the jobs of this pipeline alone: those
// of others may be in another repository.
func (p *components) followOthers(ctx context.Context, pipeline string) error {
	step := watchdog.Step{Name: watchdog.StepCatalog, Subject: pipeline, Limit: followTimeout}
	_, err := watchdog.Run(ctx, p.watchdog, step, func(ctx context.Context) (struct{}, error) { return struct{}{}, p.catalog.Follow(ctx, pipeline) })
	return err
}

// checkRemovals has the keeper look at the pipelines before anything is planned for them. What it cannot do now it does later.
func (p *components) checkRemovals(ctx context.Context) {
	if err := p.keeper.Check(ctx); err != nil && ctx.Err() == nil {
		p.o.Log.Warn("looking for pipelines that are gone; it is tried again", "error", err)
	}
}

// handleEvent plans for an event. One about the repository of the pipelines first has these read, so that a pipeline that came
// with it runs as well.
func (p *components) handleEvent(ctx context.Context, planner *plan.Planner, e event.Event, stored time.Time) error {
	if err := p.preview.Note(ctx, e, stored); err != nil {
		return err
	}
	if !p.catalog.Concerns(e.Changes) {
		return planner.Event(ctx, e, stored)
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
	p.planUntilAccepted(ctx, planner, keys, plan.CauseOf(e, stored))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return planner.EventAtTargets(ctx, e, stored, keys) // what is published may be in the same repository
}

// reloadWhenAsked checks for changed pipelines on each request, as services do on SIGHUP.
func (p *components) reloadWhenAsked(ctx context.Context, planner *plan.Planner) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.o.Reload:
		}
		p.o.Log.Info("looking for changed pipelines, as asked")
		if _, err := p.catalog.Reload(); err != nil {
			p.o.Log.Error("the pipelines cannot be read; those that are known stay", "error", err)
		}
		// Refresh logs the errors of a repository.
		if changed, _ := p.catalog.Refresh(ctx); len(changed) > 0 {
			p.checkRemovals(ctx)
			p.planUntilAccepted(ctx, planner, changed, newCause("reload"))
		}
	}
}

// watchFiles follows the files of pipelines and policies.
func (p *components) watchFiles(ctx context.Context, group *errgroup.Group, planner *plan.Planner) {
	p.catalog.OnChange(func(changed []string) {
		go func() {
			p.checkRemovals(ctx)
			p.planUntilAccepted(ctx, planner, changed, newCause("pipeline changed"))
		}()
	})
	group.Go(func() error {
		return p.catalog.Watch(ctx, func(string) {
			var using []string
			for _, e := range p.catalog.All() {
				if e.Pipeline == nil {
					continue
				}
				if slices.ContainsFunc(e.Pipeline.Spec.Policies, func(ref v1alpha1.PolicyRef) bool { return ref.File != "" }) {
					using = append(using, e.Key)
				}
			}
			p.planUntilAccepted(ctx, planner, using, newCause("policy changed"))
		}, p.c.Policies)
	})
	group.Go(func() error {
		p.catalog.Poll(ctx)
		return nil
	})
}

// planUntilAccepted plans, and retries until the queue accepts the result.
func (p *components) planUntilAccepted(ctx context.Context, planner *plan.Planner, keys []string, cause plan.Cause) {
	for ctx.Err() == nil {
		err := planner.Consider(ctx, keys, cause)
		if err == nil {
			return
		}
		p.o.Log.Warn("planning is tried again", "id", cause.ID, "error", err)
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
	}
}
