// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/prerig/prerig/fn/lint/baseline"
	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// readBaseline reads the file of --baseline; nil without one.
func readBaseline(name string) (*baseline.Baseline, error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the baseline: %w; create one with --write-baseline", err)
	}
	b, err := baseline.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return b, nil
}

// saveBaseline writes the findings to the file of --write-baseline. While something cannot be checked, it would lack
// findings.
func (l *checkRun) saveBaseline(ctx context.Context, found result.Results, unchecked int, count string) error {
	if unchecked > 0 {
		l.printResults(slices.DeleteFunc(slices.Clone(found), func(r result.Result) bool { return !isUnchecked(r) }))
		return fmt.Errorf("writing the baseline: not everything was checked, because of %s; nothing was written",
			countWithNoun(unchecked, "error"))
	}
	b := baseline.New(found)
	data, err := b.Bytes()
	if err != nil {
		return err
	}
	out, err := files.To(l.writeBaseline, data)
	if err != nil {
		return err
	}
	if err := files.Write(ctx, []files.Output{out}, func(int) {}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.streams.Err, "wrote %s to %s; %s\n", countWithNoun(b.Len(), "finding"), l.writeBaseline,
		count)
	return err
}

// applyBaseline removes known findings, and reports the baseline's entries that no longer occur: they would hide
// such a finding if it came back.
func (l *checkRun) applyBaseline(known *baseline.Baseline, found result.Results) (result.Results, *format.Baseline) {
	fresh, n, gone := known.Filter(found)
	codes := ruleCodes(l.rules())
	gone = slices.DeleteFunc(gone, func(e baseline.Entry) bool { return !slices.Contains(codes, e.Code) }) // of parts that did not run
	for i, e := range gone {
		if more := len(gone) - i; i == named && more > 1 && !l.verbose {
			fmt.Fprintf(l.streams.Err, "info: and %d more (-v lists them)\n", more)
			break
		}
		fmt.Fprintf(l.streams.Err, "info: %s: no longer found: %s\n", l.baseline, e)
	}
	if len(gone) > 0 {
		fmt.Fprintf(l.streams.Err, "info: %s of the baseline %s no longer found; --write-baseline removes them\n",
			countWithNoun(len(gone), "finding"), map[bool]string{true: "was", false: "were"}[len(gone) == 1])
	}
	return fresh, &format.Baseline{Known: n, Gone: append([]baseline.Entry{}, gone...)}
}
