// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// group is the beginning of the codes of the rules about ambient mode.
const group = "PR9"

// findings are those of the rules about ambient mode in some namespaces and in the root namespace, with the changes so far.
func findings(t *tree, planned []string) (result.Results, error) {
	off := map[string]string{}
	for _, r := range lint.Rules() {
		if !strings.HasPrefix(r.Code, group) {
			off[r.Code] = "Off"
		}
	}
	severities, err := lint.NewSeverities(off)
	if err != nil {
		return nil, err
	}
	around := lint.Surroundings{RootNamespace: t.options.RootNamespace, IstioVersion: t.options.IstioVersion, Authorizers: authorizersOf(t)}
	labels := map[string]map[string]string{}
	around.Namespaces = plannedNamespaces(t, planned)
	for _, ns := range around.Namespaces {
		labels[ns.Name] = ns.Labels
	}
	of := map[*result.File]*object{}
	var found result.Results
	var pods []lint.Summary
	for _, o := range t.objects {
		if !concerns(t, o, planned) {
			continue
		}
		file := &result.File{Path: t.files[o.file].Path, Index: o.doc}
		of[file] = o
		if lint.ReadsKind(o.apiVersion, o.kind) {
			around.Objects = append(around.Objects, lint.Object{APIVersion: o.apiVersion, Kind: o.kind, Name: o.name, Namespace: o.namespace, Object: t.current(o), File: file})
			continue
		}
		for i, template := range slices.Concat(o.templates, o.custom) {
			in := lint.Input{
				APIVersion: o.apiVersion, Kind: o.kind, Name: o.name, Namespace: o.namespace, Field: template.Field, After: template.Pod, File: file,
				NamespaceLabels: labels[o.namespace], NamespaceKnown: labels[o.namespace] != nil,
			}
			if o.namespace == t.options.RootNamespace || slices.Contains(planned, o.namespace) {
				ofPod, _ := lint.Check(in, severities)
				found = append(found, ofPod...)
			}
			if s, ok := lint.Summarize(in); ok && i < len(o.templates) {
				pods = append(pods, s)
			}
		}
	}
	ofSet, _ := lint.CheckSet(pods, around, severities)
	found = append(found, ofSet...)
	for i := range found {
		locate(t, &found[i], of[found[i].File])
	}
	return found, nil
}

// plannedNamespaces returns the namespaces with the labels that they are going to have.
func plannedNamespaces(t *tree, planned []string) (out []lint.Namespace) {
	all := t
	if t.source != nil {
		all = t.source // a part of the files may have been read
	}
	for _, o := range all.byKind["Namespace"] {
		if !slices.Contains(planned, o.name) {
			out = append(out, lint.Namespace{Name: o.name, Labels: o.labels, Annotations: o.annotations, File: &result.File{Path: all.files[o.file].Path, Index: o.doc}})
		}
	}
	for _, name := range planned {
		ns := lint.Namespace{Name: name, Labels: map[string]string{ambient.DataplaneMode: ambient.Ambient}}
		if o := t.namespaceObject(name); o != nil {
			maps.Copy(ns.Labels, o.labels)
			ns.Labels[ambient.DataplaneMode], ns.Annotations = ambient.Ambient, o.annotations
			delete(ns.Labels, injectionLabel)
			delete(ns.Labels, revisionLabel)
			ns.File = &result.File{Path: t.files[o.file].Path, Index: o.doc}
		} else if t.needsWaypoint(name) != nil && t.hasWaypoint(name) {
			ns.Labels[ambient.UseWaypoint] = t.waypointName(name).Name // the step label has a note to set these
			if gatewayServices(t, name).namespace {
				ns.Labels[ambient.IngressUseWaypoint] = "true"
			}
		}
		out = append(out, ns)
	}
	return out
}

// locate sets the place of a finding in the files before all steps: that of its field, or of the nearest parent that exists.
func locate(t *tree, r *result.Result, o *object) {
	if o == nil && r.ResourceRef != nil && r.ResourceRef.Kind == "Namespace" {
		o = t.namespaceObject(r.ResourceRef.Name)
	}
	if o == nil {
		return
	}
	field := ""
	if r.Field != nil {
		field = r.Field.Path
	}
	from, at, field := origin(t, o, field)
	r.File = &result.File{Path: from.files[at.file].Path, Index: at.doc, Line: from.lineOf(at, field)}
	if r.Field != nil && field != r.Field.Path {
		moved := *r.Field
		moved.Path = field
		r.Field = &moved
	}
}

// origin returns an object as it is before all steps, with its tree and the path of a field in it. For an object that a step wrote it is the one of
// which it was made, and otherwise the object itself.
func origin(t *tree, o *object, field string) (*tree, *object, string) {
	if t.source == nil {
		return t, o, field
	}
	key, name, namespace := o.key(), o.name, o.namespace
	if of := o.annotations[copyOf]; of != "" {
		name = of
		if root, rest, ok := strings.Cut(of, "/"); ok {
			namespace, name = root, rest
		}
	} else if key == httpRoutes && len(t.source.in(o.namespace, key)) == 0 {
		key = virtualServices
	}
	same := func(from *tree, namespace, key, name string) (out []*object) {
		for _, other := range from.in(namespace, key) {
			if other.name == name && (namespace != o.namespace || from.files[other.file].Path == t.files[o.file].Path) {
				out = append(out, other)
			}
		}
		return out
	}
	found := same(t.source, namespace, key, name)
	if len(found) == 0 {
		return t, o, field
	}
	at := found[min(max(slices.Index(same(t, o.namespace, o.key(), o.name), o), 0), len(found)-1)]
	return t.source, at, fieldOf(at.value, o.value, field)
}

// fieldOf returns the path of a field of one value in another one, in which containers may have other places.
func fieldOf(in, of map[string]any, field string) string {
	at := workload.ParseField(field)
	for i := 1; i < len(at); i++ {
		place, isPlace := at[i].(int)
		if list := text(at[i-1]); !isPlace || list != "containers" && list != "initContainers" {
			continue
		}
		have, there := podmap.Maps(workload.ValueAt(of, at[:i])), podmap.Maps(workload.ValueAt(in, at[:i]))
		if place >= len(have) {
			return field
		}
		if j := slices.IndexFunc(there, func(c map[string]any) bool { return c["name"] == have[place]["name"] }); j >= 0 {
			at[i] = j
		}
	}
	return workload.FieldString(at)
}

// lineOf returns the line of a field of an object, or of the object.
func (t *tree) lineOf(o *object, field string) int {
	d := t.files[o.file].Docs[o.doc]
	if o.element >= 0 {
		items, _, err := d.Items()
		if err != nil {
			return d.Line()
		}
		d = items[o.element]
	}
	return lineIn(d, field)
}

func lineIn(d *manifest.Document, field string) int {
	for at := workload.ParseField(field); len(at) > 0; at = at[:len(at)-1] {
		if line, _, ok := d.Locate(at...); ok {
			return line
		}
	}
	return d.Line()
}

// namespaceOf is the namespace that a finding is about.
func namespaceOf(r result.Result) string {
	if r.ResourceRef == nil {
		return ""
	}
	if r.ResourceRef.Kind == "Namespace" {
		return r.ResourceRef.Name
	}
	return r.ResourceRef.Namespace
}
