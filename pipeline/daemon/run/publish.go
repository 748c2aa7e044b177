// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
)

// targetResult is what became of one entry of spec.publish.
type targetResult struct {
	published v1alpha1.Published
	receipt   publish.Receipt
	err       error
}

// publishResult brings the result to every place; one that fails keeps no other from getting it.
func (a *attempt) publishResult(ctx context.Context) error {
	ctx, span := otel.Tracer("prerig").Start(ctx, "publish")
	defer span.End()
	start := time.Now()
	defer func() { a.measured.Publish = time.Since(start) }()
	if err := a.r.Store.SaveSnapshots(ctx, a.built.Snapshots); err != nil {
		return publishError(err)
	}
	var failed []*StageError
	for i, to := range a.p.Spec.Publish {
		p := targetResult{published: v1alpha1.Published{Target: to.Target()}}
		// Each place bounds its own operations; this bounds the cases that none of them anticipates.
		step := a.newWatchdogStep(watchdog.StepPublish, publish.PublishWait)
		step.Subject += " " + p.published.Target
		p.receipt, p.err = watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (publish.Receipt, error) { return a.publishTo(ctx, to) })
		if p.err == nil {
			p.published.SourceRevision, p.published.Revision = a.snapshot.Revision, p.receipt.Revision
			p.published.Sources, p.published.Snapshots = a.snapshot.SourceRevisions(), a.snapshotDigests()
			if !p.receipt.Changed {
				inheritSnapshotNames(&p.published, a.state.Status.Published)
			}
			p.published.PullRequest = p.receipt.PullRequest
			a.recordIstioVersions(&p.published)
		} else {
			p.err = fmt.Errorf("publishing to %s: %w", p.published.Target, p.err)
			failed = append(failed, publishError(p.err))
			a.logPanic("publishing has panicked", p.err)
			a.log.Warn("a result could not be published", "place", i, "error", p.err)
		}
		a.published = append(a.published, p)
	}
	span.SetAttributes(attribute.StringSlice("prerig.commits", a.publishedRevisions()))
	if len(failed) > 0 {
		return joinFailures(failed)
	}
	var err error
	if a.staleNotes, a.staleRemoved, err = a.r.Remover.RemoveStale(ctx, a.job, a.p, a.snapshot.URL, a.state); err != nil {
		return publishError(err)
	}
	return nil
}

// inheritSnapshotNames has what is published as it was before name the snapshots that it was rendered with then: its
// provenance does.
func inheritSnapshotNames(now *v1alpha1.Published, before []v1alpha1.Published) {
	for _, one := range before {
		if one.Target == now.Target {
			now.Snapshots = one.Snapshots
		}
	}
}

// recordIstioVersions notes which versions of Istio a result has, and those of what is merged as long as it waits.
func (a *attempt) recordIstioVersions(now *v1alpha1.Published) {
	if now.PullRequest == nil && now.Revision == "" {
		return
	}
	if a.istio == nil {
		text := publish.IstioVersions(a.built.Objects)
		a.istio = &text
	}
	now.Istio = *a.istio
	for _, before := range a.state.Status.Published {
		if before.Target != now.Target || now.PullRequest == nil {
			continue
		}
		now.IstioBefore = before.Istio
		if before.PullRequest != nil {
			now.IstioBefore = before.IstioBefore
		}
	}
}

// joinFailures is the error of all places that have failed. It is only as final as the least final of them, and a gate that is
// closed, which waits for a change of the source, does not keep what others may mend from being looked at again.
func joinFailures(failed []*StageError) *StageError {
	all := &StageError{Stage: failed[0].Stage, Final: true}
	var errs []error
	for _, one := range failed {
		all.Final = all.Final && one.Final
		if one.Stage != status.StageGate {
			all.Stage = one.Stage
		}
		errs = append(errs, one.Err)
	}
	all.Err = errors.Join(errs...)
	if len(errs) == 1 {
		all.Err = errs[0]
	}
	return all
}

// publishedRevisions returns the commits and digests that the result is published as.
func (a *attempt) publishedRevisions() []string {
	var all []string
	for _, p := range a.published {
		if p.err == nil {
			all = append(all, p.published.Revision)
		}
	}
	return all
}

// publishError returns the outcome of publishing: it indicates whether a retry can help.
func publishError(err error) *StageError {
	var gate *publish.GateError
	if errors.As(err, &gate) {
		return &StageError{Stage: status.StageGate, Final: true, Err: err}
	}
	final := errors.Is(err, publish.ErrUnmanaged) || errors.Is(err, publish.ErrEdited) || publish.IsNotOwned(err) || errors.Is(err, errContent) || errors.Is(err, errOwnSource)
	return &StageError{Stage: status.StagePublish, Final: final, Err: err}
}

