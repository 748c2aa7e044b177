// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// conflictMarkers begin the lines that git merge writes around the two sides of a conflict.
var conflictMarkers = []string{"<<<<<<< ", ">>>>>>> "}

// conflictMarker returns the line, from 1, and the text of the first marker of a conflict; 0 without any.
func conflictMarker(text string) (line int, marker string) {
	for one := range strings.Lines(text) {
		line++
		for _, begin := range conflictMarkers {
			if strings.HasPrefix(one, begin) {
				return line, strings.TrimSpace(one)
			}
		}
	}
	return 0, ""
}
