// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
)

// resourceSetOf is a ResourceSet of the Flux Operator with its spec.
func resourceSetOf(name, spec string) string {
	return "---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata:\n  name: " + name + "\n  namespace: flux-system\nspec:\n" + spec
}

// inputProvider is a ResourceSetInputProvider with its spec.
func inputProvider(name, spec string) string {
	return "---\napiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {name: " + name +
		", namespace: flux-system, labels: {set: apps}}\nspec: " + spec + "\n"
}

// resourceSetCase is a ResourceSet at clusters/prod/set.yaml, beside other files.
type resourceSetCase struct {
	set   string
	files map[string]string
	// made are the objects of the entry, texts what they contain, units what is in other units.
	made  string
	texts []string
	units map[string]string
	// left is a warning, failed an error.
	left, failed string
}

const mapOfInput = "  resources:\n  - {apiVersion: v1, kind: ConfigMap, metadata: {name: << inputs.name >>}, data: {n: << inputs.n | quote >>}}\n"

var resourceSetCases = map[string]resourceSetCase{
	"one resource for each input": {
		set:   "  inputs: [{name: a, n: 1}, {name: b, n: 12345678901234567}]\n" + mapOfInput,
		made:  "ConfigMap a, ConfigMap b",
		texts: []string{`"n": "1"`, `"n": "12345678901234567"`},
	},
	"a template of Kustomizations, which are followed": {
		set: "  inputs: [{team: x, apps: [one, two]}]\n  resourcesTemplate: |\n    <<- range $app := inputs.apps >>\n    ---\n" +
			"    apiVersion: kustomize.toolkit.fluxcd.io/v1\n    kind: Kustomization\n    metadata: {name: << $app >>, namespace: flux-system}\n" +
			"    spec: {path: ./<< inputs.team >>/<< $app >>, prune: true, interval: 1h, sourceRef: {kind: GitRepository, name: flux-system}}\n    <<- end >>\n",
		files: map[string]string{"x/one/a.yaml": fluxMap("m1", "  a: b\n"), "x/two/a.yaml": fluxMap("m2", "  a: b\n")},
		units: map[string]string{"flux-system/one": "ConfigMap m1", "flux-system/two": "ConfigMap m2"},
	},
	"the first of an identity counts, and what is disabled does not": {
		set: "  inputs: [{name: a, n: 1}, {name: a, n: 2}]\n" + mapOfInput + "  resourcesTemplate: |\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: out\n" +
			"      annotations: {fluxcd.controlplane.io/reconcile: disabled}\n",
		made: "ConfigMap a", texts: []string{`"n": "1"`},
	},
	"metadata, functions and no inputs": {
		set: "  commonMetadata: {labels: {team: a}, annotations: {note: x}}\n  resources:\n  - apiVersion: v1\n    kind: ConfigMap\n" +
			"    metadata: {name: \"<< slugify `Hello, Wörld` >>\", labels: {own: l}}\n    data: {y: \"<< list 1 2 | toYaml | nindent 2 | quote >>\"}\n",
		made: "ConfigMap hello-world", texts: []string{"team: a", "own: l", "note: x"},
	},
	"providers of the tree, by name and label": {
		set:   "  inputs: [{name: own, n: 0}]\n  inputsFrom: [{name: p2}, {selector: {matchLabels: {set: apps}}}]\n" + mapOfInput,
		files: map[string]string{"clusters/prod/p.yaml": inputProvider("p2", "{type: Static, defaultValues: {name: two, n: 2}}") + inputProvider("p1", "{type: Static, defaultValues: {name: one, n: 1}}")},
		made:  "ConfigMap one, ConfigMap own, ConfigMap two, ResourceSetInputProvider p1, ResourceSetInputProvider p2",
	},
	"permutations": {
		set: "  inputStrategy: {name: Permute}\n  inputs: [{a: x}, {a: y}]\n  inputsFrom: [{name: Pro-v.1}]\n  resources:\n" +
			"  - {apiVersion: v1, kind: ConfigMap, metadata: {name: << inputs.set.a >>-<< inputs.pro_v_1.b >>}, data: {id: << inputs.id | quote >>}}\n",
		files: map[string]string{"clusters/prod/p.yaml": inputProvider("Pro-v.1", "{type: Static, defaultValues: {b: z}}")},
		made:  "ConfigMap x-z, ConfigMap y-z, ResourceSetInputProvider Pro-v.1", texts: []string{"id: \"717358348\""},
	},
	"steps": {
		set: "  steps:\n  - {name: one, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n" +
			"  - {name: two, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]}\n",
		made: "ConfigMap a, ConfigMap b",
	},
	"an object of two steps": {
		set: "  steps:\n  - {name: one, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n" +
			"  - {name: two, resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n",
		failed: "clusters/prod/set.yaml:10: ResourceSet flux-system/set spec.steps[1]: makes ConfigMap a, which the step one makes too",
	},
	"a provider that asks a server": {
		set:   "  inputsFrom: [{name: p}]\n" + mapOfInput,
		files: map[string]string{"clusters/prod/p.yaml": inputProvider("p", "{type: GitHubPullRequest, url: \"https://github.com/a/b\"}")},
		made:  "ResourceSet set, ResourceSetInputProvider p",
		left:  "ResourceSetInputProvider p is of type GitHubPullRequest, whose inputs only the cluster has; it is left to its controller",
	},
	"a provider that is elsewhere": {
		set: "  inputsFrom: [{name: p}]\n" + mapOfInput, made: "ResourceSet set",
		left: "set.yaml:8: ResourceSet flux-system/set spec.inputsFrom[0]: ResourceSetInputProvider p is not among the objects of the tree",
	},
	"the id of a provider": {
		set:   "  inputsFrom: [{name: p}]\n  resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: \"a-<< inputs.id >>\"}}]\n",
		files: map[string]string{"clusters/prod/p.yaml": inputProvider("p", "{type: Static}")},
		made:  "ResourceSet set, ResourceSetInputProvider p", left: "it uses the id of an input, which the operator makes of the UID of its provider",
	},
	"an object that the operator completes": {
		set: "  resources: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {fluxcd.controlplane.io/copyFrom: b/c}}}]\n", made: "ResourceSet set",
		left: "its Secret a has the annotation fluxcd.controlplane.io/copyFrom, which takes values from the cluster",
	},
	"a missing input": {
		set:    "  inputs: [{name: a}]\n" + mapOfInput,
		failed: "clusters/prod/set.yaml:10: ResourceSet flux-system/set spec.resources[0]: template: resourceset:3:",
	},
	"a set that makes itself": {
		set: "  resources:\n  - apiVersion: fluxcd.controlplane.io/v1\n    kind: ResourceSet\n    metadata: {name: set, namespace: flux-system}\n" +
			"    spec: {resources: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}\n",
		failed: "ResourceSet flux-system/set: is made more than once",
	},
}

