// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

// Diff is what a run changed at one or more places.
type Diff struct {
	Files []FileDiff `json:"files"`
	// LeftOut counts files whose difference is not stored, as all together were too large.
	LeftOut int `json:"leftOut,omitempty"`
}

// FileDiff is what a run changed in one file.
type FileDiff struct {
	// Target is the place, Path the file in it.
	Target string `json:"target"`
	Path   string `json:"path"`
	// Kind is added, modified or deleted.
	Kind string `json:"kind"`
	// Patch is a unified diff.
	Patch string `json:"patch"`
	// Injected are the lines of the new file, counted from 1, that the injection made.
	Injected []int `json:"injected,omitempty"`
	// InjectedBefore are the lines of the old file that an injection had made.
	InjectedBefore []int `json:"injectedBefore,omitempty"`
	// LinesLeftOut counts the lines at the end of the patch that are not stored.
	LinesLeftOut int `json:"linesLeftOut,omitempty"`
}
