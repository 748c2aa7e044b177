// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// Bounds of what is shared.
const (
	leastAlike   = 3   // workloads for which it pays to admit two
	maxRounds    = 4   // in which fields that policies read are found
	checkedShare = 256 // workloads for each one that is admitted by itself too
)

// orderText begins what is missing where an order decides.
const orderText = "the order of "

// isOrdered reports whether no order decides the pods, which is so where none decides that of the made-up workload and no policy reads of it.
func (g *likeness) isOrdered() bool {
	return g.made.readsNothing() && !slices.ContainsFunc(g.pod.Missing, func(text string) bool { return strings.HasPrefix(text, orderText) })
}

// entry is a document of a group, with what becomes of it.
type entry struct {
	document *manifest.Document
	path     string
	objects  []gate.Object // nil as long as they are not needed
	seen     *seen         // nil for a document that is admitted by itself
	pods     []render.AdmittedPod
	// ordered reports that no order decides the pod: that of a made-up workload like it shows so.
	ordered bool
}

// likeness are workloads of one key.
type likeness struct {
	entries []*entry
	made    *madeUp
	pod     render.AdmittedPod // of the made-up workload
	mould   *manifest.Mould
}

// admitAlike admits the entries, those of one key together. The rest is admitted by itself.
func (a *alikeness) admitAlike(ctx context.Context, rest, candidates []*entry) ([]render.AdmittedShape, error) {
	var shapes []render.AdmittedShape
	for round := 0; len(rest)+len(candidates) > 0; round++ {
		var groups []*likeness
		groups, rest = a.group(rest, candidates, round < maxRounds)
		run := &podRun{prediction: a.prediction}
		for _, e := range rest {
			run.add(e, nil)
		}
		for _, g := range groups {
			run.add(&entry{objects: []gate.Object{g.made.object}}, g)
		}
		if err := run.admit(ctx, a.read); err != nil {
			return nil, err
		}
		run = &podRun{prediction: a.prediction}
		for _, g := range groups {
			for i, e := range g.entries {
				if i == 0 || a.always || isChecked(e.seen.values) {
					e.ordered = !a.always && g.isOrdered()
					run.add(e, nil)
				}
			}
		}
		if err := run.admit(ctx, a.read); err != nil {
			return nil, err
		}
		rest, candidates = nil, nil
		for _, g := range groups {
			if !a.learn(g) {
				candidates = append(candidates, unadmitted(g.entries[1:])...)
				continue
			}
			shapes = append(shapes, render.AdmittedShape{Pod: g.pod, Values: append(g.made.values, madePath, strconv.Itoa(madeLine))})
			again, err := a.fill(g, len(shapes))
			if err != nil {
				return nil, err
			}
			rest = append(rest, again...)
		}
		if a.always { // all are admitted by themselves already
			rest, candidates = nil, nil
		}
	}
	return shapes, nil
}

// group returns the candidates that are alike, and adds the others to rest.
func (a *alikeness) group(rest, candidates []*entry, shares bool) ([]*likeness, []*entry) {
	byKey := map[string]*likeness{}
	var order []*likeness
	for _, e := range candidates {
		e.seen = nil
		if shares {
			e.seen = a.keyOf(e.document)
		}
		if e.seen == nil {
			rest = append(rest, e)
			continue
		}
		g := byKey[e.seen.key]
		if g == nil {
			g = &likeness{}
			byKey[e.seen.key] = g
			order = append(order, g)
		}
		g.entries = append(g.entries, e)
	}
	var groups []*likeness
	for _, g := range order {
		if len(g.entries) >= leastAlike || a.always {
			g.made = a.makeUp(g.entries[0])
		}
		if g.made == nil {
			rest = append(rest, g.entries...)
			continue
		}
		groups = append(groups, g)
	}
	return groups, rest
}

// isChecked reports whether a workload is admitted in both ways. It depends on its own text alone.
func isChecked(values []string) bool {
	hash := fnv.New64a()
	for _, v := range values {
		hash.Write([]byte(v))
	}
	sum := hash.Sum64()
	return (sum^sum>>32)%checkedShare == 0
}

// learn makes the mould of the pods of a group, and reports whether it yields the pod of the first one.
func (a *alikeness) learn(g *likeness) bool {
	g.made.seeOrder(g.pod.Missing)
	if a.pinRead(g.made) {
		return false
	}
	first := g.entries[0]
	if len(first.pods) != 1 || g.pod.Pod == nil && g.pod.Rejected == "" {
		return false
	}
	text, err := podText(g.pod)
	if err != nil || isKey(text, g.made.values) {
		return false
	}
	var values []string
	var numbers []int
	for i, v := range g.made.values {
		if v != "" {
			values, numbers = append(values, v), append(numbers, i)
		}
	}
	g.mould = manifest.CutMould(text, values, numbers)
	own, err := podText(first.pods[0])
	return err == nil && g.mould.Text(first.seen.values) == own
}

