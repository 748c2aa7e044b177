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
	left, other := b.LeaveOut(report.Results)
	past := in.keepGoing && !other
	if in.replacesByDefault() || failed && !past && !in.canContinue(b, report) {
		fmt.Fprintln(in.streams.Err, in.nothingWritten(b, left, other))
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
	in.sayLeftOut(left)
	return errReported
}

// nothingWritten explains that nothing was written and, if the errors are those of some files below a directory, how to
// write the others. Only prerig inject has the flag for it.
func (in *injectRun) nothingWritten(b *batch.Batch, left []string, other bool) string {
	below := slices.ContainsFunc(b.Files, func(f *batch.File) bool { return f.Input.Root != "" && !f.Incomplete() })
	if other || in.keepGoing || !in.canKeepGoing || !below || len(left) == 0 {
		return "nothing was written"
	}
	return "nothing was written; to skip a file, use --exclude PATTERN, and to write all files without an error, --keep-going"
}

// canContinue reports whether work remains despite errors. Commands that only show results continue past all of them.
// Manifests are written past files that cannot be read, to standard output and into a directory, where each file is
// independent: a workload that cannot be injected, or a single file that would lose content, stops the whole run.
func (in *injectRun) canContinue(b *batch.Batch, report *fn.Report) bool {
	directory := in.to != "" && isOutputDirectory(in.to)
	switch {
	case in.inPlace, len(report.Outcomes) == 0 && len(b.Stream()) == 0:
		return false
	case in.to == "" && (in.diff || in.check):
		return true
	case in.writesFile() && !directory:
		return false
	}
	return !slices.ContainsFunc(report.Results[len(b.Problems()):], func(r result.Result) bool { return r.Severity == result.Error })
}

// sayLeftOut names the files that were not written because of their errors, which are printed above.
func (in *injectRun) sayLeftOut(left []string) {
	if in.to == "" && (in.diff || in.check) && !in.inPlace || len(left) == 0 {
		return
	}
	what := "omitted from the output: "
	if in.inPlace {
		what = "not changed, because of the errors above: "
	}
	fmt.Fprintln(in.streams.Err, what+strings.Join(left, ", "))
}
