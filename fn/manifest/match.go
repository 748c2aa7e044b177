// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
)

// identities are the keys by which the elements of Kubernetes lists are known, most telling first: a volume mount by its
// path (several have one volume's name), containers, volumes and variables by name, ports by number and protocol.
var identities = [][]string{{"mountPath"}, {"devicePath"}, {"name"}, {"containerPort", "protocol"}, {"port", "protocol"},
	{"ip"}, {"topologyKey"}, {"key"}, {"type"}, {"uid"}}

// elementIdentity returns what an element is known by, "" without any.
func elementIdentity(v any) string {
	m, ok := v.(map[string]any)
	if !ok {
		switch v.(type) {
		case []any, goneValue:
			return ""
		}
		return fmt.Sprintf("=%T %v", v, v)
	}
	for _, keys := range identities {
		if _, ok := m[keys[0]]; !ok {
			continue
		}
		var b strings.Builder
		for _, k := range keys {
			fmt.Fprintf(&b, "%s=%v;", k, m[k])
		}
		return b.String()
	}
	return ""
}

// matchElements finds for each wanted element the old one that it continues, or -1: equal ones at both ends, then by identity,
// then equal ones, then in pairs by position between those that were found.
func matchElements(old, want []any) []int {
	from := make([]int, len(want))
	for j := range from {
		from[j] = -1
	}
	used := make([]bool, len(old))
	take := func(i, j int) { from[j], used[i] = i, true }
	lo := 0
	for lo < len(old) && lo < len(want) && equalValues(old[lo], want[lo]) {
		take(lo, lo)
		lo++
	}
	oe, we := len(old), len(want)
	for oe > lo && we > lo && equalValues(old[oe-1], want[we-1]) {
		oe--
		we--
		take(oe, we)
	}
	byID := map[string][]int{}
	for i := lo; i < oe; i++ {
		if id := elementIdentity(old[i]); id != "" {
			byID[id] = append(byID[id], i)
		}
	}
	for j := lo; j < we; j++ {
		if q := byID[elementIdentity(want[j])]; len(q) > 0 {
			take(q[0], j)
			byID[elementIdentity(want[j])] = q[1:]
		}
	}
	matchEqual(old, want, lo, oe, we, from, used, take)
	matchGaps(old, want, from, used, take)
	return from
}

// matchEqual pairs equal elements without an identity.
func matchEqual(old, want []any, lo, oe, we int, from []int, used []bool, take func(i, j int)) {
	const most = 1 << 20
	if (oe-lo)*(we-lo) > most {
		return
	}
	for j := lo; j < we; j++ {
		if from[j] >= 0 || elementIdentity(want[j]) != "" {
			continue
		}
		for i := lo; i < oe; i++ {
			if !used[i] && equalValues(old[i], want[j]) {
				take(i, j)
				break
			}
		}
	}
}

// matchGaps pairs what is left by position, between two wanted elements that are paired: a changed element keeps its
// place and its comments. Two
// elements with identities of their own are different ones and not paired.
func matchGaps(old, want []any, from []int, used []bool, take func(i, j int)) {
	i := 0
	for j := 0; j < len(want); j++ {
		if from[j] >= 0 {
			i = from[j] + 1
			continue
		}
		if i < len(old) && !used[i] && canPair(old[i], want[j]) {
			take(i, j)
			i++
		}
	}
}

// canPair reports whether one element may be the other one changed.
func canPair(a, b any) bool {
	_, am := a.(map[string]any)
	_, bm := b.(map[string]any)
	if am || bm {
		return am && bm && (elementIdentity(a) == "" || elementIdentity(b) == "")
	}
	_, al := a.([]any)
	_, bl := b.([]any)
	return al == bl
}

// longestRising picks the elements that stay in place: the largest set that keeps its order. It returns their new
// positions by their old ones.
func longestRising(from []int) map[int]int {
	var tails []int // new positions of the last elements of the best runs by length
	prev := make([]int, len(from))
	for j, i := range from {
		if i < 0 {
			continue
		}
		lo, hi := 0, len(tails)
		for lo < hi {
			mid := (lo + hi) / 2
			if from[tails[mid]] < i {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		prev[j] = -1
		if lo > 0 {
			prev[j] = tails[lo-1]
		}
		if lo == len(tails) {
			tails = append(tails, j)
		} else {
			tails[lo] = j
		}
	}
	stay := map[int]int{}
	if len(tails) == 0 {
		return stay
	}
	for j := tails[len(tails)-1]; j >= 0; j = prev[j] {
		stay[from[j]] = j
	}
	return stay
}