// TestResourceSets renders what the Flux Operator makes of a ResourceSet, and leaves to it what depends on the cluster.
func TestResourceSets(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(resourceSetCases)) {
		c := resourceSetCases[name]
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"clusters/prod/set.yaml": resourceSetOf("set", c.set)}
			maps.Copy(files, c.files)
			if c.failed != "" { // a cluster of which all fails is an error
				files["clusters/prod/z.yaml"], files["z/z.yaml"] = fluxKustomization("z", "z", ""), fluxMap("z", "  a: b\n")
			}
			response, _ := mustRender(t, files, fluxRequest())
			got := unitsOf(response)
			if c.failed != "" {
				if found := findingsOf(response, result.Error); !strings.Contains(found, c.failed) || !slices.Contains(response.Failed, "flux-system/flux-system") {
					t.Errorf("%v fail; got %s", response.Failed, found)
				}
				return
			}
			if got["flux-system/flux-system"] != c.made {
				t.Errorf("the entry has %s", got["flux-system/flux-system"])
			}
			for unit, want := range c.units {
				if got[unit] != want {
					t.Errorf("%s has %s", unit, got[unit])
				}
			}
			for _, want := range c.texts {
				if !strings.Contains(text(response), want) {
					t.Errorf("no %q in\n%s", want, text(response))
				}
			}
			found := findingsOf(response, result.Warning)
			if c.left == "" && found != "" || !strings.Contains(found, c.left) {
				t.Errorf("warnings: %s", found)
			}
		})
	}
}

// TestResourceSetsToCompare: a comparison publishes nothing, so that an object counts without what the operator copies into it.
func TestResourceSetsToCompare(t *testing.T) {
	request := fluxRequest()
	request.Review = true
	set := "  resources: [{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {fluxcd.controlplane.io/copyFrom: b/c}}}]\n"
	response, _ := mustRender(t, map[string]string{"clusters/prod/set.yaml": resourceSetOf("set", set)}, request)
	if got := unitsOf(response)["flux-system/flux-system"]; got != "Secret a" {
		t.Errorf("got %s; %v", got, response.Results)
	}
}

// TestResourceSetsWithoutEnd makes a set whose sets make further ones under new names.
func TestResourceSetsWithoutEnd(t *testing.T) {
	nested := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: innermost}\n"
	for i := range 12 {
		nested = fmt.Sprintf("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSet\nmetadata: {name: s%d, namespace: flux-system}\nspec:\n  resources:\n", i) +
			"  - " + strings.ReplaceAll(strings.TrimSpace(nested), "\n", "\n    ") + "\n"
	}
	response, _ := mustRender(t, map[string]string{"clusters/prod/set.yaml": nested}, fluxRequest())
	if got := unitsOf(response)["flux-system/flux-system"]; got != "ConfigMap innermost" {
		t.Errorf("got %s; %v", got, response.Results)
	}
}
