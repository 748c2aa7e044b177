// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package overlay finds kustomizations that break if a file which they build from is injected in place: their patches,
// replacements and variables address an element of a list by its position, or replace a value as a whole, and the
// injection changes that list or value. kustomize applies them to the value that it finds, without a report. Objects by which
// Flux and Argo CD patch a directory count as kustomizations over it.
package overlay

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// Set is what kustomizations change by position or as a whole in the files of a run. The zero value is empty.
type Set struct {
	uses map[string][]use // by the absolute path of the file
}

// use is one edit of a kustomization that applies to the objects of a file.
type use struct {
	edit edit
	// by are the kustomizations that process the file, the innermost first; the edit belongs to the last one or is
	// that of a component of it.
	by []*kustomization
}

// Find reads the kustomizations of the work trees that paths are in, as far as the paths are among their resources.
// Files that cannot be read are passed over: kustomize reports them.
func Find(ctx context.Context, paths []string) (*Set, error) {
	wanted := map[string]bool{}
	relative := true
	for _, path := range paths {
		wanted[absolute(path)] = true
		relative = relative && !filepath.IsAbs(path)
	}
	trees := readTrees(ctx, slices.Sorted(maps.Keys(wanted)), relative)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &Set{uses: map[string][]use{}}
	for _, k := range trees.inOrder() {
		edits := k.edits()
		if len(edits) == 0 {
			continue
		}
		for _, from := range trees.appliesTo(k) {
			for _, one := range trees.resources(from, wanted, nil) {
				for _, e := range edits {
					s.uses[one.file] = append(s.uses[one.file], use{edit: e, by: one.by})
				}
			}
		}
	}
	for _, a := range trees.appliers {
		for _, one := range trees.appliedResources(a, wanted) {
			for _, e := range a.edits() {
				s.uses[one.file] = append(s.uses[one.file], use{edit: e, by: one.by})
			}
		}
	}
	return s, nil
}

// Empty reports whether no kustomization changes anything by position or as a whole.
func (s *Set) Empty() bool { return len(s.uses) == 0 }

// Check returns an error for each edit that would change another value in what a run injects. The outcomes must have
// their pods (fn.WithPods); items are the documents that they are about.
func (s *Set) Check(outcomes []fn.Outcome, items []fn.Item) result.Results {
	if s.Empty() {
		return nil
	}
	docs := map[result.File]*manifest.Document{}
	for _, item := range items {
		docs[result.File{Path: item.Path, Index: item.Index}] = item.Doc
	}
	var out result.Results
	seen := map[string]bool{}
	for _, o := range outcomes {
		if o.Before == nil || o.After == nil || o.Action != fn.Injected && o.Action != fn.Kept {
			continue
		}
		obj := objectOf(docs[result.File{Path: o.File.Path, Index: o.File.Index}], o.Ref)
		if obj == nil {
			continue
		}
		for _, r := range s.checkObject(obj, o) {
			if key := r.String(); !seen[key] {
				seen[key] = true
				out = append(out, r)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b result.Result) int {
		return cmp.Or(cmp.Compare(a.File.Path, b.File.Path), cmp.Compare(a.File.Line, b.File.Line))
	})
	return out
}

// TagInput names the tag of a result that has the path of the injected file, while the place of the result is in a
// kustomization.
const TagInput = "input"

// checkObject checks the edits of the file of one workload.
func (s *Set) checkObject(obj map[string]any, o fn.Outcome) result.Results {
	at := workload.ParseField(o.Field)
	before, after := withPod(obj, at, o.Before), withPod(obj, at, o.After)
	var out result.Results
	for _, u := range s.uses[absolute(o.File.Path)] {
		if !u.edit.target.matches(resourceOf(obj, u.by)) {
			continue
		}
		for _, c := range u.edit.clashes(before, after, at) {
			k := u.by[len(u.by)-1]
			ref := o.Ref
			out = append(out, result.Result{
				Severity: result.Error, ResourceRef: &ref, Field: &result.Field{Path: c.field()},
				Tags: map[string]string{TagInput: o.File.Path},
				File: &result.File{Path: u.edit.file, Line: cmp.Or(c.line, u.edit.line)},
				Message: fmt.Sprintf("%s %s, %s; instead of %s, %s", u.edit.what, c.how, c.why(), o.File.Path,
					k.wayOut()),
			})
		}
	}
	return out
}

// wayOut is what to do instead of an injection into a file that the kustomization builds from.
func (k *kustomization) wayOut() string {
	const transformer = ", or run prerig there as a transformer"
	if k.applier != "" {
		return "move the patch of the " + k.applier + " to a kustomization over " + k.name +
			", and inject the output of its build" + transformer
	}
	return "inject the output of kustomize build " + k.name + transformer
}

// objectOf returns the object of a document, or the one of a List that a reference names.
func objectOf(doc *manifest.Document, ref result.ResourceRef) map[string]any {
	if doc == nil {
		return nil
	}
	obj, err := doc.Object()
	if err != nil {
		return nil
	}
	if result.RefTo(obj).Kind == ref.Kind {
		return obj
	}
	items, _ := obj["items"].([]any)
	for _, item := range items {
		one, _ := item.(map[string]any)
		of := result.RefTo(one)
		if of.Kind == ref.Kind && of.Name == ref.Name && (of.Namespace == ref.Namespace || of.Namespace == "") {
			return one
		}
	}
	return nil
}

// withPod returns an object with a pod at a path. The object stays as it is.
func withPod(v any, at []any, pod map[string]any) any {
	if len(at) == 0 {
		m, _ := v.(map[string]any)
		out := maps.Clone(m)
		if out == nil {
			out = map[string]any{}
		}
		for _, key := range []string{"metadata", "spec"} {
			delete(out, key)
			if part, ok := pod[key]; ok {
				out[key] = part
			}
		}
		return out
	}
	switch key := at[0].(type) {
	case string:
		m, _ := v.(map[string]any)
		out := maps.Clone(m)
		if out == nil {
			out = map[string]any{}
		}
		out[key] = withPod(m[key], at[1:], pod)
		return out
	case int:
		list, _ := v.([]any)
		if key < 0 || key >= len(list) {
			return v
		}
		out := slices.Clone(list)
		out[key] = withPod(list[key], at[1:], pod)
		return out
	}
	return v
}

// absolute returns the path by which a file is known, without links where they can be followed.
func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return path
}

// isRemote reports whether an entry of resources is a URL of something that is fetched.
func isRemote(entry string) bool {
	return strings.Contains(entry, "://") || strings.Contains(entry, "?ref=") ||
		strings.HasPrefix(entry, "git@") || strings.HasPrefix(entry, "github.com/")
}
