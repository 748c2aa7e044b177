// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
)

// sourceRemarks returns remarks about the sources and values that differ, and whose HelmReleases and Kustomizations were
// not rendered: what these install was not compared.
func sourceRemarks(e catalog.Entry, before, after side) (out []Remark) {
	was := map[string]render.Object{}
	for _, o := range before.objects {
		was[identity(o)] = o
	}
	users := map[string][]string{}
	for _, o := range after.objects {
		for _, ref := range after.unrenderedRefs(e, o) {
			users[ref] = append(users[ref], o.Ref().String())
		}
	}
	for _, o := range after.objects {
		used := users[o.Ref().String()]
		earlier, known := was[identity(o)]
		if len(used) == 0 || !known || bytes.Equal(earlier.YAML, o.YAML) {
			continue
		}
		from, to := specOf(earlier), specOf(o)
		if isOfFlux(o) && reflect.DeepEqual(withoutTimes(from), withoutTimes(to)) {
			continue
		}
		out = append(out, Remark{Kind: RemarkNotCompared, Objects: used,
			Text: fmt.Sprintf("%s%s: what %s installs of it was not compared", o.Ref().String(), describeRef(from, to),
				foreign.List(used, shownObjects))})
	}
	return append(out, replacedSources(e, before, after)...)
}

// replacedSources returns remarks about the Kustomizations that are not rendered at either end and have another source.
func replacedSources(e catalog.Entry, before, after side) (out []Remark) {
	was := map[string]render.Object{}
	for _, o := range before.objects {
		was[identity(o)] = o
	}
	for _, o := range after.objects {
		earlier, known := was[identity(o)]
		if !known || o.Kind != "Kustomization" || bytes.Equal(earlier.YAML, o.YAML) {
			continue
		}
		from, to := before.unrenderedRefs(e, earlier), after.unrenderedRefs(e, o)
		if len(from) == 0 || len(to) == 0 || from[0] == to[0] {
			continue
		}
		out = append(out, Remark{Kind: RemarkNotCompared, Objects: []string{o.Ref().String()},
			Text: fmt.Sprintf("%s has another source (%s -> %s): what it installs was not compared", o.Ref().String(),
				before.describeSource(from[0]), after.describeSource(to[0]))})
	}
	return out
}

// describeSource returns the name of a source with its revision, if it is among the objects.
func (s side) describeSource(name string) string {
	for _, o := range s.objects {
		if o.Ref().String() == name {
			return strings.TrimSpace(name + " " + flat(specOf(o)["ref"]))
		}
	}
	return name
}

// specOf returns the spec of an object, nil without one.
func specOf(o render.Object) map[string]any {
	spec, _ := decode(o.YAML)["spec"].(map[string]any)
	return spec
}

// withoutTimes returns a spec without the fields that decide when Flux fetches a source, and not what.
func withoutTimes(spec map[string]any) map[string]any {
	out := maps.Clone(spec)
	for _, field := range []string{"interval", "timeout", "suspend"} {
		delete(out, field)
	}
	return out
}

// describeRef describes how the revision or the address of a source differs, "" if that is not known.
func describeRef(from, to map[string]any) string {
	for _, field := range []string{"ref", "url"} {
		a, b := flat(from[field]), flat(to[field])
		if a != b && a != "" && b != "" {
			return " (" + a + " -> " + b + ")"
		}
	}
	return ""
}

// flat returns a scalar, or the scalars of a mapping, as text.
func flat(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, key+" "+fmt.Sprint(v[key]))
		}
		return strings.Join(parts, ", ")
	}
	return fmt.Sprint(value)
}

// unrenderedRefs returns the objects that one refers to for what it installs, if that is not among the objects.
func (s side) unrenderedRefs(e catalog.Entry, o render.Object) (out []string) {
	spec := func() map[string]any { return specOf(o) }
	switch {
	case !isOfFlux(o):
	case o.Kind == "Kustomization":
		if unit, known := s.units[o.Namespace+"/"+o.Name]; !known || unit.Left != "" {
			out = append(out, refName(spec()["sourceRef"], o.Namespace, ""))
		}
	case o.Kind == "HelmRelease" && !rendersRelease(e, o):
		chart, _ := spec()["chart"].(map[string]any)
		ofChart, _ := chart["spec"].(map[string]any)
		out = append(out, refName(spec()["chartRef"], o.Namespace, ""), refName(ofChart["sourceRef"], o.Namespace, ""))
		values, _ := spec()["valuesFrom"].([]any)
		for _, one := range values {
			out = append(out, refName(one, o.Namespace, "ConfigMap"))
		}
	}
	return slices.DeleteFunc(out, func(name string) bool { return name == "" })
}

