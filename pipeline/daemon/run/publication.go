// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
)

// publication is a result on its way to the places that its pipeline publishes to.
type publication struct {
	r        *Runner
	log      *slog.Logger
	cause    string
	entry    catalog.Entry
	p        *v1alpha1.RenderPipeline
	state    *status.State
	started  time.Time
	snapshot *source.Snapshot
	built    *build.Built
	texts    publish.Texts // of the objects of built
	note     *publish.Note // see attempt
	anew     bool          // a render was requested
	istio    *string       // the versions of Istio in the result, nil until requested
}

// newStep returns a step of publishing for the watchdog.
func (p *publication) newStep(what string) watchdog.Step {
	return watchdog.Step{Name: watchdog.StepPublish, Subject: p.entry.Key + " " + what, Limit: publish.PublishWait}
}

// publishTo brings the result to one place.
func (p *publication) publishTo(ctx context.Context, to v1alpha1.Publish) targetResult {
	one := targetResult{published: v1alpha1.Published{Target: to.Target()}}
	// Each place bounds its own operations; the watchdog bounds the cases that none of them anticipates.
	one.receipt, one.err = watchdog.Run(ctx, p.r.Watchdog, p.newStep(to.Target()), func(ctx context.Context) (publish.Receipt, error) {
		return p.writeTo(ctx, to)
	})
	if one.err != nil {
		one.err = fmt.Errorf("publishing to %s: %w", to.Target(), one.err)
		return one
	}
	one.published.SourceRevision, one.published.Revision = p.snapshot.Revision, one.receipt.Revision
	one.published.Sources, one.published.Snapshots = p.snapshot.SourceRevisions(), p.snapshotDigests()
	if !one.receipt.Changed {
		inheritSnapshotNames(&one.published, p.state.Status.Published)
	}
	one.published.PullRequest = one.receipt.PullRequest
	p.recordIstioVersions(&one.published)
	return one
}

// writeTo writes the result to one place.
func (p *publication) writeTo(ctx context.Context, to v1alpha1.Publish) (publish.Receipt, error) {
	revisions := p.snapshot.Revisions()
	for _, one := range p.p.AllSources() {
		if to.WritesItsSource(one.Source, revisions[one.MountPath]) {
			return publish.Receipt{}, errOwnSource
		}
	}
	target, err := p.r.Targets.Open(ctx, p.p.Metadata.Namespace, to)
	if err != nil {
		return publish.Receipt{}, err
	}
	change, err := p.newChangeFor(ctx, to, target)
	if err != nil {
		return publish.Receipt{}, err
	}
	receipt, err := target.Publish(ctx, change)
	if publish.IsNotOwned(err) {
		if change.Predecessors = p.r.Remover.Predecessors(ctx, p.entry.Key, to); len(change.Predecessors) > 0 {
			receipt, err = target.Publish(ctx, change)
		}
	}
	if receipt.Problem != nil {
		p.log.Warn("the difference of what was published could not be made", "target", to.Target(), "error", receipt.Problem)
	}
	return receipt, err
}

// newChangeFor is the result as a place gets it.
func (p *publication) newChangeFor(ctx context.Context, to v1alpha1.Publish, target publish.Interface) (publish.Change, error) {
	writer, err := p.r.Targets.Writer(ctx, p.p, to)
	if err != nil {
		return publish.Change{}, err
	}
	writer.Texts = &p.texts
	files, err := writer.Files(p.built.Objects)
	if err != nil {
		return publish.Change{}, fmt.Errorf("%w: %w", errContent, err)
	}
	objects := p.built.Objects
	if p.built.UnitError() != nil {
		held, err := target.Current(ctx, p.entry.Key, files)
		if err != nil {
			return publish.Change{}, err
		}
		objects = publish.KeepFailed(files, held.Files, p.built.Response)
	}
	var heads []string
	for _, one := range p.state.Status.Published {
		// A request for another path is removed too: otherwise its old files would return with the old pull
		// request.
		if one.PullRequest != nil && to.IsSameBranch(one.Target) {
			heads = append(heads, one.PullRequest.Head)
		}
	}
	gate := publish.Gate(p.p.Spec.Gates, objects)
	return publish.Change{
		Pipeline: p.entry.Key, Cause: p.cause, Files: files, Objects: objects, Origin: publish.OriginOf(p.snapshot),
		Heads: heads, Findings: p.built.Results, PolicyDigest: p.built.Request.PolicyDigest(), Tool: p.r.Builder.Version, Command: renderCommand(p.p, p.snapshot, p.snapshotDigests()),
		Snapshots: p.snapshotDigests(), Policies: publish.AttestedPolicies(p.built.Request.Policies), Note: p.note, Anew: p.anew, Written: p.state.Seen.Targets[to.Target()],
		Still: func() error { return queue.Held(ctx) },
		Gate: func(published int, deleted []string) error {
			// The last moment before something is written: it must still be ours to write.
			if err := queue.Held(ctx); err != nil {
				return err
			}
			if err := p.r.Store.CheckHold(p.entry.Key); err != nil {
				return err
			}
			return gate(published, deleted)
		},
	}, nil
}

// snapshotDigests names the policies that were completed from the cluster.
func (p *publication) snapshotDigests() (digests []string) {
	for _, one := range p.built.Snapshots {
		digests = append(digests, one.Digest)
	}
	return digests
}

// recordIstioVersions notes which versions of Istio a result has, and those of what is merged as long as it waits.
func (p *publication) recordIstioVersions(now *v1alpha1.Published) {
	if now.PullRequest == nil && now.Revision == "" {
		return
	}
	if p.istio == nil {
		text := publish.IstioVersions(p.built.Objects)
		p.istio = &text
	}
	now.Istio = *p.istio
	for _, before := range p.state.Status.Published {
		if before.Target != now.Target || now.PullRequest == nil {
			continue
		}
		now.IstioBefore = before.Istio
		if before.PullRequest != nil {
			now.IstioBefore = before.IstioBefore
		}
	}
}
