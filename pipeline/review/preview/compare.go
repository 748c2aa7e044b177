// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
)

// compared is what a pull request would change.
type compared struct {
	// added, modified and deleted count objects at all places, changed the pipelines that have any.
	added, modified, deleted, changed int
	// failures lists what would fail, statusFailures those of them that are in reviewed too.
	failures []string
	// reviewed are the pipelines that comments describe.
	reviewed []review.Pipeline
	// statusFailures are the failures of pipelines that the status counts.
	statusFailures []string
	pipelines      int
	// unread is why a head could not be fetched.
	unread error
}

func (c *compared) hasFailures() bool { return len(c.failures)+len(c.statusFailures) > 0 }

func (c *compared) hasChanges() bool { return c.added+c.modified+c.deleted > 0 }

// renderAllPipelines renders the head for all pipelines, one after the other.
func (a *attempt) renderAllPipelines(ctx context.Context) *compared {
	out := &compared{}
	r := &rendering{a: a, heads: map[string]*source.Snapshot{}, bases: map[string]*source.Snapshot{}}
	for _, e := range a.entries {
		if ctx.Err() != nil {
			break // which the caller sees
		}
		out.pipelines++
		r.compareOne(ctx, e, out)
	}
	return out
}

// rendering renders pipelines with one state of everything that they share.
type rendering struct {
	a *attempt
	// heads and bases are snapshots of the repository by what they are fetched with.
	heads, bases map[string]*source.Snapshot
	previewer    *dryrun.Renderer
	head, base   *source.Snapshot // of the pipeline that is at it
}

func (r *rendering) compareOne(ctx context.Context, e catalog.Entry, out *compared) {
	if err := r.fetchHeadAndBase(ctx, e); err != nil {
		if !errors.As(err, new(secretError)) {
			out.unread = err
		}
		if ctx.Err() == nil {
			r.recordUncomparedPipeline(out, e, err.Error())
		}
		return
	}
	if r.isUnchanged(e) {
		return
	}
	var c *dryrun.Comparison
	err := r.a.p.WhenIdle(ctx, func(ctx context.Context) error {
		c = r.comparePipeline(ctx, e)
		if ctx.Err() != nil {
			r.previewer = nil // what it has kept may be half of it
		}
		return ctx.Err()
	})
	if err != nil {
		return // late, or stopped
	}
	r.addComparison(out, e, c)
}

// isUnchanged reports whether the pull request changes no input of the last render of a pipeline, if that is
// published.
func (r *rendering) isUnchanged(e catalog.Entry) bool {
	state := r.a.p.Store.Get(e.Key)
	published := state.Seen.Outcome == status.Published || state.Seen.Outcome == status.Unchanged
	if len(e.Pipeline.Spec.Sources) > 0 || !published || publish.WaitsForPeople(state) {
		return false
	}
	_, needed := r.a.pullRequestSide().Builder.Needs(e.Pipeline, state, r.head)
	return !needed
}

// pullRequestSide returns what the pull request is rendered with.
func (a *attempt) pullRequestSide() Side {
	if a.in.Fork {
		return a.p.Forks
	}
	return a.p.Own
}

// fetchHeadAndBase fetches the head, and for a fork the branch that it targets.
func (r *rendering) fetchHeadAndBase(ctx context.Context, e catalog.Entry) (err error) {
	git := e.Pipeline.Spec.Source.Git
	key := ""
	if git.SecretRef != nil {
		key = git.SecretRef.Name
	}
	if git.Submodules || r.a.in.ForkURL != "" { // which no pipeline names
		key += " within " + e.Scope().Key()
	}
	if r.a.in.Fork {
		if err := needsSecrets(e.Pipeline); err != nil {
			return err
		}
	}
	if r.head = r.heads[key]; r.head == nil {
		if r.head, err = r.a.fetchHead(ctx, e.Scope(), git); err != nil {
			return err
		}
		r.heads[key] = r.head
	}
	if r.base = r.bases[key]; r.base == nil && r.a.in.Fork {
		if r.base, err = r.a.fetchBase(ctx, e.Scope(), git); err != nil {
			return err
		}
		r.bases[key] = r.base
	}
	return nil
}

func (r *rendering) newPreviewer() *dryrun.Renderer {
	side := r.a.pullRequestSide()
	out := &dryrun.Renderer{
		Fetcher: side.Fetcher, Builder: side.Builder, Secrets: side.Secrets, Artifacts: side.Artifacts,
		PipelinesDir: r.a.p.PipelinesDir, Workers: 1, KeepFiles: true,
	}
	out.Instead = func(_ catalog.Entry, one v1alpha1.NamedSource) *source.Snapshot {
		if one.MountPath == "" {
			return r.head
		}
		return nil
	}
	return out
}

