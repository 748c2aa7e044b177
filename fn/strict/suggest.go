// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package strict

import "strings"

// DidYouMean returns ", did you mean WORD?" with the known word that is closest to the unknown one, or "".
func DidYouMean(word string, known []string) string {
	if near := Closest(word, known); near != "" {
		return ", did you mean " + near + "?"
	}
	return ""
}

// Closest returns the known word that is closest to the unknown one, or "" if none is similar.
func Closest(word string, known []string) string {
	best, at := 3, ""
	for _, k := range known {
		d := Distance(strings.ToLower(word), strings.ToLower(k))
		if d < best && d*3 <= len(k)+1 {
			best, at = d, k
		}
	}
	return at
}

// Distance returns the number of letters to change, insert, remove or swap with their neighbour to get from a to b.
func Distance(a, b string) int {
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		next := make([]int, len(b)+1)
		next[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next[j+1] = min(row[j]+cost, row[j+1]+1, next[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				next[j+1] = min(next[j+1], before[j-1]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
