// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// watchClusters compares the clusters of the configuration with what is committed until ctx is done.
func watchClusters(ctx context.Context, group *errgroup.Group, p *components) {
	if len(p.config.Verify) == 0 {
		return
	}
	var watchers []*watch.Watcher
	notifier := newNotifier(p.secrets, p.dialer, p.metrics)
	for _, v := range p.config.Verify {
		w := watch.New(verifiedCluster(v, p.fetcher, notifier), p.options.Log)
		watchers = append(watchers, w)
		group.Go(func() error { w.Run(ctx); return nil })
	}
	p.metrics.Clusters(func() []watch.Found {
		var out []watch.Found
		for _, w := range watchers {
			out = append(out, w.Found())
		}
		return out
	})
}

// verifiedCluster returns a cluster of the configuration.
func verifiedCluster(v config.Verify, fetcher *source.Fetcher, notifier *notify.Notifier) watch.Cluster {
	cluster := watch.Cluster{
		Name: v.Name, Kubeconfig: v.Kubeconfig, Context: v.Context, Paths: v.Paths, DefaultNamespace: v.DefaultNamespace, Namespaces: v.Namespaces, Ignore: v.Ignore, Interval: v.Every(),
		Open: func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
			namespace, name := config.SecretName(v.Secret)
			return fetcher.Repository(ctx, namespace, v.URL, referenceTo(name))
		},
	}
	if v.Branch != "" {
		cluster.Ref = "refs/heads/" + v.Branch
	}
	if v.Notify.URL != "" {
		cluster.Changed = func(ctx context.Context, found watch.Found) error {
			namespace, name := config.SecretName(v.Notify.Secret)
			return notifier.Verified(ctx, &v1alpha1.Endpoint{URL: v.Notify.URL, SecretRef: referenceTo(name)}, namespace, notify.Verified{
				Cluster: found.Cluster, At: found.At, Wrong: found.Wrong, Report: found.Report,
			})
		}
	}
	return cluster
}

func referenceTo(name string) *meta.LocalObjectReference {
	if name == "" {
		return nil
	}
	return &meta.LocalObjectReference{Name: name}
}