// comparePipeline renders one pipeline and compares it.
func (r *rendering) comparePipeline(ctx context.Context, e catalog.Entry) *dryrun.Comparison {
	if r.previewer == nil {
		r.previewer = r.newPreviewer()
	}
	if r.a.in.Fork {
		e = withoutEncryption(e)
		before := r.renderBase(ctx, e)
		r.previewer.Published = func(ctx context.Context, e catalog.Entry, to v1alpha1.Publish) (publish.Holding, error) {
			return r.placeContentBefore(ctx, e, to, before)
		}
	}
	return r.previewer.Compare(ctx, []catalog.Entry{e}, "")
}

// errCount is a bug.
var errCount = errors.New("a pipeline was compared, and nothing came of it")

// addComparison counts what a comparison has found.
func (r *rendering) addComparison(out *compared, e catalog.Entry, c *dryrun.Comparison) {
	if len(c.Pipelines) != 1 {
		r.recordUncomparedPipeline(out, e, errCount.Error())
		return
	}
	one := c.Pipelines[0]
	changes := 0
	failures := nonEmpty(one.Error, one.Gate, one.Failed)
	for _, t := range one.Targets {
		out.added, out.modified, out.deleted = out.added+t.Added, out.modified+t.Modified, out.deleted+t.Deleted
		changes += t.Added + t.Modified + t.Deleted
		failures = append(failures, nonEmpty(t.Error, t.Gate)...)
	}
	if changes > 0 {
		out.changed++
	}
	for _, text := range failures[:min(1, len(failures))] {
		r.countStatusFailure(out, e, text)
	}
	if e.Pipeline.Spec.Preview.Comments() {
		out.reviewed = append(out.reviewed, c.Review().Pipelines...)
	}
}

// recordUncomparedPipeline records a pipeline that was not compared.
func (r *rendering) recordUncomparedPipeline(out *compared, e catalog.Entry, text string) {
	r.countStatusFailure(out, e, text)
	if e.Pipeline.Spec.Preview.Comments() {
		out.reviewed = append(out.reviewed, review.Pipeline{Name: e.Key, Refused: text})
	}
}

// countStatusFailure counts a failure where the status counts it.
func (r *rendering) countStatusFailure(out *compared, e catalog.Entry, text string) {
	if e.Pipeline.Spec.Preview.Statuses() {
		out.statusFailures = append(out.statusFailures, e.Key+": "+text)
	}
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// fetchHead fetches the head of the pull request. What a fork has is read in the repository itself, with the
// credentials for that; its submodules, which the fork names, are read without any.
func (a *attempt) fetchHead(ctx context.Context, scope source.Scope,
	src *v1alpha1.GitSource) (*source.Snapshot, error) {
	if !a.in.Fork && a.unproven != nil {
		return nil, a.unproven
	}
	git := *src
	git.Ref = v1alpha1.GitRef{Name: "refs/heads/" + a.in.Head}
	fetcher := a.p.Heads
	if a.in.Fork {
		git.Ref.Name = pullrequest.PullRef(a.entries[0].Pipeline.Spec.Preview.Provider, a.in.Number)
		if git.SecretRef == nil {
			fetcher = a.p.Forks.Fetcher
		}
		git.Submodules = git.Submodules && git.SecretRef == nil
	}
	if a.in.Fork && a.in.ForkURL != "" {
		if err := a.p.Forks.Fetcher.CheckReach(scope, a.in.ForkURL); err != nil {
			return nil, fmt.Errorf("fetching the fork: %w", err)
		}
		git.URL, git.SecretRef, fetcher = a.in.ForkURL, nil, a.p.Forks.Fetcher
	}
	return a.recordFetchedSnapshot(fetcher.Fetch(ctx, scope, v1alpha1.Source{Git: &git}, a.in.HeadCommit))
}

// fetchBase fetches the branch that a fork's pull request targets.
func (a *attempt) fetchBase(ctx context.Context, scope source.Scope,
	src *v1alpha1.GitSource) (*source.Snapshot, error) {
	git, fetcher := *src, a.p.Heads
	if git.SecretRef == nil {
		fetcher = a.p.Forks.Fetcher
	}
	git.Submodules = git.Submodules && git.SecretRef == nil
	return a.recordFetchedSnapshot(fetcher.Fetch(ctx, scope, v1alpha1.Source{Git: &git}, ""))
}

// recordFetchedSnapshot notes what was fetched, so that it is let go of.
func (a *attempt) recordFetchedSnapshot(s *source.Snapshot, err error) (*source.Snapshot, error) {
	if err == nil && !slices.Contains(a.one.Fetched, s.Digest) {
		a.one.Fetched = append(a.one.Fetched, s.Digest)
	}
	return s, err
}
