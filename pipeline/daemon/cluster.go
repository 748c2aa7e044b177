// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/kubernetes"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/tenant"
)

// cluster is one that pipelines are objects of.
type cluster struct {
	client  *kubernetes.Client
	watcher *kubernetes.Watcher
	// mesh is what decides about injection, and completer has policies completed with it; nil where that is not read.
	mesh      *kubernetes.Mesh
	completer *mesh.Completer
}

// openCluster reads the objects of the cluster, where one is configured, and follows them until storing is done.
func (p *components) openCluster(ctx, storing context.Context) error {
	dir := secret.Dir{Path: p.c.Secrets, RequireHosts: p.c.RequireSecretHosts}
	p.secrets = dir
	if !p.c.Kubernetes.Pipelines {
		return nil
	}
	client, err := kubernetes.Connect(p.c.Kubernetes.Kubeconfig, p.o.Version)
	if err != nil {
		return err
	}
	// Initial reads are aborted with the daemon; watches then end with its other parts.
	following, stop := context.WithCancel(storing)
	opening := context.AfterFunc(ctx, stop)
	watcher, err := kubernetes.Watch(following, client, p.c.Kubernetes.Namespaces, p.o.Log)
	var followed *kubernetes.Mesh
	if err == nil && p.c.Kubernetes.Mesh {
		followed, err = kubernetes.WatchMesh(following, client, p.c.Kubernetes.MeshNamespaces, p.o.Log)
	}
	if !opening() || err != nil {
		stop()
		return cmp.Or(err, ctx.Err())
	}
	p.cluster = &cluster{client: client, watcher: watcher}
	if followed != nil {
		p.cluster.mesh = followed
		p.cluster.completer = &mesh.Completer{Cluster: followed, Log: p.o.Log}
		if p.queue != nil { // an inspection has none
			p.cluster.completer.Memory = p.queue
		}
	}
	p.secrets = kubernetes.Secrets{
		Client: client, Otherwise: dir, RequireHosts: p.c.RequireSecretHosts,
		FromCluster: func(namespace string) bool { return p.catalog != nil && p.catalog.FromCluster(namespace) },
	}
	return nil
}

// clusterTenants returns the tenants that have objects in the cluster. Tenants of the configuration that own the
// same namespaces define the permissions of their authors.
func (p *components) clusterTenants() ([]tenant.Tenant, error) {
	if p.c.ClusterName() == "" {
		return nil, nil // those of the rules
	}
	return p.c.Kubernetes.ParsedTenants()
}

// policyObjects returns the policies of the cluster, or nil without a cluster.
func (p *components) policyObjects() build.PolicyObjects {
	if p.cluster == nil {
		return nil
	}
	return p.cluster.watcher
}

// policyCompleter returns the completer of policies with from: Cluster, or nil if the cluster is not read for them.
func (p *components) policyCompleter() build.PolicyCompleter {
	if p.cluster == nil || p.cluster.completer == nil {
		return nil
	}
	return p.cluster.completer
}

// readCluster has what policies take from the cluster read again, if anything is.
func (p *components) readCluster() {
	if p.cluster != nil && p.cluster.mesh != nil {
		p.cluster.mesh.ReadAgain()
	}
}

// followMesh plans the pipelines that read from the cluster whenever it changes; the planner finds those affected.
func (p *components) followMesh(ctx context.Context, group *errgroup.Group, planner *plan.Planner, reporter *kubernetes.Reporter) {
	if p.cluster.mesh == nil {
		return
	}
	reporter.Stale = p.cluster.completer.Stale
	group.Go(func() error {
		p.cluster.mesh.Run(ctx, func() {
			reporter.LookAtPolicies()
			var using []string
			for _, e := range p.catalog.All() {
				if e.Pipeline != nil && p.builder.ClusterDigest(e.Pipeline) != "" {
					using = append(using, e.Key)
				}
			}
			if len(using) > 0 {
				go p.planUntilAccepted(ctx, planner, using, newCause("cluster changed"))
			}
		})
		return nil
	})
	group.Go(func() error { p.sweepSnapshots(ctx); return nil })
	group.Go(func() error { p.sweepPolicies(ctx); return nil })
}

