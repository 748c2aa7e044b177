// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/batch"
)

// finishRun reports the results of a run, and writes or shows them. rerun repeats the run without documents that
// turn out to be unreadable in it.
func (in *injectRun) finishRun(ctx context.Context, b *batch.Batch, report *fn.Report, rerun func() (*fn.Report, error)) error {
	in.printResults(report.Results)
	failed := report.Failed()
	if failed && b.SetAside(report) { // what sidecars add is not known where the run has met such a document
		var err error
		if report, err = rerun(); err != nil {
			return err
		}
	}
	if in.replacesByDefault() || failed && !in.canContinue(b, report) {
		fmt.Fprintln(in.streams.Err, "nothing was written")
		return errReported
	}
	if in.diff {
		if err := in.printDiff(b); err != nil { // who does not get to see the changes does not get them either
			return err
		}
	}
	if err := in.writeManifests(ctx, b); err != nil {
		return err
	}
	in.printSummary(b, report)
	verdict := in.checkVerdict(report)
	if !failed {
		return verdict
	}
	if verdict != nil {
		fmt.Fprintln(in.streams.Err, verdict)
	}
	in.sayLeftOut(b)
	return errReported
}

// canContinue reports whether work remains despite errors. Commands that only show results continue past all of them.
// Manifests are written past files that cannot be read, to standard output and into a directory, where each file is
// independent: a workload that cannot be injected, or a single file that would lose content, stops the whole run.
func (in *injectRun) canContinue(b *batch.Batch, report *fn.Report) bool {
	directory := in.output != "" && isOutputDirectory(in.output)
	switch {
	case in.inPlace, len(report.Outcomes) == 0 && len(b.Stream()) == 0:
		return false
	case in.output == "" && (in.diff || in.check):
		return true
	case in.output != "" && in.output != "-" && !directory:
		return false
	}
	return !slices.ContainsFunc(report.Results[len(b.Problems()):], func(r result.Result) bool { return r.Severity == result.Error })
}

// sayLeftOut names the files that did not go on to the output.
func (in *injectRun) sayLeftOut(b *batch.Batch) {
	if in.output == "" && (in.diff || in.check) {
		return
	}
	var names []string
	for _, p := range b.Problems() {
		if p.File != nil && !slices.Contains(names, p.File.Path) {
			names = append(names, p.File.Path)
		}
	}
	if len(names) > 0 {
		fmt.Fprintln(in.streams.Err, "omitted from the output: "+strings.Join(names, ", "))
	}
}
