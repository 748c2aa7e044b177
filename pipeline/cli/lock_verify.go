// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/cli/lock"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// runVerify compares the locks with the servers.
func (c *lockRun) runVerify(ctx context.Context, args []string, output string) error {
	found, closing, err := c.collect(ctx, args, build.CompareLocked)
	if err != nil {
		return err
	}
	defer closing()
	fetcher := c.newCharts()
	statuses := []lock.Status{}
	bar := newBar(c.streams.Err, "querying the servers")
	defer bar.clearLine()
	for i, file := range found.Files {
		bar.setProgress(i, len(found.Files), file.Path)
		for _, s := range file.Verify(ctx, fetcher) {
			s.Lock = policy.DisplayPath(s.Lock)
			statuses = append(statuses, s)
		}
	}
	bar.clearLine()
	if c.images != nil {
		of, err := c.verifyImages(ctx)
		if err != nil {
			return err
		}
		statuses = append(statuses, of...)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(statuses) == 0 {
		fmt.Fprintln(c.streams.Err, "nothing is locked, and the source names nothing on other servers")
	}
	if err := c.printStatuses(statuses, output); err != nil {
		return err
	}
	count := map[lock.State]int{}
	for _, s := range statuses {
		count[s.State]++
	}
	noun := "chart"
	if c.images != nil {
		noun = "reference"
	}
	wrong := count[lock.Changed] + count[lock.Lost] + count[lock.Missing]
	switch {
	case count[lock.Unknown] > 0:
		return errors.Join(append(c.failed, fmt.Errorf("%s could not be checked", countWithNoun(count[lock.Unknown], noun)))...)
	case len(c.failed) > 0:
		return errors.Join(c.failed...)
	case wrong > 0:
		return findingsError{fmt.Sprintf("%d of %s not as locked; run prerig lock and review the change", wrong, countWithNoun(len(statuses), noun))}
	}
	return nil
}

func (c *lockRun) printStatuses(statuses []lock.Status, output string) error {
	if output != "text" {
		key := "charts"
		if c.images != nil {
			key = "locked"
		}
		return writeStructured(c.streams.Out, output, map[string]any{key: statuses})
	}
	for _, s := range statuses {
		line := fmt.Sprintf("%-7s  %s", s.State, s)
		switch s.State {
		case lock.Newer, lock.Changed:
			line += "  -> " + s.Now
		case lock.Missing:
			line += "  " + s.Range
		case lock.Unknown:
			line += "  " + strings.ReplaceAll(s.Message, "\n", " ")
		}
		if _, err := fmt.Fprintln(c.streams.Out, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}
