// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// Some controllers make CustomResourceDefinitions from objects of their own. Where such an object is among the files, its kind is
// described as if the definition were.

// derivedDefinitions returns the CustomResourceDefinitions that a controller makes from an object; none for most objects.
func derivedDefinitions(o gate.Object) []map[string]any {
	ref := o.Ref()
	switch groupOf(ref.APIVersion) + "/" + ref.Kind {
	case "templates.gatekeeper.sh/ConstraintTemplate":
		return constraintDefinitions(o.Value)
	case "apiextensions.crossplane.io/CompositeResourceDefinition":
		return compositeDefinitions(o.Value)
	}
	return nil
}

// anything is a schema that accepts all values.
func anything() map[string]any { return map[string]any{"x-kubernetes-preserve-unknown-fields": true} }

// objectSchema returns the schema of an object.
func objectSchema(properties map[string]any) map[string]any {
	return map[string]any{"type": "object", "properties": properties}
}

// newDerived returns a definition whose versions have no schema of metadata.
func newDerived(group, scope string, names map[string]any, versions []any) map[string]any {
	plural, _ := names["plural"].(string)
	return map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": plural + "." + group},
		"spec": map[string]any{"group": group, "scope": scope, "names": names, "versions": versions},
	}
}

// derivedVersion returns a version with a status of its own.
func derivedVersion(name string, storage bool, root map[string]any) map[string]any {
	return map[string]any{
		"name": name, "served": true, "storage": storage, "schema": map[string]any{"openAPIV3Schema": root},
		"subresources": map[string]any{"status": map[string]any{}},
	}
}

// constraintDefinitions returns the kind of constraints that a ConstraintTemplate describes (source: constraint/pkg/client/crds of
// open-policy-agent/frameworks, 2026). What a constraint matches is not checked: targets define it.
func constraintDefinitions(template map[string]any) []map[string]any {
	crd := podmap.MapAt(template, "spec", "crd", "spec")
	kind := podmap.TextAt(crd, "names", "kind")
	if kind == "" {
		return nil
	}
	spec := map[string]any{
		"match": anything(), "enforcementAction": map[string]any{"type": "string"},
		"scopedEnforcementActions": map[string]any{"type": "array", "items": anything()},
	}
	if parameters := podmap.MapAt(crd, "validation", "openAPIV3Schema"); parameters != nil {
		legacy, set := podmap.MapAt(crd, "validation")["legacySchema"].(bool)
		if legacy || !set && strings.HasSuffix(podmap.TextAt(template, "apiVersion"), "/v1beta1") {
			parameters = anything()
		}
		spec["parameters"] = parameters
	}
	root := objectSchema(map[string]any{"metadata": map[string]any{"type": "object"}, "spec": objectSchema(spec), "status": anything()})
	names := map[string]any{"kind": kind, "plural": strings.ToLower(kind)}
	return []map[string]any{newDerived("constraints.gatekeeper.sh", "Cluster", names, []any{
		derivedVersion("v1beta1", true, root), derivedVersion("v1alpha1", false, root),
	})}
}

// compositeFields are those that Crossplane adds to the spec of composite resources and claims (source: internal/xcrd of
// crossplane/crossplane, 1.20 and 2.3).
var compositeFields = []string{
	"claimRef", "compositeDeletePolicy", "compositionRef", "compositionRevisionRef", "compositionRevisionSelector", "compositionSelector",
	"compositionUpdatePolicy", "crossplane", "environmentConfigRefs", "publishConnectionDetailsTo", "resourceRef", "resourceRefs",
	"writeConnectionSecretToRef",
}

// compositeDefinitions returns the kinds that a CompositeResourceDefinition describes: composite resources, and their claims.
func compositeDefinitions(xrd map[string]any) []map[string]any {
	spec := podmap.MapAt(xrd, "spec")
	group := podmap.TextAt(spec, "group")
	all, _ := spec["versions"].([]any)
	var versions []any
	for i, one := range all {
		version, _ := one.(map[string]any)
		if version["served"] != true {
			continue
		}
		name, _ := version["name"].(string)
		versions = append(versions, derivedVersion(name, i == 0, compositeSchema(podmap.MapAt(version, "schema", "openAPIV3Schema"))))
	}
	scope := podmap.TextAt(spec, "scope")
	switch {
	case scope == "LegacyCluster", scope == "" && strings.HasSuffix(podmap.TextAt(xrd, "apiVersion"), "/v1"):
		scope = "Cluster"
	case scope == "":
		scope = "Namespaced"
	}
	var out []map[string]any
	if names := podmap.MapAt(spec, "names"); names["kind"] != nil {
		out = append(out, newDerived(group, scope, names, versions))
	}
	if names := podmap.MapAt(spec, "claimNames"); names["kind"] != nil {
		out = append(out, newDerived(group, "Namespaced", names, versions))
	}
	return out
}

// compositeSchema returns the schema of a version with what Crossplane adds.
func compositeSchema(root map[string]any) map[string]any {
	if root == nil {
		return anything()
	}
	spec := podmap.MapAt(root, "properties", "spec")
	fields := map[string]any{}
	for name, field := range podmap.MapAt(spec, "properties") {
		fields[name] = field
	}
	for _, name := range compositeFields {
		fields[name] = anything()
	}
	merged := map[string]any{"type": "object"}
	for keyword, value := range spec {
		merged[keyword] = value
	}
	merged["properties"] = fields
	out := objectSchema(map[string]any{"metadata": map[string]any{"type": "object"}, "spec": merged, "status": anything()})
	if required, ok := root["required"]; ok {
		out["required"] = required
	}
	return out
}
