// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/danger"
	"github.com/prerig/prerig/pipeline/review/pairing"
)

// replacedApplication is an Application that is deleted, whose objects another one has.
type replacedApplication struct {
	build, from, to string
	manual          bool
	objects         []string
}

// replacements divides moves into those that change nothing in the cluster, and those from an Application that is deleted with its
// finalizer: Argo CD deletes what it has deployed, and the other Application creates it again (controller/appcontroller.go,
// finalizeApplicationDeletion, of Argo CD 3.5: the live objects with the tracking label or annotation of the Application).
func replacements(moves []pairing.Move, all []*endPair) (kept []pairing.Move, out []Remark) {
	ends, remaining := map[string]*endPair{}, map[string]bool{}
	for _, e := range all {
		ends[e.key()] = e
		for _, unit := range unitsOf(e.after) {
			remaining[unit.Kind+" "+unit.Name] = true
		}
	}
	var found []*replacedApplication
	for _, m := range moves {
		from, to := ends[m.From].unitOf(m.FromPath, false), ends[m.To].unitOf(m.ToPath, true)
		isReplaced := from != nil && to != nil && from.Kind == "Application" && from.Outlived == "" &&
			!remaining[from.Kind+" "+from.Name] && !hasSyncOption(ends[m.To].build.After[m.ToPath], "Delete=false")
		if !isReplaced {
			kept = append(kept, m)
			continue
		}
		i := slices.IndexFunc(found, func(one *replacedApplication) bool { return one.from == from.Name && one.to == to.Name })
		if i < 0 {
			i = len(found)
			found = append(found, &replacedApplication{build: m.To, from: from.Name, to: to.Name, manual: to.Manual})
		}
		ref := result.ResourceRef{Kind: m.Object.Kind, Namespace: m.Object.Namespace, Name: m.Object.Name}
		found[i].objects = append(found[i].objects, ref.String())
	}
	for _, one := range found {
		text := fmt.Sprintf("danger: Application %s is deleted with a finalizer, and Application %s is in its place: Argo CD deletes %s, and creates %s again",
			one.from, one.to, countWithNoun(len(one.objects), "object"), map[bool]string{true: "it", false: "them"}[len(one.objects) == 1])
		if one.manual {
			text += " at the next sync by hand"
		}
		out = append(out, Remark{Kind: RemarkReplaced, Pipeline: one.build, Objects: one.objects,
			Text: text + ", unless the new one takes them over first: " + foreign.List(one.objects, shownObjects)})
	}
	return kept, out
}

func unitsOf(r *Result) []render.Unit {
	if response := r.Response(); response != nil {
		return response.Units
	}
	return nil
}

// renamedSets returns remarks about ApplicationSets that are not rendered, and name their Applications in another way: Argo CD deletes
// those with the names that it no longer makes, unless the policy is not to.
func renamedSets(e *endPair) (out []Remark) {
	was := map[string]render.Object{}
	for _, o := range e.sides[0].objects {
		was[identity(o)] = o
	}
	for _, o := range e.sides[1].objects {
		earlier, known := was[identity(o)]
		if !known || o.Group() != "argoproj.io" || o.Kind != "ApplicationSet" || e.isRendered(o) {
			continue
		}
		set, old := decode(o.YAML), decode(earlier.YAML)
		from, to := templateName(old), templateName(set)
		policy := fieldText(set, "spec", "syncPolicy", "applicationsSync")
		if from == to || policy == "create-only" || policy == "create-update" {
			continue
		}
		effect := "what they have deployed goes with them, and is created again"
		if !danger.Cascades(old) {
			effect = "what they have deployed stays, and the new ones take it over"
		}
		text := fmt.Sprintf("danger: %s names its Applications in another way (%s -> %s): Argo CD deletes those with the former names; %s", o.Ref().String(), from, to, effect)
		out = append(out, Remark{Kind: RemarkReplaced, Text: text, Objects: []string{o.Ref().String()}})
	}
	return out
}

// isRendered reports whether both ends render an ApplicationSet: then its Applications are compared.
func (e *endPair) isRendered(o render.Object) bool {
	if !rendersRelease(e.after.Entry, o) || !rendersRelease(e.before.Entry, o) {
		return false
	}
	return !slices.ContainsFunc([]*Result{e.before, e.after}, func(r *Result) bool {
		return slices.ContainsFunc(r.Response().NotRendered(), func(name string) bool { return strings.HasSuffix(name, " "+o.Name) })
	})
}

func templateName(set map[string]any) string {
	return fieldText(set, "spec", "template", "metadata", "name")
}

func fieldText(object map[string]any, path ...string) string {
	for _, key := range path[:len(path)-1] {
		object, _ = object[key].(map[string]any)
	}
	text, _ := object[path[len(path)-1]].(string)
	return text
}