// refName returns the object that a reference names, "" without one.
func refName(ref any, namespace, kind string) string {
	m, _ := ref.(map[string]any)
	name, _ := m["name"].(string)
	if given, _ := m["kind"].(string); given != "" {
		kind = given
	}
	if given, _ := m["namespace"].(string); given != "" {
		namespace = given
	}
	if name == "" || kind == "" {
		return ""
	}
	return result.ResourceRef{Kind: kind, Namespace: namespace, Name: name}.String()
}

// rendersRelease reports whether a build renders a HelmRelease.
func rendersRelease(e catalog.Entry, o render.Object) bool {
	if e.Pipeline == nil || e.Pipeline.Spec.Build.Releases == nil {
		return false
	}
	kept := v1alpha1.KeptObject{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	return !slices.Contains(e.Pipeline.Spec.Build.Releases.Keep, kept)
}

// missingRemarks returns remarks about what the kustomizations of a build load from elsewhere, or generate by a program,
// where that differs: its content was not compared.
func missingRemarks(first, second *Result) (out []Remark) {
	before, after := missingIn(first), missingIn(second)
	if first == nil || first.Err != nil {
		before = after // the build is new, and its remotes are in a note
	}
	for _, file := range slices.Sorted(maps.Keys(joined(before, after))) {
		if parts := describeMissing(before[file], after[file]); len(parts) > 0 {
			out = append(out, Remark{Kind: RemarkNotCompared,
				Text: file + ": content not compared, as it is not in the source: " + foreign.List(parts, shownObjects)})
		}
	}
	return out
}

// describeMissing describes how what a file names and a build lacks differs between the ends.
func describeMissing(before, after map[string]string) (parts []string) {
	gone := slices.DeleteFunc(slices.Sorted(maps.Keys(before)), func(one string) bool {
		_, still := after[one]
		return still
	})
	for _, one := range slices.Sorted(maps.Keys(after)) {
		digest, known := before[one]
		if known && digest != after[one] {
			parts = append(parts, one+" is changed")
		}
		if known {
			continue
		}
		i := slices.IndexFunc(gone, func(other string) bool { return alike(one, other) })
		if i < 0 {
			parts = append(parts, one+" is added")
			continue
		}
		parts = append(parts, gone[i]+" -> "+one)
		gone = slices.Delete(gone, i, i+1)
	}
	for _, one := range gone {
		parts = append(parts, one+" is removed")
	}
	return parts
}

// missingIn returns what a build could not load, with digests, by the files that name it.
func missingIn(r *Result) map[string]map[string]string {
	out := map[string]map[string]string{}
	response := r.Response()
	if response == nil {
		return out
	}
	for _, one := range response.Results {
		what := one.Tags[render.TagReference]
		if what == "" || one.File == nil {
			continue
		}
		if out[one.File.Path] == nil {
			out[one.File.Path] = map[string]string{}
		}
		out[one.File.Path][what] = one.Tags[render.TagDigest]
	}
	return out
}

func joined[V any](a, b map[string]V) map[string]V {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

// alike reports whether two URLs are probably of one thing in two versions: they differ in few of their parts, and the
// host and the name of the file are the same.
func alike(a, b string) bool {
	x, y := strings.FieldsFunc(a, isSeparator), strings.FieldsFunc(b, isSeparator)
	if len(x) != len(y) || len(x) < 2 {
		return false
	}
	differ := 0
	for i := range x {
		differ += cmp.Compare(x[i], y[i]) * cmp.Compare(x[i], y[i])
	}
	const most = 2
	return differ <= most
}

func isSeparator(r rune) bool { return r == '/' || r == '?' || r == '=' || r == '&' }
