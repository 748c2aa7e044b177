// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Chart is a chart of a repository whose archive was fetched beforehand. The renderer sees it in a directory of the root that
// no list shows.
type Chart struct {
	// LockedChart is the chart's entry in the lock.
	v1alpha1.LockedChart
	// Path of the archive.
	Path string `json:"path"`
}

const chartPrefix = ".prerig-chart-"

// NewChart returns the chart that is locked, with the directory for its archive and the archive's name in it.
func NewChart(locked v1alpha1.LockedChart) (chart Chart, directory, file string) {
	directory = chartPrefix + strings.TrimPrefix(locked.Digest, "sha256:")[:20]
	file = locked.Name + "-" + locked.Version + ".tgz"
	return Chart{locked, path.Join(directory, file)}, directory, file
}

// ChartReference is a chart of a repository that a build needs.
type ChartReference struct {
	// Repository is the URL of the chart repository, Name the chart's name in it and Range the version that is asked for.
	Repository, Name, Range string
	// Where is what asks for it: a file and line of the source, or a field of the pipeline.
	Where string
	// Named reports whether the pipeline itself names the repository, rather than only the source.
	Named bool
	// Needed reports whether rendering is impossible without it. Otherwise the renderer reports the failure.
	Needed bool
}

// Same reports whether two references are for the same chart, whatever asks for it.
func (r ChartReference) Same(other ChartReference) bool {
	return v1alpha1.NormalChartRepository(r.Repository) == v1alpha1.NormalChartRepository(other.Repository) &&
		r.Name == other.Name && r.Range == other.Range
}

// MissingChart is a chart that was asked for and cannot be had.
type MissingChart struct {
	Chart ChartReference `json:"chart"`
	// Reason is why, and what to do.
	Reason string `json:"reason"`
	// Unlocked reports whether it only lacks an entry in the lock.
	Unlocked bool `json:"unlocked,omitempty"`
}
