// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/publish"
)

// leaveOutLeft leaves out the files of units that one of the two ends leaves to the cluster: what they have there is unknown, so that
// nothing of them is deleted or added. It returns remarks about them.
func (e *endPair) leaveOutLeft() (out []Remark) {
	for _, name := range slices.Sorted(maps.Keys(e.sides[1].units)) {
		was, known := e.sides[0].units[name]
		now := e.sides[1].units[name]
		text := ""
		switch {
		case !known || (was.Left == "") == (now.Left == ""):
			continue
		case now.Left != "":
			text = "is not rendered any more, and what it applies was not compared: " + WithoutHints(now.Left)
		default:
			text = "is rendered now, and what it applies was not compared, as it could not be rendered before: " + WithoutHints(was.Left)
		}
		for _, files := range []map[string][]byte{e.build.Before, e.build.After} {
			maps.DeleteFunc(files, func(file string, _ []byte) bool { return publish.IsOfUnit(file, name) })
		}
		out = append(out, Remark{Kind: RemarkNotCompared, Text: now.Kind + " " + name + " " + text, Objects: []string{now.Kind + " " + name}})
	}
	return out
}
