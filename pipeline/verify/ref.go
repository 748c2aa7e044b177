// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// Ref names an object of a cluster. Versions do not matter: the same object can be read in several.
type Ref struct {
	Group, Kind, Namespace, Name string
}

// anyEnding ends the Name of a committed object that has only a generateName: the API server generates the rest.
const anyEnding = "*"

// generatedEnding is how many characters the API server appends (source: pkg/storage/names of k8s.io/apiserver).
const generatedEnding = 5

// Generated reports whether the API server generates the object's name, from the prefix before the * in Name.
func (r Ref) Generated() bool { return strings.HasSuffix(r.Name, anyEnding) }

// BaseName is the name, or the generateName, as it is written in a manifest.
func (r Ref) BaseName() string { return strings.TrimSuffix(r.Name, anyEnding) }

// canBeNamedBy reports whether an object of the reference o can be the one that r names.
func (r Ref) canBeNamedBy(o Ref) bool {
	if !r.Generated() || len(o.Name) != len(r.BaseName())+generatedEnding || !strings.HasPrefix(o.Name, r.BaseName()) {
		return r == o
	}
	o.Name = r.Name
	return r == o
}

// newRef returns a Ref for the identity in manifests and owner references. Former groups of kinds are mapped to
// their current ones.
func newRef(apiVersion, kind, namespace, name string) Ref {
	group, _, ok := strings.Cut(apiVersion, "/")
	if !ok {
		group = ""
	}
	switch {
	case group == "extensions" && kind == "Job":
		group = "batch"
	case group == "extensions" && kind != "Ingress":
		group = "apps"
	case kind == "DeploymentConfig" && group == "":
		group = "apps.openshift.io"
	}
	return Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}
}

// String is "Deployment shop/web".
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

func (r Ref) compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Name, o.Name), cmp.Compare(r.Group, o.Group))
}

// builtIn reports whether Kubernetes' own controllers make the pods of a kind.
func (r Ref) builtIn() bool {
	switch r.Group {
	case "":
		return r.Kind == "Pod" || r.Kind == "ReplicationController"
	case "apps", "batch":
		return true
	}
	return false
}

// refOf names an object by its own words.
func refOf(obj map[string]any) Ref {
	return newRef(podmap.TextAt(obj, "apiVersion"), podmap.TextAt(obj, "kind"), podmap.TextAt(obj, "metadata", "namespace"), podmap.TextAt(obj, "metadata", "name"))
}

// mapsAtPath returns the elements at a path of keys that are maps.
func mapsAtPath(m map[string]any, path ...string) []map[string]any {
	elements, _ := podmap.ValueAt(m, path...).([]any)
	out := make([]map[string]any, 0, len(elements))
	for _, e := range elements {
		if one, ok := e.(map[string]any); ok {
			out = append(out, one)
		}
	}
	return out
}
