// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package group

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// changeDigest identifies a change.
type changeDigest [16]byte

func digestOf(parts ...string) changeDigest {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part))))
		h.Write([]byte(part))
	}
	return changeDigest(h.Sum(nil)[:16])
}

// candidateDigest is a way to distinguish a run from others.
type candidateDigest struct {
	id changeDigest
	by substitution
}

// describeRuns works out what each run is: its lines, the fields that they are in, and the values of the object in
// them.
func (u *Unit) describeRuns() {
	var old, now locatedManifest
	if u.Kind == Modified && u.object.Name != "" {
		old, now = locateLines(u.old), locateLines(u.now)
	}
	own := u.ownValues(old, now)
	times := map[changeDigest]int{}
	for _, r := range u.runs {
		essence := r.runIdentityText(u.object.Kind, old, now, u.Kind == Modified)
		found, all := allSubstitutions(essence, own)
		for _, way := range found {
			names := make([]string, 0, len(way))
			for _, v := range way {
				names = append(names, v.param)
			}
			slices.Sort(names)
			id := way.digestText(essence, all, u.Kind, strings.Join(names, ","))
			if times[id]++; times[id] > 1 { // the same once more in this object
				id = digestOf(string(id[:]), strconv.Itoa(times[id]))
			}
			r.candidates = append(r.candidates, candidateDigest{id, way})
		}
	}
}

// runIdentityText returns the text that makes two runs the same: the changed lines without their common indentation,
// with their fields. If the fields are not specific enough, as inside of a text or in invalid YAML, it includes the
// lines around.
func (r *changedRun) runIdentityText(kind string, old, now locatedManifest, fields bool) string {
	base := indentOf(r.lines)
	podOld, podNow := podPrefix(old, kind), podPrefix(now, kind)
	numbers := map[byte]map[int]bool{'-': {}, '+': {}}
	for _, l := range r.lines {
		numbers[l.sign][l.number] = true
	}
	var out strings.Builder
	enough, first := true, true
	for _, l := range r.lines {
		at, pod := now, podNow
		if l.sign == '-' {
			at, pod = old, podOld
		}
		if place, ok := at.fieldAt(l.number); ok {
			rest, in := insidePod(place.path, pod)
			out.WriteString(in + pathText(rest) + "\x01" + place.exact + "\x01")
			enough = enough && (place.text == 0 || numbers[l.sign][place.text])
			r.narrowField(place.path, rest, in != "", first)
		} else {
			enough = false
			r.narrowField(nil, nil, false, first)
		}
		first = false
		out.WriteByte(l.sign)
		out.WriteString(dedentLine(l.text, base))
	}
	if fields && !enough {
		for _, list := range [][]diffLine{r.before, r.after} {
			out.WriteByte('\x02')
			for _, l := range list {
				out.WriteString(dedentLine(l.text, base))
			}
		}
	}
	return out.String()
}

// narrowField narrows the field that holds all lines of the run.
func (r *changedRun) narrowField(path, inPod []string, pod, first bool) {
	if first {
		r.where, r.inPod, r.pod = path, inPod, pod
		return
	}
	r.where, r.inPod, r.pod = commonPath(r.where, path), commonPath(r.inPod, inPod), r.pod && pod
}

// podPrefix returns the path of the pod template, or nil if none exists.
func podPrefix(l locatedManifest, kind string) []string {
	_, path := podRoot(l.root, kind)
	return path
}

// insidePod strips the path of the pod, so that a Deployment's pod equals a CronJob's.
func insidePod(path, pod []string) (rest []string, prefix string) {
	if pod != nil && len(path) > len(pod) && slices.Equal(path[:len(pod)], pod) {
		return path[len(pod):], "pod:"
	}
	return path, ""
}

// indentOf is the least indentation of lines.
func indentOf(lines []diffLine) int {
	least := -1
	for _, l := range lines {
		trimmed := strings.TrimLeft(l.text, " ")
		if n := len(l.text) - len(trimmed); strings.TrimSpace(trimmed) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	return max(0, least)
}

// dedentLine returns a line with its indentation relative to the base.
func dedentLine(text string, base int) string {
	trimmed := strings.TrimLeft(text, " ")
	if n := len(text) - len(trimmed) - base; n != 0 {
		return strconv.Itoa(n) + " " + trimmed
	}
	return trimmed
}
