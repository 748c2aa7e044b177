// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// maxDriftFiles bounds how many files a sentence about a drift names.
const maxDriftFiles = 5

// Drift implements Interface. Only the pipeline's own files count: files that others commit beside them are
// ignored. It names the newest commit of the branch, which need not be the one that changed them, as the mirror has
// no history. A missing branch of a proposal is not drift, as the host deletes it on merge.
func (g *gitTarget) Drift(ctx context.Context, written Written) (string, error) {
	if len(written.Record) == 0 {
		return "", nil
	}
	refs, err := g.branch.Remote.ListSince(ctx, written.Since)
	if err != nil {
		return "", err
	}
	reference := g.to.Git.Reference()
	tip, exists := refs.ByName[reference]
	switch {
	case !exists && g.to.Git.Propose != nil, exists && tip.String() == written.Revision:
		return "", nil
	case !exists:
		return fmt.Sprintf("the branch %s was deleted", shortReference(reference)), nil
	}
	commit, err := g.branch.Mirror.Fetch(ctx, g.branch.Remote, git.Ref{Name: reference, Commit: tip})
	if err != nil {
		return "", err
	}
	changes, all := written.Record.Differences(g.branch.Mirror.Tree(commit), maxDriftFiles)
	if all == 0 {
		return "", nil
	}
	if more := all - len(changes); more > 0 {
		changes = append(changes, fmt.Sprintf("and %d more", more))
	}
	return fmt.Sprintf("on the branch %s, %s; its newest commit is %.12s by %s: %s", shortReference(reference),
		strings.Join(changes, ", "),
		commit.Hash, foreign.Line(commit.Author+" <"+commit.AuthorEmail+">", maxSubject), foreign.Line(commit.Subject,
			maxSubject)), nil
}

// LookError is the error about a place that could not be looked at.
type LookError struct {
	// To is the entry.
	To v1alpha1.Publish
	// Err is the cause.
	Err error
	// Silent reports whether the place did not answer within the time that each place has.
	Silent bool
}

// Error names the place and the cause.
func (e *LookError) Error() string { return "looking at " + e.To.Target() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *LookError) Unwrap() error { return e.Err }

// FindDrift briefly describes what others have changed of what a pipeline has published, or returns "" without a
// difference. targets need not be able to publish. Answers that a server returned after since are reused. Each place
// may take up to wait to answer, or as long as ctx lasts if wait is 0. An error means that the drift is not known.
func FindDrift(ctx context.Context, targets *Targets, p *v1alpha1.RenderPipeline, state *status.State, since time.Time,
	wait time.Duration) (string, error) {
	var found []string
	for _, to := range p.Spec.Publish {
		written := publishedToEntry(state, to, since)
		if len(written.Record) == 0 && written.Revision == "" {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("looking at what is published: %w", err)
		}
		text, err := inspectPlace(ctx, targets, p.Metadata.Namespace, to, written, wait)
		if err != nil {
			return "", err
		}
		if text != "" {
			found = append(found, text)
		}
	}
	return strings.Join(found, "; "), nil
}

// inspectPlace describes what others have changed at one place. A place that is not asked any more because the caller's
// time is up is not silent.
func inspectPlace(ctx context.Context, targets *Targets, namespace string, to v1alpha1.Publish, written Written,
	wait time.Duration) (string, error) {
	looking := ctx
	if wait > 0 {
		var stop context.CancelFunc
		looking, stop = context.WithTimeout(ctx, wait)
		defer stop()
	}
	target, err := targets.Open(looking, namespace, to)
	var text string
	if err == nil {
		text, err = target.Drift(looking, written)
	}
	if err != nil {
		return "", &LookError{To: to, Err: err, Silent: looking.Err() != nil && ctx.Err() == nil}
	}
	return text, nil
}

// WaitsForPeople reports whether what a pipeline has published waits in a pull request, as far as its state knows.
func WaitsForPeople(state *status.State) bool {
	return slices.ContainsFunc(state.Status.Published, func(one v1alpha1.Published) bool { return one.PullRequest != nil })
}

// Settle completes what people have done with waiting results, for all places of a pipeline, and records it in the
// state. It reports whether anything changed. Answers that a host returned after since are reused.
func Settle(ctx context.Context, targets *Targets, p *v1alpha1.RenderPipeline, state *status.State,
	since time.Time) (changed bool, err error) {
	for _, to := range p.Spec.Publish {
		written := publishedToEntry(state, to, since)
		if written.PullRequest == nil {
			continue
		}
		target, err := targets.Open(ctx, p.Metadata.Namespace, to)
		if err != nil {
			return changed, fmt.Errorf("looking at %s: %w", to.Target(), err)
		}
		now, err := target.Settle(ctx, p.Key(), written)
		if err != nil {
			return changed, fmt.Errorf("looking at %s: %w", to.Target(), err)
		}
		state.Status.Published = slices.Clone(state.Status.Published)
		for i := range state.Status.Published {
			if one := &state.Status.Published[i]; one.Target == to.Target() && !equality.Semantic.DeepEqual(one.PullRequest, now) {
				one.PullRequest, changed = now, true
			}
		}
	}
	return changed, nil
}

func shortReference(name string) string { return strings.TrimPrefix(name, "refs/heads/") }

// Drift implements Interface: every tag must point to what was published.
func (o *ociTarget) Drift(ctx context.Context, written Written) (string, error) {
	if written.Revision == "" {
		return "", nil
	}
	var moved []string
	for _, tag := range o.to.Tags {
		now, err := o.artifact.Registry.Resolve(ctx, oci.Ref{Tag: tag})
		var answer *transport.Error
		switch {
		case errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound:
			moved = append(moved, fmt.Sprintf("the tag %s was deleted", tag))
		case err != nil:
			return "", err
		case now.Digest != written.Revision:
			moved = append(moved, fmt.Sprintf("the tag %s was moved to %s", tag, now.Digest))
		}
	}
	if len(moved) == 0 {
		return "", nil
	}
	return fmt.Sprintf("of the artifact %s, %s", o.to.URL, strings.Join(moved, ", ")), nil
}
