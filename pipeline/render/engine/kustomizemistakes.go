// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// silentMistakes returns what is wrong in the kustomizations of a build although kustomize builds them: an error for labels,
// annotations and a namespace that no object can have, and a warning for each patch and image that changes nothing.
func silentMistakes(files tree.Reader, at string, objects []*resource.Resource) ([]result.Result, error) {
	p := &patchTargets{kustomizeExplainer: kustomizeExplainer{files: files, seen: map[string]bool{}, objects: map[string][]string{}}}
	p.collect(path.Clean(at))
	for _, k := range p.kustomizations {
		if err := checkMetadataFields(k); err != nil {
			return nil, err
		}
	}
	return append(p.unmatchedTargets(objects), p.unmatchedImages(objects)...), nil
}

// checkMetadataFields returns an error about the first label, annotation or namespace that the API server refuses. What another tool
// completes is not known.
func checkMetadataFields(k *kustomizationFile) error {
	namespace, _ := k.top["namespace"].(string)
	if namespace != "" && !isCompletedLater(namespace) && len(validation.IsDNS1123Label(namespace)) > 0 {
		return k.errorAt([]any{"namespace"}, "%q is not the name of a namespace: small letters, digits and dashes", namespace)
	}
	if err := k.checkPairs([]any{"commonLabels"}, k.top["commonLabels"], true); err != nil {
		return err
	}
	if err := k.checkPairs([]any{"commonAnnotations"}, k.top["commonAnnotations"], false); err != nil {
		return err
	}
	list, _ := k.top["labels"].([]any)
	for i, entry := range list {
		label, _ := entry.(map[string]any)
		if err := k.checkPairs([]any{"labels", i, "pairs"}, label["pairs"], true); err != nil {
			return err
		}
	}
	return nil
}

// checkPairs checks labels or annotations.
func (k *kustomizationFile) checkPairs(at []any, v any, labels bool) error {
	pairs, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(pairs)) {
		value, _ := pairs[name].(string)
		switch {
		case isCompletedLater(name) || isCompletedLater(value):
		case len(validation.IsQualifiedName(strings.ToLower(name))) > 0:
			return k.errorAt(append(at, name), "%q is not the name of a label or an annotation: letters, digits, -, _ and ., after a domain and a slash or not", name)
		case labels && len(validation.IsValidLabelValue(value)) > 0:
			return k.errorAt(append(at, name), "%q is not the value of a label: at most 63 letters, digits, -, _ and ., with a letter or digit at both ends", value)
		}
	}
	return nil
}

// isCompletedLater reports whether a text has a variable, which Flux or Argo CD replace after the build.
func isCompletedLater(text string) bool {
	return strings.Contains(text, "$") || strings.Contains(text, "{{")
}

// unmatchedImages returns a warning for each entry of images whose image no object of the result has, and no other entry renames.
func (p *patchTargets) unmatchedImages(objects []*resource.Resource) []result.Result {
	type entryOf struct {
		k          *kustomizationFile
		i          int
		name, into string
	}
	var entries []entryOf
	renamed := map[string]bool{}
	for _, k := range p.kustomizations {
		list, _ := k.top["images"].([]any)
		for i, one := range list {
			image, _ := one.(map[string]any)
			name, _ := image["name"].(string)
			newName, _ := image["newName"].(string)
			renamed[name] = true
			if name != "" && k.top["kind"] != types.ComponentKind {
				entries = append(entries, entryOf{k, i, name, cmp.Or(newName, name)})
			}
		}
	}
	if len(entries) == 0 {
		return nil
	}
	known := imagesOf(objects)
	var out []result.Result
	for _, e := range entries {
		found := slices.ContainsFunc(known, func(image string) bool { return image == e.into || matchesAll(e.name, image) })
		if found || e.into != e.name && renamed[e.into] {
			continue
		}
		at := []any{"images", e.i, "name"}
		hint := strict.DidYouMean(e.name, known)
		if hint == "" && len(known) > 0 {
			hint = "; there is " + strings.Join(known[:min(len(known), 5)], ", ")
		}
		out = append(out, result.Result{
			Severity: result.Warning,
			Message:  fmt.Sprintf("%s: no object has the image %s, so that the entry changes nothing%s", strict.FieldPath(at...), e.name, hint),
			File:     &result.File{Path: e.k.name, Line: e.k.doc.LineIn(at, 0)},
		})
	}
	return out
}

// imagesOf returns the names of images in objects without tags and digests, in order. Any text of one line counts whose key is image.
func imagesOf(objects []*resource.Resource) []string {
	names := map[string]bool{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, e := range v {
				if text, isText := e.(string); isText && strings.HasSuffix(strings.ToLower(key), "image") {
					name, _, _ := strings.Cut(text, "@")
					if i := strings.LastIndex(name, ":"); i > strings.LastIndex(name, "/") {
						name = name[:i]
					}
					names[name] = true
				}
				walk(e)
			}
		case []any:
			for _, e := range v {
				walk(e)
			}
		}
	}
	for _, o := range objects {
		if m, err := o.Map(); err == nil {
			walk(m)
		}
	}
	return slices.Sorted(maps.Keys(names))
}