// pinRead pins what policies read of the made-up values, and reports whether they read any.
func (a *alikeness) pinRead(m *madeUp) bool {
	for key := range m.labels {
		a.pinnedLabels[key] = true
	}
	for _, slot := range m.slots {
		switch {
		case !m.read[slot.Value]:
		case slot.label != "":
			a.pinnedLabels[slot.label] = true
		default:
			a.pinned[slot.Field] = true
		}
	}
	return !m.readsNothing()
}

// podText returns a pod without its place as text.
func podText(pod render.AdmittedPod) (string, error) {
	pod.Place, pod.Shape, pod.Values = render.LinePlace{}, 0, nil
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(pod)
	return b.String(), err
}

// isKey reports whether a value is in a key of JSON, or is a key of JSON in a string.
func isKey(text string, values []string) bool {
	for _, v := range values {
		for rest := text; v != ""; {
			_, after, found := strings.Cut(rest, v)
			if !found {
				break
			}
			rest = after
			end := strings.IndexByte(after, '"')
			escaped := end > 0 && after[end-1] == '\\'
			if end >= 0 && (!escaped || end == 1) && strings.HasPrefix(after[end+1:], ":") {
				return true
			}
		}
	}
	return false
}

// errNotAlike is a defect: a workload has another pod by itself.
var errNotAlike = errors.New("a workload has another pod by itself than with others like it")

// fill sets the pods of the workloads of a group. It returns those that are to be admitted by themselves, if one of them turns out to differ.
func (a *alikeness) fill(g *likeness, number int) ([]*entry, error) {
	first := g.entries[0]
	for _, e := range g.entries {
		if len(e.pods) == 0 || e == first {
			continue
		}
		own, err := podText(e.pods[0])
		if err != nil {
			return nil, err
		}
		made := g.mould.Text(e.seen.values)
		if made == own {
			continue
		}
		difference := differenceOf(made, own)
		if a.always {
			return nil, fmt.Errorf("%w: %s: %s", errNotAlike, e.document, difference)
		}
		e.pods[0].Warnings = append(e.pods[0].Warnings, "this workload gets another pod by itself than with others like it, and gets its own; "+
			"please report it with the workload and the policies: "+difference)
		return unadmitted(g.entries), nil
	}
	line := first.pods[0].Place.Line - first.document.Line()
	for _, e := range g.entries {
		if len(e.pods) == 0 {
			e.pods = []render.AdmittedPod{{}}
		} else if !a.always {
			continue
		}
		e.pods[0].Shape = number
		e.pods[0].Values = append(e.seen.values, e.path, strconv.Itoa(e.document.Line()+line))
	}
	return nil, nil
}

// unadmitted returns the entries without pods.
func unadmitted(entries []*entry) (out []*entry) {
	for _, e := range entries {
		if len(e.pods) == 0 {
			out = append(out, e)
		}
	}
	return out
}

// shownDifference is how much of each of two texts a difference quotes.
const shownDifference = 80

func differenceOf(made, own string) string {
	i := 0
	for i < min(len(made), len(own)) && made[i] == own[i] {
		i++
	}
	from := max(0, i-shownDifference/2)
	return fmt.Sprintf("%q and not %q", made[from:min(len(made), i+shownDifference)], own[from:min(len(own), i+shownDifference)])
}

// podRun admits objects, and returns the pods to where they came from.
type podRun struct {
	*prediction
	entries []*entry
	groups  []*likeness // of made-up workloads, in the order of entries; nil for the others
}

func (r *podRun) add(e *entry, g *likeness) {
	r.entries, r.groups = append(r.entries, e), append(r.groups, g)
}

// admit admits the objects of all entries.
func (r *podRun) admit(ctx context.Context, read func(*manifest.Document, string) ([]gate.Object, error)) error {
	r.pods = nil
	var of []int
	for i, e := range r.entries {
		if e.objects == nil {
			var err error
			if e.objects, err = read(e.document, e.path); err != nil {
				return err
			}
		}
		r.made = nil
		if r.groups[i] != nil {
			r.made = r.groups[i].made
		}
		r.ordered = e.ordered
		r.beginObjects(ctx, e.objects)
		for len(of) < len(r.pods) {
			of = append(of, i)
		}
	}
	r.made, r.ordered = nil, false
	if err := r.complete(ctx, r.pods, r.pods); err != nil {
		return err
	}
	out := make([]render.AdmittedPod, len(r.pods))
	for i, one := range r.pods {
		out[i] = r.finish(ctx, one)
	}
	if err := r.nameCauses(ctx, out); err != nil {
		return err
	}
	for i, pod := range out {
		if g := r.groups[of[i]]; g != nil {
			g.pod = pod
			continue
		}
		r.entries[of[i]].pods = append(r.entries[of[i]].pods, pod)
	}
	r.pods = nil
	return nil
}