// sweepEvery is the interval of searches for unreferenced snapshots.
const sweepEvery = 10 * time.Minute

// sweepSnapshots removes snapshots of the cluster that are no longer referenced, until ctx is done.
func (p *components) sweepSnapshots(ctx context.Context) {
	runAtInterval(ctx, sweepEvery, func() {
		if err := p.store.SweepSnapshots(ctx); err != nil && ctx.Err() == nil {
			p.o.Log.Warn("snapshots of the cluster that nothing names are left", "error", err)
		}
	})
}

// sweepPolicies releases the completions of policies that no longer exist or no longer request them, until ctx is
// done.
func (p *components) sweepPolicies(ctx context.Context) {
	runAtInterval(ctx, sweepEvery, func() {
		if p.cluster.watcher.Problem() != nil {
			return // the existing policies are unknown
		}
		err := p.cluster.completer.Sweep(ctx, p.store.CompletedPolicies(), func(namespace, name string) bool {
			text, err := p.cluster.watcher.Policy(namespace, name)
			return err == nil && mesh.Asks(text)
		})
		if err != nil && ctx.Err() == nil {
			p.o.Log.Warn("what policies were completed to that are gone is left", "error", err)
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

// followCluster plans when objects of the cluster change, and writes what becomes of them into their status.
func (p *components) followCluster(ctx context.Context, group *errgroup.Group, planner *plan.Planner) {
	if p.cluster == nil {
		return
	}
	reporter := &kubernetes.Reporter{
		Client: p.cluster.client, Watcher: p.cluster.watcher, Catalog: p.catalog, Store: p.store, RequestDigest: p.builder.RequestDigest,
		Removals: p.keeper.Removals, TryLead: p.queue.TryLead, Log: p.o.Log,
	}
	p.followMesh(ctx, group, planner, reporter)
	p.store.OnChange(func(pipeline string) { reporter.Look([]string{pipeline}, nil) })
	group.Go(func() error { reporter.Run(ctx); return nil })
	group.Go(func() error {
		p.cluster.watcher.Run(ctx, func(changed, policies []string) {
			p.reloadObjects()
			reporter.Look(changed, policies)
			if using := p.pipelinesUsingPolicies(policies); len(using) > 0 {
				go p.planUntilAccepted(ctx, planner, using, newCause("policy changed"))
			}
		})
		return nil
	})
}

// joinCluster follows the objects for a worker.
func (p *components) joinCluster(ctx context.Context, group *errgroup.Group) {
	if p.cluster == nil {
		return
	}
	group.Go(func() error {
		p.cluster.watcher.Run(ctx, func(_, _ []string) { p.reloadObjects() })
		return nil
	})
	if p.cluster.mesh != nil {
		group.Go(func() error { p.cluster.mesh.Run(ctx, func() {}); return nil })
		group.Go(func() error { p.sweepPolicies(ctx); return nil })
	}
}

// reloadObjects reads the catalog again after the cluster has changed.
func (p *components) reloadObjects() {
	if _, err := p.catalog.Reload(); err != nil {
		p.o.Log.Error("the pipelines cannot be read; the known ones stay", "error", err)
	}
}

// pipelinesUsingPolicies returns the pipelines that name one of the policies, each written as NAMESPACE/NAME.
func (p *components) pipelinesUsingPolicies(policies []string) (using []string) {
	if len(policies) == 0 {
		return nil
	}
	for _, e := range p.catalog.All() {
		if e.Pipeline == nil {
			continue
		}
		for _, ref := range e.Pipeline.Spec.Policies {
			if ref.Name != "" && slices.Contains(policies, e.Pipeline.Metadata.Namespace+"/"+ref.Name) {
				using = append(using, e.Key)
				break
			}
		}
	}
	return using
}
