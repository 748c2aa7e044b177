// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
)

// target is which objects an edit is for.
type target struct {
	selector *selector
	// object has the apiVersion, kind, name and namespace of the one object of a patch without a target.
	object  map[string]any
	rejects []target
}

// selector has the fields by which kustomize selects objects. All but the last two are regular expressions that match a
// whole value; empty ones match each value (source: Selector in sigs.k8s.io/kustomize/api/types v0.21).
type selector struct {
	Group, Version, Kind, Name, Namespace pattern
	AnnotationSelector, LabelSelector     string
}

// newTarget reads a selector of kustomize. One that cannot be read matches no object: kustomize reports it.
func newTarget(v any) target {
	content, err := json.Marshal(v)
	if err != nil {
		return target{}
	}
	var s selector
	if json.Unmarshal(content, &s) != nil {
		return target{}
	}
	return target{selector: &s}
}

// pattern is a regular expression; nil matches each value.
type pattern struct{ *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (p *pattern) UnmarshalText(text []byte) (err error) {
	if len(text) > 0 {
		p.Regexp, err = regexp.Compile("^(?:" + string(text) + ")$")
	}
	return err
}

func (p pattern) matches(value string) bool { return p.Regexp == nil || p.MatchString(value) }

// targetOf is the object of a patch.
func targetOf(obj map[string]any) target { return target{object: obj} }

// exactTarget is the object of the source of a replacement. Its fields may be missing, and are no regular expressions.
func exactTarget(source map[string]any) target {
	quoted := map[string]any{}
	for _, key := range []string{"group", "version", "kind", "name", "namespace"} {
		if s, ok := source[key].(string); ok {
			quoted[key] = quoteRegex(s)
		}
	}
	return newTarget(quoted)
}

func quoteRegex(s string) string {
	var b strings.Builder
	for _, c := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// object is an object as kustomizations know it: with the names, namespaces and labels that it has on its way.
type object struct {
	group, version, kind string
	names, namespaces    []string
	labels, annotations  map[string]string
}

// resourceOf returns an object with the names, labels and annotations that its kustomizations set. The last one changes
// it after its patches, but before patchesJson6902 and replacements; so both are among its names.
func resourceOf(obj map[string]any, by []*kustomization) object {
	meta, _ := obj["metadata"].(map[string]any)
	apiVersion, _ := obj["apiVersion"].(string)
	group, version, found := strings.Cut(apiVersion, "/")
	if !found {
		group, version = "", apiVersion
	}
	out := object{group: group, version: version}
	out.labels, out.annotations = stringMap(meta["labels"]), stringMap(meta["annotations"])
	out.kind, _ = obj["kind"].(string)
	name, _ := meta["name"].(string)
	namespace, _ := meta["namespace"].(string)
	out.names, out.namespaces = []string{name}, []string{effective(namespace)}
	for _, k := range by {
		prefix, _ := k.obj["namePrefix"].(string)
		suffix, _ := k.obj["nameSuffix"].(string)
		if prefix != "" || suffix != "" {
			name = prefix + name + suffix
			out.names = append(out.names, name)
		}
		if namespace, ok := k.obj["namespace"].(string); ok && namespace != "" {
			out.namespaces = append(out.namespaces, namespace)
		}
		maps.Copy(out.labels, stringMap(k.obj["commonLabels"]))
		maps.Copy(out.annotations, stringMap(k.obj["commonAnnotations"]))
		list, _ := k.obj["labels"].([]any)
		for _, one := range list {
			m, _ := one.(map[string]any)
			maps.Copy(out.labels, stringMap(m["pairs"]))
		}
	}
	return out
}

// effective is the namespace that kustomize compares.
func effective(namespace string) string {
	if namespace == "" {
		return "default"
	}
	return namespace
}

func stringMap(v any) map[string]string {
	out := map[string]string{}
	m, _ := v.(map[string]any)
	for key, value := range m {
		if s, ok := value.(string); ok {
			out[key] = s
		}
	}
	return out
}

// matches reports whether the edit is for an object, as kustomize decides it (source: Select in
// api/resmap/reswrangler.go and setTargets in api/filters/replacement of kustomize 5.8).
func (t target) matches(o object) bool {
	if t.object != nil {
		return t.isObject(o)
	}
	s := t.selector
	if s == nil || !s.Group.matches(o.group) || !s.Version.matches(o.version) || !s.Kind.matches(o.kind) ||
		!slices.ContainsFunc(o.names, s.Name.matches) || !slices.ContainsFunc(o.namespaces, s.Namespace.matches) ||
		!selects(s.LabelSelector, o.labels) || !selects(s.AnnotationSelector, o.annotations) {
		return false
	}
	return !slices.ContainsFunc(t.rejects, func(r target) bool { return !r.isEmpty() && r.matches(o) })
}

// isEmpty reports whether a selector has no criteria: a rejection without criteria rejects no object.
func (t target) isEmpty() bool { return t.selector != nil && *t.selector == (selector{}) }

// isObject compares an object with the one that a patch is for.
func (t target) isObject(o object) bool {
	other := resourceOf(t.object, nil)
	return o.group == other.group && (other.version == "" || o.version == other.version) && o.kind == other.kind &&
		slices.Contains(o.names, other.names[0]) && slices.Contains(o.namespaces, other.namespaces[0])
}

// selects reports whether a selector selects labels or annotations.
func selects(selector string, of map[string]string) bool {
	if selector == "" {
		return true
	}
	s, err := labels.Parse(selector)
	return err == nil && s.Matches(labels.Set(of))
}
