// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/ambient"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// maxCustomDepth is deeper than pod templates are in custom resources.
const maxCustomDepth = 10

// customTemplates returns the pod templates anywhere in a custom resource: maps that are called template or podTemplate, and have containers or the
// annotations of pods.
func customTemplates(at []any, v any, depth int) (out []workload.Template) {
	if depth > maxCustomDepth {
		return nil
	}
	switch v := v.(type) {
	case map[string]any:
		key := ""
		if len(at) > 0 {
			key = text(at[len(at)-1])
		}
		meta, spec := podmap.MapAt(v, "metadata"), podmap.MapAt(v, "spec")
		isPod := len(podmap.Maps(spec["containers"])) > 0 || key != "template" && (meta["annotations"] != nil || meta["labels"] != nil)
		if slices.Contains([]string{"template", "podTemplate", "podTemplateSpec"}, key) && isPod {
			pod := map[string]any{"metadata": child(map[string]any{"m": meta}, "m"), "spec": child(map[string]any{"s": spec}, "s")}
			return []workload.Template{{Path: slices.Clone(at), Field: workload.FieldString(at), Pod: pod}}
		}
		for _, name := range podmap.SortedKeys(v) {
			out = append(out, customTemplates(append(at, name), v[name], depth+1)...)
		}
	case []any:
		for i, e := range v {
			out = append(out, customTemplates(append(at, i), e, depth+1)...)
		}
	}
	return out
}

// authorizersOf returns what the objects show of external authorizers, which is read once.
func authorizersOf(t *tree) *ambient.Authorizers {
	if t.source != nil {
		return authorizersOf(t.source) // a part of the files may have been read
	}
	if t.authorizers != nil {
		return t.authorizers
	}
	t.authorizers = &ambient.Authorizers{}
	for _, key := range []string{
		"IstioOperator.install.istio.io", "Istio.sailoperator.io", "HelmRelease.helm.toolkit.fluxcd.io", "Application.argoproj.io",
		"ServiceEntry.networking.istio.io",
	} {
		for _, o := range t.byKind[key] {
			t.authorizers.Add(o.kind, o.name, o.value)
		}
	}
	for _, o := range t.byKind["ConfigMap"] {
		var mesh map[string]any
		if data := text(podmap.MapAt(o.value, "data")["mesh"]); data != "" && yaml.Unmarshal([]byte(data), &mesh) == nil {
			t.authorizers.Add(o.kind, o.name, mesh)
		}
	}
	return t.authorizers
}

// localAuthorizer describes why no waypoint can ask the authorizer of a policy, or returns "".
func localAuthorizer(t *tree, o *object) string {
	if o.key() != authorizationPolicies || ambient.Action(o.spec) != "CUSTOM" {
		return ""
	}
	var images []string
	selector := withoutSidecarLabel(selectorOf(o))
	for _, p := range t.workloads(o.namespace) {
		if !hasLabels(p.podLabels, selector) {
			continue
		}
		for _, key := range []string{"containers", "initContainers"} {
			for _, c := range podmap.Maps(p.podSpec[key]) {
				images = append(images, text(c["image"]))
			}
		}
	}
	return authorizersOf(t).Local(o.spec, images)
}

// noteAuthorizers names the policies of a namespace whose authorizers no waypoint can ask.
func noteAuthorizers(t *tree, namespace string) {
	for _, o := range t.in(namespace, authorizationPolicies) {
		why := localAuthorizer(t, o)
		if why == "" || len(ambient.Targets(o.spec)) > 0 || !t.appliesToPods(o) {
			continue
		}
		note := t.note(o, "spec.provider.name", Change, lint.LocalAuthorizer+why)
		note.setCode("PR950")
		t.notes = append(t.notes, note)
	}
}

// noteManagedMesh names the mesh of a provider that a namespace is in, of which nothing is known if no file has the Namespace.
func noteManagedMesh(t *tree, ns *object) {
	if ns == nil {
		return
	}
	provider, annotation, label := ambient.ManagedMesh(ns.labels, ns.annotations)
	if provider == "" {
		return
	}
	field := workload.FieldString([]any{"metadata", "labels", label})
	if annotation != "" {
		field = workload.FieldString([]any{"metadata", "annotations", annotation})
	}
	note := t.note(ns, field, Blocked, lint.ManagedMesh(provider))
	note.setCode("PR951")
	t.notes = append(t.notes, note)
}

// setCode makes a note one of a rule, with its advice.
func (n *Note) setCode(code string) {
	n.Code = code
	n.Fix = newNote("", result.Result{Tags: map[string]string{result.TagCode: code}}).Fix
}
