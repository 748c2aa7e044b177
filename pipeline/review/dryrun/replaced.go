// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/danger"
)

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
