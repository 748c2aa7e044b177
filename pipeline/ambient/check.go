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
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// group is the beginning of the codes of the rules about ambient mode.
const group = "PR9"

// findings are those of the rules about ambient mode.
func (t *tree) findings(planned []string) (result.Results, error) {
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
	around := lint.Surroundings{RootNamespace: t.options.RootNamespace, IstioVersion: t.options.IstioVersion}
	labels := map[string]map[string]string{}
	around.Namespaces = t.plannedNamespaces(planned)
	for _, ns := range around.Namespaces {
		labels[ns.Name] = ns.Labels
	}
	origin := map[*result.File]*object{}
	var found result.Results
	var pods []lint.Summary
	for _, o := range t.objects {
		file := &result.File{Path: t.files[o.file].Path, Index: o.doc}
		origin[file] = o
		if lint.ReadsKind(o.apiVersion, o.kind) {
			around.Objects = append(around.Objects, lint.Object{APIVersion: o.apiVersion, Kind: o.kind, Name: o.name, Namespace: o.namespace, Object: o.value, File: file})
			continue
		}
		for _, template := range o.templates {
			in := lint.Input{
				APIVersion: o.apiVersion, Kind: o.kind, Name: o.name, Namespace: o.namespace, Field: template.Field, After: template.Pod, File: file,
				NamespaceLabels: labels[o.namespace], NamespaceKnown: labels[o.namespace] != nil,
			}
			ofPod, _ := lint.Check(in, severities)
			found = append(found, ofPod...)
			if s, ok := lint.Summarize(in); ok {
				pods = append(pods, s)
			}
		}
	}
	ofSet, _ := lint.CheckSet(pods, around, severities)
	found = append(found, ofSet...)
	for i := range found {
		t.locate(&found[i], origin[found[i].File])
	}
	return found, nil
}

// plannedNamespaces returns the namespaces with the labels that they are going to have.
func (t *tree) plannedNamespaces(planned []string) (out []lint.Namespace) {
	for _, o := range t.byKind["Namespace"] {
		if slices.Contains(planned, o.name) {
			continue
		}
		out = append(out, lint.Namespace{Name: o.name, Labels: o.labels, Annotations: o.annotations, File: &result.File{Path: t.files[o.file].Path, Index: o.doc}})
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

// locate adds the line of a finding: that of its field, or of the nearest parent that exists.
func (t *tree) locate(r *result.Result, o *object) {
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
	r.File = &result.File{Path: t.files[o.file].Path, Index: o.doc, Line: t.lineOf(o, field)}
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
