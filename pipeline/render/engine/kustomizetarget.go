// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// patchTarget is the target of a patch, which selects objects by regular expressions.
type patchTarget struct {
	k          *kustomizationFile
	at         []any
	kind, name string
}

// patchTargets are the targets of patches in a kustomization and those that it names, and the objects that they may select.
type patchTargets struct {
	kustomizeExplainer
	targets []patchTarget
	// named are the objects as their files and generators name them.
	named []patchedObject
	// kustomizations are those of the targets, and of the files.
	kustomizations []*kustomizationFile
}

type patchedObject struct{ kind, name string }

// unmatchedTargets returns a warning for each patch whose target selects nothing, on which kustomize is silent. An object may have another
// name on the way to the result, so that a target counts as unmatched only if neither a file nor the result has a name like it.
// Components are left out: they are made for several kustomizations, and not every one has all objects.
func (p *patchTargets) unmatchedTargets(objects []*resource.Resource) []result.Result {
	var built []patchedObject
	if len(p.targets) > 0 {
		for _, o := range objects {
			built = append(built, patchedObject{o.GetKind(), o.GetName()})
		}
	}
	left := slices.DeleteFunc(p.targets, func(t patchTarget) bool {
		return slices.ContainsFunc(built, func(o patchedObject) bool { return t.selects(o, false) })
	})
	if len(left) == 0 {
		return nil
	}
	p.readNames()
	var out []result.Result
	for _, t := range left {
		if slices.ContainsFunc(p.named, func(o patchedObject) bool { return t.selects(o, true) }) {
			continue
		}
		out = append(out, t.warning(append(p.named, built...)))
	}
	return out
}

// collect walks the kustomizations of a directory and those that it names.
func (p *patchTargets) collect(dir string) {
	if p.seen[dir] || len(p.seen) == maxExplained {
		return
	}
	p.seen[dir] = true
	name, text := p.readKustomization(dir)
	if name == "" {
		return
	}
	doc, err := strict.ReadOne(text, len(text))
	if err != nil {
		return
	}
	top, _ := doc.Value.(map[string]any)
	k := &kustomizationFile{dir: dir, name: name, doc: doc, top: top}
	p.kustomizations = append(p.kustomizations, k)
	if bytes.Contains(text, []byte("target")) && top["kind"] != types.ComponentKind {
		p.collectTargets(k)
	}
	for _, key := range []string{"resources", "bases", "components"} {
		list, _ := top[key].([]any)
		for _, entry := range list {
			if text, ok := entry.(string); ok && !strings.Contains(text, ":") {
				p.collect(path.Join(dir, text))
			}
		}
	}
}

// collectTargets notes the targets that name an object, or a kind alone.
func (p *patchTargets) collectTargets(k *kustomizationFile) {
	for _, key := range []string{"patches", "patchesJson6902"} {
		list, _ := k.top[key].([]any)
		for i, entry := range list {
			patch, _ := entry.(map[string]any)
			target, _ := patch["target"].(map[string]any)
			kind, _ := target["kind"].(string)
			name, _ := target["name"].(string)
			text, _ := patch["patch"].(string)
			if kind == "" && name == "" || strings.Contains(text, "$patch: delete") {
				continue // what is not there need not be deleted
			}
			p.targets = append(p.targets, patchTarget{k, []any{key, i, "target"}, kind, name})
		}
	}
}

// readNames reads the names of the objects in files and generators.
func (p *patchTargets) readNames() {
	for _, k := range p.kustomizations {
		list, _ := k.top["resources"].([]any)
		for _, entry := range list {
			text, _ := entry.(string)
			data, err := p.files.Read(path.Join(k.dir, text))
			if err != nil {
				continue
			}
			docs, err := strict.ReadAll(data, len(data))
			if err != nil {
				continue
			}
			for _, doc := range docs {
				object, _ := doc.Value.(map[string]any)
				p.note(object)
			}
		}
		for key, kind := range map[string]string{"configMapGenerator": "ConfigMap", "secretGenerator": "Secret"} {
			list, _ := k.top[key].([]any)
			for _, entry := range list {
				generator, _ := entry.(map[string]any)
				name, _ := generator["name"].(string)
				p.named = append(p.named, patchedObject{kind, name})
			}
		}
	}
}

// note notes an object, or those of a List.
func (p *patchTargets) note(object map[string]any) {
	items, _ := object["items"].([]any)
	for _, item := range items {
		one, _ := item.(map[string]any)
		p.note(one)
	}
	kind, name := nameOf(object)
	p.named = append(p.named, patchedObject{kind, name})
}

// selects reports whether a target may select an object: by its whole name, or by a part of the name in the result, which has prefixes,
// suffixes and hashes.
func (t patchTarget) selects(o patchedObject, whole bool) bool {
	if !matchesAll(t.kind, o.kind) {
		return false
	}
	if whole || t.name == "" {
		return matchesAll(t.name, o.name)
	}
	expression, err := regexp.Compile(strings.TrimSuffix(strings.TrimPrefix(t.name, "^"), "$"))
	return err != nil || expression.MatchString(o.name)
}

// matchesAll reports whether a regular expression matches all of a text. An empty one matches every text.
func matchesAll(expression, text string) bool {
	if expression == "" || expression == text {
		return true
	}
	compiled, err := regexp.Compile("^(?:" + expression + ")$")
	return err != nil || compiled.MatchString(text)
}

// warning describes a target that selects none of the known objects.
func (t patchTarget) warning(known []patchedObject) result.Result {
	var names []string
	for _, o := range known {
		if t.name == "" {
			names = append(names, o.kind)
		} else if matchesAll(t.kind, o.kind) {
			names = append(names, o.name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	wanted, what, searched := t.kind, t.kind, t.name
	if t.name == "" {
		searched = t.kind
	} else {
		what = strings.TrimSpace(wanted + " " + t.name)
	}
	hint := strict.DidYouMean(searched, names)
	if hint == "" && len(names) > 0 {
		hint = "; there is " + strings.Join(names[:min(len(names), 5)], ", ")
	}
	return result.Result{
		Severity: result.Warning,
		Message:  fmt.Sprintf("%s: no object is selected by %s, so that the patch changes nothing%s", strict.FieldPath(t.at...), what, hint),
		File:     &result.File{Path: t.k.name, Line: t.k.doc.LineIn(t.at, 0)},
	}
}