// publishTo brings the result to one place.
func (a *attempt) publishTo(ctx context.Context, to v1alpha1.Publish) (publish.Receipt, error) {
	revisions := a.snapshot.Revisions()
	for _, one := range a.p.AllSources() {
		if to.WritesItsSource(one.Source, revisions[one.MountPath]) {
			return publish.Receipt{}, errOwnSource
		}
	}
	target, err := a.r.Targets.Open(ctx, a.p.Metadata.Namespace, to)
	if err != nil {
		return publish.Receipt{}, err
	}
	change, err := a.newChangeFor(ctx, to)
	if err != nil {
		return publish.Receipt{}, err
	}
	receipt, err := target.Publish(ctx, change)
	if publish.IsNotOwned(err) {
		if change.Predecessors = a.r.Remover.Predecessors(ctx, a.entry.Key, to); len(change.Predecessors) > 0 {
			receipt, err = target.Publish(ctx, change)
		}
	}
	if receipt.Problem != nil {
		a.log.Warn("the difference of what was published could not be made", "target", to.Target(), "error", receipt.Problem)
	}
	return receipt, err
}

// renderCommand returns the command that reproduces a result, for trailers of commits.
func renderCommand(p *v1alpha1.RenderPipeline, snapshot *source.Snapshot, policies []string) string {
	command := "prerig render " + p.Key() + " --revision " + snapshot.Revision
	for _, one := range snapshot.Mounted {
		command += " --revision " + one.MountPath + "=" + one.Snapshot.Revision
	}
	for _, digest := range policies {
		command += " --snapshot " + digest
	}
	return command
}

// snapshotDigests names the policies that were completed from the cluster.
func (a *attempt) snapshotDigests() (digests []string) {
	for _, one := range a.built.Snapshots {
		digests = append(digests, one.Digest)
	}
	return digests
}

// errContent is about a result that cannot be written as files.
var errContent = errors.New("the result cannot be written")

// newChangeFor is the result as a place gets it.
func (a *attempt) newChangeFor(ctx context.Context, to v1alpha1.Publish) (publish.Change, error) {
	writer, err := a.r.Targets.Writer(ctx, a.p, to)
	if err != nil {
		return publish.Change{}, err
	}
	writer.Texts = &a.texts
	files, err := writer.Files(a.built.Objects)
	if err != nil {
		return publish.Change{}, fmt.Errorf("%w: %w", errContent, err)
	}
	var heads []string
	for _, one := range a.state.Status.Published {
		// A request for another path is removed too: otherwise its old files would return with the old pull
		// request.
		if one.PullRequest != nil && to.IsSameBranch(one.Target) {
			heads = append(heads, one.PullRequest.Head)
		}
	}
	gate := publish.Gate(a.p.Spec.Gates, a.built.Objects)
	return publish.Change{
		Pipeline: a.entry.Key, Cause: a.job.Cause, Files: files, Objects: a.built.Objects, Origin: publish.OriginOf(a.snapshot),
		Heads: heads, Findings: a.built.Results, PolicyDigest: a.built.Request.PolicyDigest(), Tool: a.r.Builder.Version, Command: renderCommand(a.p, a.snapshot, a.snapshotDigests()),
		Snapshots: a.snapshotDigests(), Note: a.note, Anew: a.isForced(), Written: a.state.Seen.Targets[to.Target()],
		Still: func() error { return queue.Held(ctx) },
		Gate: func(published int, deleted []string) error {
			// The last moment before something is written: it must still be ours to write.
			if err := queue.Held(ctx); err != nil {
				return err
			}
			if err := a.r.Store.CheckHold(a.entry.Key); err != nil {
				return err
			}
			return gate(published, deleted)
		},
	}, nil
}

// errOwnSource is about a pipeline that would render what it has published itself.
var errOwnSource = errors.New("it is the branch that the source is read from, and every commit would be read as a new source; publish to another branch")

// loggedTargets is where a run has published to, as one value of a line of the log: a key that is repeated is lost on most readers.
type loggedTargets []v1alpha1.Published

// String implements fmt.Stringer, for logs of text: TARGET@COMMIT, separated by spaces.
func (l loggedTargets) String() string {
	words := make([]string, len(l))
	for i, p := range l {
		words[i] = p.Target + "@" + p.Revision
	}
	return strings.Join(words, " ")
}
