// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package watch has verify look at clusters from time to time, for the daemon, and notices when what it finds is another.
package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/live"
	"github.com/prerig/prerig/pipeline/verify/rendered"
)

// Cluster is one that is looked at, and what was committed for it.
type Cluster struct {
	// Name distinguishes it from others.
	Name string
	// Kubeconfig and Context specify how it is reached, as accepted by live.Config.
	Kubeconfig, Context string
	// Open returns the mirror of the repository and the remote; Ref is the full name of the branch, Paths the
	// directories that count.
	Open  func(ctx context.Context) (*git.Mirror, *git.Remote, error)
	Ref   string
	Paths []string
	// DefaultNamespace is the one of committed objects that name none; "" is default.
	DefaultNamespace string
	// Namespaces are those whose pods are compared; none means those that workloads are committed for.
	Namespaces []string
	// Ignore are patterns of fields that may differ.
	Ignore []string
	// Interval is how long to wait between two looks.
	Interval time.Duration
	// Changed is called with the result of the first look, and whenever the set of wrong pods differs from the last
	// one. It may be nil.
	Changed func(ctx context.Context, found Found) error
}

// Found is what a look has found.
type Found struct {
	// Cluster is the name of the cluster.
	Cluster string
	// Began and At are when the look began, before the branch was read, and when it ended.
	Began, At time.Time
	// Report has all that was found; nil where the last look failed.
	Report *verify.Report
	// Wrong is how many pods are, as Report.Wrong has them.
	Wrong int
	// Err is why the last look failed, or nil.
	Err error
}

// Watcher looks at one cluster.
type Watcher struct {
	cluster Cluster
	log     *slog.Logger

	mu    sync.Mutex
	found Found
	// reported holds the wrong pods that were reported last. Before the first report it is nil, as others may have been
	// reported before a restart.
	reported *string
	// seen are the newest commits of earlier looks, the newest first: the mirror need not have what is between them.
	seen []git.Hash
}

// New returns a Watcher.
func New(cluster Cluster, log *slog.Logger) *Watcher {
	return &Watcher{cluster: cluster, log: log, found: Found{Cluster: cluster.Name}}
}

// Found returns what the last look has found; its time is zero before the first one.
func (w *Watcher) Found() Found {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

// Run looks until ctx is done.
func (w *Watcher) Run(ctx context.Context) {
	for {
		w.Look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(w.cluster.Interval):
		}
	}
}

// lookTimeout bounds one look.
const lookTimeout = 5 * time.Minute

// Look looks once. Errors are in Found, and in the log.
func (w *Watcher) Look(ctx context.Context) {
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	report, err := w.verifyOnce(bounded)
	if ctx.Err() != nil {
		return
	}
	found := Found{Cluster: w.cluster.Name, Began: began, At: time.Now(), Report: report, Err: err}
	if err != nil {
		w.log.Warn("comparing a cluster with what is committed; it is tried again", "cluster", w.cluster.Name, "error", err)
		w.setFound(found)
		return
	}
	found.Wrong = len(report.Wrong())
	w.setFound(found)
	now := summaryOf(report)
	if w.reported != nil && now == *w.reported {
		return
	}
	w.log.Info("compared a cluster with what is committed", "cluster", w.cluster.Name, "commit", report.Commit.ID, "pods", len(report.Pods), "wrong", found.Wrong)
	if w.cluster.Changed != nil {
		if err := w.cluster.Changed(ctx, found); err != nil {
			w.log.Warn("telling what was found in a cluster; it is tried again", "cluster", w.cluster.Name, "error", err)
			return
		}
	}
	w.reported = &now
}

func (w *Watcher) setFound(found Found) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = found
}

// summaryOf is equal for two reports that need not be distinguished: it contains the wrong pods and what is wrong
// with them.
func summaryOf(r *verify.Report) string {
	var b strings.Builder
	for _, pod := range r.Wrong() {
		fmt.Fprintf(&b, "%s/%s %s\n", pod.Namespace, pod.Name, pod.State)
		for _, d := range pod.Differences {
			b.WriteString(" " + d.Field + "\n")
		}
	}
	return b.String()
}

// maxCommits bounds how many older commits are looked at.
const maxCommits = 50

func (w *Watcher) verifyOnce(ctx context.Context) (*verify.Report, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	history, err := w.fetchBranchHistory(ctx, registry)
	if err != nil {
		return nil, fmt.Errorf("reading what is committed: %w", err)
	}
	if len(history.Workloads()) == 0 {
		return nil, errors.New("no workload is committed there, so nothing was compared; name another branch or other paths")
	}
	config, err := live.Config(w.cluster.Kubeconfig, w.cluster.Context)
	if err != nil {
		return nil, err
	}
	namespaces := w.cluster.Namespaces
	if len(namespaces) == 0 {
		namespaces = verify.Namespaces(history)
	}
	snapshot, err := live.Read(ctx, config, namespaces)
	if err != nil {
		return nil, err
	}
	report, err := verify.Verify(ctx, snapshot, history, verify.Options{Registry: registry, Namespaces: w.cluster.Namespaces, Ignore: w.cluster.Ignore})
	if err == nil && len(report.Pods)+report.Finished == 0 {
		return nil, fmt.Errorf("there is no pod in %s, so nothing was compared; see whether namespaces, default_namespace and context are those that are meant",
			strings.Join(namespaces, ", "))
	}
	return report, err
}

// fetchBranchHistory fetches the branch. If the mirror lacks a commit's parent, the history continues with the newest
// commit of an earlier look.
func (w *Watcher) fetchBranchHistory(ctx context.Context, registry *workload.Registry) (verify.History, error) {
	mirror, remote, err := w.cluster.Open(ctx)
	if err != nil {
		return nil, err
	}
	head, err := mirror.Fetch(ctx, remote, git.Ref{Name: w.cluster.Ref})
	if err != nil {
		return nil, err
	}
	if err := mirror.Remember(ctx, head.Hash); err != nil {
		return nil, err
	}
	w.seen = slices.DeleteFunc(w.seen, func(h git.Hash) bool { return h == head.Hash })
	earlier := slices.Clone(w.seen)
	w.seen = append([]git.Hash{head.Hash}, w.seen[:min(len(w.seen), maxCommits)]...)
	commits := func(id string) (*git.Commit, *tree.Tree, error) {
		if id == "" {
			return head, mirror.Tree(head), nil
		}
		commit, err := mirror.Commit(plumbing.NewHash(id))
		for errors.Is(err, plumbing.ErrObjectNotFound) && len(earlier) > 0 {
			commit, err = mirror.Commit(earlier[0])
			earlier = earlier[1:]
		}
		if err != nil {
			return nil, nil, err
		}
		earlier = slices.DeleteFunc(earlier, func(h git.Hash) bool { return h == commit.Hash })
		return commit, mirror.Tree(commit), nil
	}
	return rendered.New(ctx, commits, rendered.Options{Registry: registry, Namespace: cmp.Or(w.cluster.DefaultNamespace, "default"), Paths: w.cluster.Paths, MaxCommits: maxCommits})
}
