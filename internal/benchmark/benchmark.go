// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package benchmark prints what the benchmarks of the function and of the pipeline have measured, and notes which targets it misses.
package benchmark

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Report writes figures and notes those that miss what is asked of them.
type Report struct {
	// Out is what is written to.
	Out io.Writer

	missed []error
}

// Require records a missed target with a message.
func (r *Report) Require(met bool, format string, args ...any) {
	if !met {
		r.missed = append(r.missed, fmt.Errorf(format, args...))
	}
}

// Finish reports the missed targets: as an error if strict, otherwise in the report.
func (r *Report) Finish(strict bool) error {
	if strict {
		return errors.Join(r.missed...)
	}
	for _, err := range r.missed {
		if _, err := fmt.Fprintln(r.Out, "missed:", err); err != nil {
			return err
		}
	}
	return nil
}

// Median returns the median of the figures, the upper of two. It keeps their order. At least one figure is
// required.
func Median[T cmp.Ordered](figures ...T) T {
	sorted := slices.Sorted(slices.Values(figures))
	return sorted[len(sorted)/2]
}

// Table writes a title and rows as a Markdown table in columns. The first row is the head; none is longer.
func (r *Report) Table(title string, rows ...[]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len([]rune(cell)))
		}
	}
	var text strings.Builder
	text.WriteString("\n" + title + "\n")
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&text, "| %s%s ", cell, strings.Repeat(" ", widths[i]-len([]rune(cell))))
		}
		text.WriteString("|\n")
		if n == 0 {
			for _, width := range widths {
				text.WriteString("|" + strings.Repeat("-", width+2))
			}
			text.WriteString("|\n")
		}
	}
	_, err := io.WriteString(r.Out, text.String())
	return err
}

// Seconds returns a duration in seconds, as "1.25 s".
func Seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// Millis returns a duration in milliseconds, as "9.7 ms".
func Millis(d time.Duration) string { return fmt.Sprintf("%.1f ms", d.Seconds()*1e3) }

// Megabytes returns a number of bytes in units of a million, as "253 MB".
func Megabytes(n int64) string { return fmt.Sprintf("%.0f MB", float64(n)/1e6) }
