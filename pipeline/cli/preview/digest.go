// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"crypto/sha256"
	"slices"
	"strconv"
	"strings"
)

// digest tells changes apart.
type digest [16]byte

func digestOf(parts ...string) digest {
	h := sha256.New()
	for _, part := range parts {
		h.Write([]byte(strconv.Itoa(len(part))))
		h.Write([]byte(part))
	}
	return digest(h.Sum(nil)[:16])
}

// candidate is a way to tell a run from others.
type candidate struct {
	id digest
	by substitution
}

// describe works out what each run is: its lines, the fields that they are in, and the values of the object in them.
func (u *unit) describe() {
	var old, now located
	if u.kind == modified && u.object.Name != "" {
		old, now = locate(u.old), locate(u.now)
	}
	own := u.ownValues(old, now)
	times := map[digest]int{}
	for _, r := range u.runs {
		essence := r.essence(u.object.Kind, old, now, u.kind == modified)
		found, all := ways(essence, own)
		for _, way := range found {
			names := make([]string, 0, len(way))
			for _, v := range way {
				names = append(names, v.param)
			}
			slices.Sort(names)
			id := way.digest(essence, all, u.kind, strings.Join(names, ","))
			if times[id]++; times[id] > 1 { // the same once more in this object
				id = digestOf(string(id[:]), strconv.Itoa(times[id]))
			}
			r.candidates = append(r.candidates, candidate{id, way})
		}
	}
}

// essence is what makes two runs the same: the changed lines without their common indentation, with their fields. Where the
// fields do not tell enough, as inside of a text or in what is no YAML, the lines around belong to it.
func (r *changedRun) essence(kind string, old, now located, fields bool) string {
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
		if place, ok := at.at(l.number); ok {
			rest, in := inside(place.path, pod)
			out.WriteString(in + written(rest) + "\x01" + place.exact + "\x01")
			enough = enough && (place.text == 0 || numbers[l.sign][place.text])
			r.place(place.path, rest, in != "", first)
		} else {
			enough = false
			r.place(nil, nil, false, first)
		}
		first = false
		out.WriteByte(l.sign)
		out.WriteString(dedent(l.text, base))
	}
	if fields && !enough {
		for _, list := range [][]line{r.before, r.after} {
			out.WriteByte('\x02')
			for _, l := range list {
				out.WriteString(dedent(l.text, base))
			}
		}
	}
	return out.String()
}

// place narrows the field that holds all lines of the run.
func (r *changedRun) place(path, inPod []string, pod, first bool) {
	if first {
		r.where, r.inPod, r.pod = path, inPod, pod
		return
	}
	r.where, r.inPod, r.pod = common(r.where, path), common(r.inPod, inPod), r.pod && pod
}

// podPrefix is the path of the pod template, nil where there is none.
func podPrefix(l located, kind string) []string {
	_, path := podRoot(l.root, kind)
	return path
}

// inside takes the path of the pod off, so that a Deployment's pod is as a CronJob's.
func inside(path, pod []string) (rest []string, prefix string) {
	if pod != nil && len(path) > len(pod) && slices.Equal(path[:len(pod)], pod) {
		return path[len(pod):], "pod:"
	}
	return path, ""
}

// indentOf is the least indentation of lines.
func indentOf(lines []line) int {
	least := -1
	for _, l := range lines {
		trimmed := strings.TrimLeft(l.text, " ")
		if n := len(l.text) - len(trimmed); strings.TrimSpace(trimmed) != "" && (least < 0 || n < least) {
			least = n
		}
	}
	return max(0, least)
}

// dedent returns a line with its indentation relative to the base.
func dedent(text string, base int) string {
	trimmed := strings.TrimLeft(text, " ")
	if n := len(text) - len(trimmed) - base; n != 0 {
		return strconv.Itoa(n) + " " + trimmed
	}
	return trimmed
}
