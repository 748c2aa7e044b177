// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/kubernetes"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/secret"
)

// cluster is one that pipelines are objects of.
type cluster struct {
	client  *kubernetes.Client
	watcher *kubernetes.Watcher
	// mesh is what decides about injection, and completer has policies completed with it; nil where that is not read.
	mesh      *kubernetes.Mesh
	completer *mesh.Completer
	log       *slog.Logger
}

// openCluster reads the objects of the cluster and follows them until storing is done, or returns nil where none is
// configured. memory is that of mesh.Completer.
func openCluster(ctx, storing context.Context, c *config.Config, o Options, memory mesh.Memory) (*cluster, error) {
	if !c.Kubernetes.Pipelines {
		return nil, nil
	}
	client, err := kubernetes.Connect(c.Kubernetes.Kubeconfig, o.Version)
	if err != nil {
		return nil, err
	}
	// Initial reads are aborted with the daemon; watches then end with its other parts.
	following, stop := context.WithCancel(storing)
	opening := context.AfterFunc(ctx, stop)
	watcher, err := kubernetes.Watch(following, client, c.Kubernetes.Namespaces, o.Log)
	var followed *kubernetes.Mesh
	if err == nil && c.Kubernetes.Mesh {
		followed, err = kubernetes.WatchMesh(following, client, c.Kubernetes.MeshNamespaces, o.Log)
	}
	if !opening() || err != nil {
		stop()
		return nil, cmp.Or(err, ctx.Err())
	}
	opened := &cluster{client: client, watcher: watcher, mesh: followed, log: o.Log}
	if followed != nil {
		opened.completer = &mesh.Completer{Cluster: followed, Memory: memory, Log: o.Log}
	}
	return opened, nil
}

// newSecrets returns the reader of secrets: those of the cluster, unless it is nil, for the pipelines that are its
// objects. The catalog is read with it and opened afterwards.
func newSecrets(c *config.Config, from *cluster, pipelines **catalog.Catalog) secret.Reader {
	dir := secret.Dir{Path: c.Secrets, RequireHosts: c.RequireSecretHosts}
	if from == nil {
		return dir
	}
	return kubernetes.Secrets{
		Client: from.client, Otherwise: dir, RequireHosts: c.RequireSecretHosts,
		FromCluster: func(namespace string) bool { return *pipelines != nil && (*pipelines).TellsAll(namespace+"/") },
	}
}

// policyObjects returns the policies of the cluster, or nil without a cluster.
func (c *cluster) policyObjects() build.PolicyObjects {
	if c == nil {
		return nil
	}
	return c.watcher
}

// policyCompleter returns the completer of policies with from: Cluster, or nil if the cluster is not read for them.
func (c *cluster) policyCompleter() build.PolicyCompleter {
	if c == nil || c.completer == nil {
		return nil
	}
	return c.completer
}

// readAgain has what policies take from the cluster read again, if anything is.
func (c *cluster) readAgain() {
	if c != nil && c.mesh != nil {
		c.mesh.ReadAgain()
	}
}

// followMesh plans the pipelines that read from the cluster whenever it changes; the planner finds those affected.
func (c *cluster) followMesh(
	ctx context.Context, group *errgroup.Group, p *components, planned *planning, reporter *kubernetes.Reporter,
) {
	group.Go(func() error {
		c.mesh.Run(ctx, func() {
			reporter.LookAtPolicies()
			using := pipelinesWhere(p.catalog, func(one *v1alpha1.RenderPipeline) bool { return p.builder.PolicySource().ClusterDigest(one) != "" })
			if len(using) > 0 {
				go planned.planUntilAccepted(ctx, using, newCause("cluster changed"))
			}
		})
		return nil
	})
	group.Go(func() error { c.sweepSnapshots(ctx, p.store); return nil })
	group.Go(func() error { c.sweepPolicies(ctx, p.store); return nil })
}

// sweepEvery is the interval of searches for unreferenced snapshots.
const sweepEvery = 10 * time.Minute

// sweepSnapshots removes snapshots of the cluster that are no longer referenced, until ctx is done.
func (c *cluster) sweepSnapshots(ctx context.Context, store *status.Store) {
	runAtInterval(ctx, sweepEvery, func() {
		if err := store.SweepSnapshots(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("snapshots of the cluster that nothing names are left", "error", err)
		}
	})
}

// sweepPolicies releases the completions of policies that no longer exist or no longer request them, until ctx is
// done.
func (c *cluster) sweepPolicies(ctx context.Context, store *status.Store) {
	runAtInterval(ctx, sweepEvery, func() {
		if c.watcher.Problem() != nil {
			return // the existing policies are unknown
		}
		err := c.completer.Sweep(ctx, store.CompletedPolicies(), func(namespace, name string) bool {
			text, err := c.watcher.Policy(namespace, name)
			return err == nil && mesh.Asks(text)
		})
		if err != nil && ctx.Err() == nil {
			c.log.Warn("completed policies that were deleted could not be removed from the cache", "error", err)
		}
	})
}

// runAtInterval does something with each interval, for the first time after one, until ctx is done.
func runAtInterval(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// followObjects plans when objects of the cluster change, and writes what becomes of them into their status.
func (c *cluster) followObjects(ctx context.Context, group *errgroup.Group, p *components, planned *planning) {
	reporter := &kubernetes.Reporter{
		Client: c.client, Watcher: c.watcher, Catalog: p.catalog, Store: p.store, RequestDigest: p.builder.RequestDigest,
		Removals: planned.keeper.Removals, TryLead: p.queue.TryLead, Log: c.log,
	}
	if c.mesh != nil {
		reporter.Stale = c.completer.Stale
		c.followMesh(ctx, group, p, planned, reporter)
	}
	p.store.OnChange(func(pipeline string) { reporter.Look([]string{pipeline}, nil) })
	group.Go(func() error { reporter.Run(ctx); return nil })
	group.Go(func() error {
		c.watcher.Run(ctx, func(changed, policies []string) {
			c.reloadObjects(p.catalog)
			reporter.Look(changed, policies)
			if using := pipelinesUsingPolicies(p.catalog, policies); len(using) > 0 {
				go planned.planUntilAccepted(ctx, using, newCause("policy changed"))
			}
		})
		return nil
	})
}

// joinCluster follows the objects for a worker.
func (c *cluster) joinCluster(ctx context.Context, group *errgroup.Group, p *components) {
	group.Go(func() error {
		c.watcher.Run(ctx, func(_, _ []string) { c.reloadObjects(p.catalog) })
		return nil
	})
	if c.mesh != nil {
		group.Go(func() error { c.mesh.Run(ctx, func() {}); return nil })
		group.Go(func() error { c.sweepPolicies(ctx, p.store); return nil })
	}
}

// reloadObjects reads the catalog again after the cluster has changed.
func (c *cluster) reloadObjects(pipelines *catalog.Catalog) {
	if _, err := pipelines.Reload(); err != nil {
		c.log.Error("the pipelines cannot be read; the known ones stay", "error", err)
	}
}

// pipelinesUsingPolicies returns the pipelines that name one of the policies, each written as NAMESPACE/NAME.
func pipelinesUsingPolicies(pipelines *catalog.Catalog, policies []string) []string {
	if len(policies) == 0 {
		return nil
	}
	return pipelinesWhere(pipelines, func(p *v1alpha1.RenderPipeline) bool {
		return slices.ContainsFunc(p.Spec.Policies, func(ref v1alpha1.PolicyRef) bool {
			return ref.Name != "" && slices.Contains(policies, p.Metadata.Namespace+"/"+ref.Name)
		})
	})
}
