// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// substituted is text of an injected container that Flux would replace.
type substituted struct{ container, path, text string }

// findSubstituted returns the first text with ${ in a container that injection brought.
func findSubstituted(p *pod) *substituted {
	if p.in.ObjectAnnotations[substituteKey] == "disabled" || p.in.ObjectLabels[substituteKey] == "disabled" {
		return nil
	}
	if p.in.Field == "" && (p.annotations[substituteKey] == "disabled" || p.labels[substituteKey] == "disabled") {
		return nil // a Pod has no other metadata
	}
	for _, c := range p.allContainers() {
		if !p.injected[c.name] {
			continue
		}
		own := map[string]bool{}
		forEachString(p.before[c.name], "", func(_, text string) bool { own[text] = true; return false })
		var found *substituted
		forEachString(c.fields, c.path, func(at, text string) bool {
			start := strings.Index(text, "${")
			if start < 0 || own[text] {
				return false
			}
			end := len(text)
			if i := strings.Index(text[start:], "}"); i >= 0 {
				end = start + i + 1
			}
			found = &substituted{c.name, at, text[start:min(end, start+60)]}
			return true
		})
		if found != nil {
			return found
		}
	}
	return nil
}

// forEachString calls do with every string below a value and its path, in the order of the keys, until do returns true.
func forEachString(v any, at string, do func(at, text string) bool) bool {
	switch v := v.(type) {
	case string:
		return do(at, v)
	case []any:
		for i, e := range v {
			if forEachString(e, fmt.Sprintf("%s[%d]", at, i), do) {
				return true
			}
		}
	case map[string]any:
		for _, key := range sortedKeys(v) {
			if forEachString(v[key], at+"."+key, do) {
				return true
			}
		}
	}
	return false
}

func checkSubstitution(s *workloadSet) []setFinding {
	var out []setFinding
	for i := range s.pods {
		pod := &s.pods[i]
		found := pod.substituted
		if found == nil {
			continue
		}
		by := s.substitutingFluxKustomization(pod.file)
		who := "a Flux Kustomization with postBuild"
		if by != nil {
			who = by.String()
		}
		at := found.path
		if pod.template != "" {
			at = pod.template + "." + at
		}
		out = append(out, setFinding{
			ref: pod.ref, file: pod.file, ignored: pod.ignored, container: found.container, unsure: by == nil, field: &result.Field{Path: at},
			message: fmt.Sprintf("%s would replace %q in injected container %s, or fail because of it; set %s: disabled on the %s's own metadata",
				who, found.text, found.container, substituteKey, pod.ref.Kind),
		})
	}
	return out
}

// substitutingFluxKustomization returns the Flux Kustomization that substitutes variables and whose path leads to a
// file; nil where none is among the objects.
func (s *workloadSet) substitutingFluxKustomization(file *result.File) *objectFacts {
	for _, k := range s.objects["Kustomization"] {
		build := podmap.MapAt(k.spec, "postBuild")
		from, _ := build["substituteFrom"].([]any)
		if len(podmap.MapAt(build, "substitute")) == 0 && len(from) == 0 {
			continue
		}
		under := strings.Trim(path.Clean("/"+textOf(k.spec["path"])), "/")
		if file == nil || under == "" || strings.Contains("/"+file.Path, "/"+under+"/") {
			return k
		}
	}
	return nil
}
