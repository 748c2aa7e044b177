// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// barChart is a bar of parts, drawn by a page as SVG.
type barChart struct {
	// Label describes it to who does not see it.
	Label string
	Parts []barPart
}

// barWidth is the width of a bar in its own units.
const barWidth = 1000

// barPart is a part of a bar.
type barPart struct {
	X, Width int
	Class    string
	Title    string
}

// drawBar draws versions as parts of all workloads; the rest is without a sidecar.
func drawBar(versions []versionPart, all int) barChart {
	if all == 0 {
		return barChart{Label: "no workloads"}
	}
	var bar barChart
	var labels []string
	left := all
	add := func(name, class string, n int) {
		x := barWidth * (all - left) / all
		left -= n
		title := fmt.Sprintf("%s: %s", name, status.Count(n, "workload"))
		bar.Parts = append(bar.Parts, barPart{X: x, Width: barWidth*(all-left)/all - x, Class: class, Title: title})
		labels = append(labels, title)
	}
	for _, one := range versions {
		if n := min(one.N, left); n > 0 {
			add("Istio "+one.Version, one.Class, n)
		}
	}
	if left > 0 {
		add("without a sidecar", "vnone", left)
	}
	bar.Label = strings.Join(labels, ", ")
	return bar
}

// tickChart is the last runs of a pipeline, oldest first.
type tickChart struct {
	Label string
	Width int
	Ticks []tick
}

// tick is a run: its height is its duration, its class its outcome.
type tick struct {
	X, Y, Height int
	Class, Title string
}

// Sizes of ticks, in the units of their drawing.
const (
	tickWidth  = 12
	tickHeight = 48
	tickLeast  = 6
	maxTicks   = 20
)

// drawTicks draws runs, which come newest first. Durations are drawn by their square root, so that a second is still
// visible beside minutes.
func drawTicks(runs []status.Run) tickChart {
	runs = slices.Clone(runs[:min(len(runs), maxTicks)])
	slices.Reverse(runs)
	longest := time.Millisecond
	outcomes := map[string]int{}
	for _, r := range runs {
		longest = max(longest, r.Took)
		outcomes[r.Outcome]++
	}
	chart := tickChart{Width: len(runs) * tickWidth}
	for i, r := range runs {
		share := math.Sqrt(float64(r.Took) / float64(longest))
		height := tickLeast + int(share*(tickHeight-tickLeast))
		title := fmt.Sprintf(
			"%s, %s, %s",
			r.Outcome,
			runDuration(r),
			r.Finished.UTC().Format("2006-01-02 15:04:05 UTC"),
		)
		chart.Ticks = append(
			chart.Ticks,
			tick{
				X:      i * tickWidth,
				Y:      tickHeight - height,
				Height: height,
				Class:  strings.ToLower(r.Outcome),
				Title:  title,
			},
		)
	}
	var counts []string
	all := []string{status.Published, status.Unchanged, status.Refused, status.Failed, status.Drifted}
	for _, outcome := range all {
		if n := outcomes[outcome]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, strings.ToLower(outcome)))
		}
	}
	chart.Label = fmt.Sprintf("Last %s: %s", status.Count(len(runs), "run"), strings.Join(counts, ", "))
	return chart
}

// delayChart is the time from events to commits over the last day.
type delayChart struct {
	// N is how many commits it is of, Median and Most are half and 95 % of them.
	N            int
	Median, Most string
	// Top is the duration at the upper edge.
	Top, Label string
	Hours      []delayHour
}

// delayHour is the commits of an hour.
type delayHour struct {
	X int
	// Median and Most are the heights of half and of 95 % of them.
	Median, Most   int
	MedianY, MostY int
	Title          string
}

// Sizes of the chart of delays, in the units of its drawing.
const (
	delayHours  = 24
	delayWidth  = 20
	delayHeight = 90
)

// drawDelays draws how long commits of the last day took from their events, by the hour.
func drawDelays(rows []row, now time.Time) delayChart {
	var all []time.Duration
	hours := make([][]time.Duration, delayHours)
	for i := range rows {
		for _, r := range rows[i].Runs {
			age := now.Sub(r.Finished.Time)
			if age < 0 || age >= delayHours*time.Hour || r.Outcome != status.Published || r.Passed <= 0 {
				continue
			}
			all = append(all, r.Passed)
			at := delayHours - 1 - int(age/time.Hour)
			hours[at] = append(hours[at], r.Passed)
		}
	}
	chart := delayChart{N: len(all)}
	if chart.N == 0 {
		return chart
	}
	slices.Sort(all)
	top := time.Duration(0)
	for _, one := range hours {
		slices.Sort(one)
		top = max(top, percentile(one, 95))
	}
	chart.Median, chart.Most, chart.Top = shortDuration(
		percentile(all, 50),
	), shortDuration(
		percentile(all, 95),
	), shortDuration(
		top,
	)
	for i, one := range hours {
		if len(one) == 0 {
			continue
		}
		half, most := percentile(one, 50), percentile(one, 95)
		hour := delayHour{X: i * delayWidth, Median: delayBar(half, top), Most: delayBar(most, top)}
		hour.MedianY, hour.MostY = delayHeight-hour.Median, delayHeight-hour.Most
		from := now.Add(-time.Duration(delayHours-i) * time.Hour).UTC().Format("15:04 UTC")
		hour.Title = fmt.Sprintf(
			"hour from %s: %s, half within %s, 95 %% within %s",
			from,
			status.Count(len(one), "commit"),
			shortDuration(half),
			shortDuration(most),
		)
		chart.Hours = append(chart.Hours, hour)
	}
	chart.Label = fmt.Sprintf(
		"%s in 24 hours, half within %s, 95 %% within %s",
		status.Count(chart.N, "commit"),
		chart.Median,
		chart.Most,
	)
	return chart
}

// delayBar is the height of a duration, where top has the full one.
func delayBar(d, top time.Duration) int { return max(2, int(delayHeight*d/max(top, 1))) }

// percentile returns the value that a share of sorted values does not exceed.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, (len(sorted)*percent+99)/100-1)]
}

// shortDuration is a duration with two or three digits.
func shortDuration(d time.Duration) string { return status.ShortDuration(d) }
