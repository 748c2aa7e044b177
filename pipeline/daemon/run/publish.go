// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source"
)

// targetResult is what became of one entry of spec.publish.
type targetResult struct {
	published v1alpha1.Published
	receipt   publish.Receipt
	err       error
}

// targetResults are those of all entries of spec.publish that a run has published to.
type targetResults []targetResult

// publishedRevisions returns the commits and digests that the result is published as.
func (t targetResults) publishedRevisions() []string {
	var all []string
	for _, p := range t {
		if p.err == nil {
			all = append(all, p.published.Revision)
		}
	}
	return all
}

// reasonToWait returns the reason a result has to wait for its turn, or "" if none has.
func (t targetResults) reasonToWait() string {
	for _, p := range t {
		if p.err == nil && p.receipt.Held != "" {
			return p.receipt.Held
		}
	}
	return ""
}

func (t targetResults) hasChanged() bool {
	return slices.ContainsFunc(t, func(p targetResult) bool { return p.receipt.Changed })
}

// publishResult brings the result to every place; one that fails keeps no other from getting it.
func (a *attempt) publishResult(ctx context.Context, pub *publication) error {
	ctx, span := otel.Tracer("prerig").Start(ctx, "publish")
	defer span.End()
	start := time.Now()
	defer func() { a.measured.Publish = time.Since(start) }()
	if err := a.r.Store.SaveSnapshots(ctx, a.built.Snapshots); err != nil {
		return publishError(err)
	}
	var failed []*StageError
	for i, to := range a.p.Spec.Publish {
		one := pub.publishTo(ctx, to)
		if one.err != nil {
			failed = append(failed, publishError(one.err))
			logPanic(a.log, "publishing has panicked", one.err)
			a.log.Warn("a result could not be published", "place", i, "error", one.err)
		}
		a.published = append(a.published, one)
	}
	span.SetAttributes(attribute.StringSlice("prerig.commits", a.published.publishedRevisions()))
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

// publishError returns the outcome of publishing: it indicates whether a retry can help.
func publishError(err error) *StageError {
	var gate *publish.GateError
	if errors.As(err, &gate) {
		return &StageError{Stage: status.StageGate, Final: true, Err: err}
	}
	final := errors.Is(err, publish.ErrUnmanaged) || errors.Is(err, publish.ErrEdited) || publish.IsNotOwned(err) || errors.Is(err, errContent) || errors.Is(err, errOwnSource)
	return &StageError{Stage: status.StagePublish, Final: final, Err: err}
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

// errContent is about a result that cannot be written as files.
var errContent = errors.New("the result cannot be written")

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
