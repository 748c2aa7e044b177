// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/server"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// clusterWatcher is a cluster of the configuration with what compares it.
type clusterWatcher struct {
	config.Verify
	*watch.Watcher
}

// newClusterWatchers returns what compares the clusters of the configuration with what is committed.
func newClusterWatchers(p *components) (out []clusterWatcher) {
	if len(p.config.Verify) == 0 {
		return nil
	}
	notifier := newNotifier(p.secrets, p.dialer, p.metrics)
	for _, v := range p.config.Verify {
		out = append(out, clusterWatcher{v, watch.New(verifiedCluster(v, p.fetcher, notifier), p.options.Log)})
	}
	p.metrics.Clusters(func() (found []watch.Found) {
		for _, w := range out {
			found = append(found, w.Found())
		}
		return found
	})
	return out
}

// watchClusters compares clusters until ctx is done.
func watchClusters(ctx context.Context, group *errgroup.Group, all []clusterWatcher) {
	for _, w := range all {
		group.Go(func() error { w.Run(ctx); return nil })
	}
}

// verifiedClusters returns what the web page shows of compared clusters.
func verifiedClusters(all []clusterWatcher) func() []server.VerifiedCluster {
	return func() (out []server.VerifiedCluster) {
		for _, w := range all {
			out = append(out, server.VerifiedCluster{Name: w.Name, URL: w.URL, Branch: w.Branch, Report: w.Found().Report})
		}
		return out
	}
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

// rolloutChecks returns a check for each cluster that is compared with what one of the entries publishes: whether its pods are of
// the newest commit and ready, by a comparison that began after since.
func rolloutChecks(all []clusterWatcher) func(entries []v1alpha1.Publish, since time.Time) []pullrequest.Check {
	return func(entries []v1alpha1.Publish, since time.Time) (out []pullrequest.Check) {
		for _, w := range all {
			var dirs []string
			for _, entry := range entries {
				if w.compares(entry) {
					dirs = append(dirs, entry.Git.Path)
				}
			}
			if len(dirs) > 0 {
				out = append(out, rolloutCheck(w.Found(), dirs, since))
			}
		}
		return out
	}
}

// compares reports whether a cluster is compared with the directory of a branch. One without a branch in its configuration is
// compared with whatever the repository's default is.
func (w clusterWatcher) compares(entry v1alpha1.Publish) bool {
	paths := w.Paths
	if len(paths) == 0 {
		paths = []string{""}
	}
	return w.Branch != "" && slices.ContainsFunc(paths, func(path string) bool {
		return entry.Overlaps(v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: w.URL, Branch: w.Branch, Path: path}})
	})
}

// rolloutCheck returns the check of a cluster. A comparison that fails, or that began before the merge was known, decides nothing.
func rolloutCheck(found watch.Found, dirs []string, since time.Time) pullrequest.Check {
	check := pullrequest.Check{Name: "verify/" + found.Cluster, State: pullrequest.CheckPending}
	switch {
	case found.Err != nil:
		check.Text = "the cluster cannot be compared; see the log"
		return check
	case found.Report == nil || !found.Began.After(since):
		check.Text = "the cluster has not been compared since the merge"
		return check
	}
	rollout := found.Report.RolloutOf(dirs, since)
	switch {
	case rollout.Wrong > 0:
		check.State = pullrequest.CheckRed
		check.Text = fmt.Sprintf("%d of %s not as committed", rollout.Wrong, status.Count(rollout.Pods, "pod"))
	case rollout.Behind > 0:
		check.Text = fmt.Sprintf("%d of %s of an older commit", rollout.Behind, status.Count(rollout.Pods, "pod"))
	case rollout.NotReady > 0:
		check.Text = fmt.Sprintf("%d of %s not ready", rollout.NotReady, status.Count(rollout.Pods, "pod"))
	default:
		check.State = pullrequest.CheckGreen
	}
	return check
}

func referenceTo(name string) *meta.LocalObjectReference {
	if name == "" {
		return nil
	}
	return &meta.LocalObjectReference{Name: name}
}
