// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/render"
)

// The kinds of remarks.
const (
	// RemarkSuspended is about objects that their controller leaves alone from now on, or no longer.
	RemarkSuspended = "suspended"
	// RemarkReplaced is about Applications in whose place others are, so that what they have deployed may be deleted and created again.
	RemarkReplaced = "replaced"
	// RemarkNotCompared is about a change whose effect was not compared.
	RemarkNotCompared = "not-compared"
)

// Remark is an effect of a change that the differences of objects do not show.
type Remark struct {
	// Kind is one of the kinds of remarks.
	Kind string `json:"kind"`
	// Pipeline is what it is about, and Text the remark as a sentence.
	Pipeline string `json:"pipeline"`
	Text     string `json:"text"`
	// Objects are those that the sentence is about, as "Kind namespace/name".
	Objects []string `json:"objects,omitempty"`
}

// shownObjects is how many objects a remark names.
const shownObjects = 5

// side is one end of a build.
type side struct {
	objects []render.Object
	present map[string]bool        // their identities
	units   map[string]render.Unit // Kustomizations of Flux, by NAMESPACE/NAME
}

func sideOf(r *Result) side {
	s := side{present: map[string]bool{}, units: map[string]render.Unit{}}
	response := r.Response()
	if response == nil || r.Err != nil {
		return s
	}
	s.objects = response.Objects
	for _, o := range s.objects {
		s.present[identity(o)] = true
	}
	for _, one := range response.Units {
		if one.Kind == "Kustomization" {
			s.units[one.Name] = one
		}
	}
	return s
}

// identity is what one object is known by at both ends, in whatever version.
func identity(o render.Object) string { return o.Group() + " " + o.Ref().String() }

// isOfFlux reports whether an object is one that a controller of Flux reconciles.
func isOfFlux(o render.Object) bool { return strings.HasSuffix(o.Group(), ".toolkit.fluxcd.io") }

// remarksOf returns the remarks about a build that the second end has.
func remarksOf(e *endPair) (out []Remark) {
	out = append(suspensions(e.sides[0], e.sides[1]), sourceRemarks(e.after.Entry, e.sides[0], e.sides[1])...)
	out = append(out, renamedSets(e)...)
	out = append(out, missingRemarks(e.before, e.after)...)
	out = append(out, e.remarks...)
	for i := range out {
		out[i].Pipeline = e.key()
	}
	return out
}

// suspensions returns remarks about the objects of Flux whose reconciliation ends, or begins again.
func suspensions(before, after side) (out []Remark) {
	was := map[string]bool{}
	for _, o := range before.objects {
		if isOfFlux(o) {
			was[identity(o)] = isSuspended(o)
		}
	}
	for _, o := range after.objects {
		if !isOfFlux(o) {
			continue
		}
		earlier, known := was[identity(o)]
		now := isSuspended(o)
		text := ""
		switch {
		case now && !known:
			text = o.Ref().String() + " is added suspended: Flux does nothing for it until it is resumed"
		case now && !earlier:
			text = o.Ref().String() + " is suspended: " + after.leftAlone(o)
		case !now && earlier:
			text = o.Ref().String() + " is resumed: Flux applies all that has changed since it was suspended"
		}
		if text != "" {
			out = append(out, Remark{Kind: RemarkSuspended, Text: text, Objects: []string{o.Ref().String()}})
		}
	}
	return out
}

// leftAlone describes what the suspension of an object means.
func (s side) leftAlone(o render.Object) string {
	if o.Kind != "Kustomization" {
		return "Flux does nothing for it until it is resumed"
	}
	n := 0
	for _, other := range s.objects {
		if other.Unit == o.Namespace+"/"+o.Name {
			n++
		}
	}
	if n == 0 {
		return "what it has applied stays in the cluster, and is not reconciled until it is resumed"
	}
	return fmt.Sprintf("its %s stay in the cluster, and are not reconciled until it is resumed", countWithNoun(n, "object"))
}

func isSuspended(o render.Object) bool {
	suspended, _ := specOf(o)["suspend"].(bool)
	return suspended
}

// keptBy are the labels and annotations by which an object stays when it leaves the source.
var keptBy = []struct{ key, value string }{
	{"kustomize.toolkit.fluxcd.io/prune", "disabled"},
	{"kustomize.toolkit.fluxcd.io/reconcile", "disabled"},
	{"kustomize.toolkit.fluxcd.io/ssa", "ignore"},
	{"helm.sh/resource-policy", "keep"},
}

// keptByItself returns the label or annotation by which an object stays in the cluster when it leaves the source, or "".
func keptByItself(object map[string]any) string {
	meta, _ := object["metadata"].(map[string]any)
	for _, one := range keptBy {
		for _, field := range []string{"labels", "annotations"} {
			values, _ := meta[field].(map[string]any)
			if value, _ := values[one.key].(string); strings.EqualFold(value, one.value) {
				return fmt.Sprintf("metadata.%s has %s: %s", field, one.key, value)
			}
		}
	}
	return ""
}

// unitKeeps returns why the objects that leave a Kustomization of Flux stay. seen are those that were asked already.
func (s side) unitKeeps(unit string, after side, seen []string) string {
	was, known := s.units[unit]
	if !known || slices.Contains(seen, unit) {
		return ""
	}
	name := "Kustomization " + unit
	if now, still := after.units[unit]; still {
		if now.Keeps == "" {
			return ""
		}
		return name + " does not prune: " + now.Keeps
	}
	i := slices.IndexFunc(s.objects, func(o render.Object) bool {
		return o.Group() == "kustomize.toolkit.fluxcd.io" && o.Kind == "Kustomization" && o.Namespace+"/"+o.Name == unit
	})
	switch {
	case i < 0 || after.present[identity(s.objects[i])]:
		return ""
	case was.Outlived != "":
		return name + " is deleted, and leaves its objects: " + was.Outlived
	}
	return s.unitKeeps(s.objects[i].Unit, after, append(seen, unit))
}

// writeRemarks writes the remarks, those that builds have in common once.
func (c *Comparison) writeRemarks(out *strings.Builder, colour bool) {
	lines := c.remarkLines()
	for _, text := range lines {
		fmt.Fprintf(out, "%s\n", colourText(colour, red, foreign.Visible(text)))
	}
	if len(lines) > 0 {
		out.WriteString("\n")
	}
}

// remarkLines returns a line for each remark.
func (c *Comparison) remarkLines() (out []string) {
	builds := map[string][]string{}
	var order []Remark
	for _, one := range c.Remarks {
		if builds[one.Text] == nil {
			order = append(order, one)
		}
		builds[one.Text] = append(builds[one.Text], one.Pipeline)
	}
	rank := []string{RemarkReplaced, RemarkSuspended, RemarkNotCompared}
	slices.SortStableFunc(order, func(a, b Remark) int {
		return slices.Index(rank, a.Kind) - slices.Index(rank, b.Kind)
	})
	for _, one := range order {
		out = append(out, fmt.Sprintf("%s (%s)", one.Text, foreign.List(builds[one.Text], shownObjects)))
	}
	return out
}
