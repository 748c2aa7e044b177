// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/fluxtest"
	"github.com/prerig/prerig/pipeline/render"
)

// fluxRequest renders a cluster whose entry is clusters/prod.
func fluxRequest() render.Request {
	r := releasesRequest("clusters/prod")
	r.Type, r.Releases = v1alpha1.BuildFlux, nil
	r.Flux = &v1alpha1.Flux{Path: "clusters/prod", Source: v1alpha1.DefaultFluxSource}
	return r
}

// fluxKustomization is a Kustomization of Flux with more of its spec.
func fluxKustomization(name, path, more string) string {
	return "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata:\n  name: " + name + "\n  namespace: flux-system\nspec:\n" +
		"  interval: 10m\n  prune: true\n  path: " + path + "\n  sourceRef: {kind: GitRepository, name: flux-system}\n" + more
}

func fluxMap(name, data string) string {
	return "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\ndata:\n" + data
}

const fluxDeployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels: {own: label}\nspec:\n  replicas: 1\n  selector: {matchLabels: {app: web}}\n" +
	"  template:\n    metadata: {labels: {app: web}}\n    spec:\n      containers:\n      - {name: web, image: example.com/web:1}\n"

// fluxCase is a tree whose Kustomization apps builds the directory app.
type fluxCase struct {
	spec  string            // of the Kustomization apps
	files map[string]string // beside app/web.yaml, a Deployment
	// fails reports whether Flux refuses it.
	fails bool
}

var fluxCases = map[string]fluxCase{
	"plain":            {},
	"nested directory": {files: map[string]string{"app/a/b/c.yaml": fluxMap("deep", "  a: b\n"), "app/a/.hidden.yaml": fluxMap("hidden", "  a: b\n"), "app/note.txt": "x: [", "app/c.json": "{"}},
	"directory with a kustomization below": {files: map[string]string{
		"app/sub/kustomization.yaml": "namePrefix: sub-\nresources: [one.yaml]\n", "app/sub/one.yaml": fluxMap("one", "  a: b\n"), "app/sub/two.yaml": fluxMap("two", "  a: b\n"),
	}},
	"kustomization":          {files: map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\nlabels: [{pairs: {a: b}}]\n"}},
	"Kustomization file":     {files: map[string]string{"app/Kustomization": "resources: [web.yaml]\nnamespace: own\n"}},
	"empty directory":        {files: map[string]string{"app/web.yaml": "", "app/x.txt": "text"}},
	"outside of the root":    {files: map[string]string{"app/kustomization.yaml": "resources: [../shared/map.yaml]\n", "shared/map.yaml": fluxMap("shared", "  a: b\n")}},
	"target namespace":       {spec: "  targetNamespace: web\n"},
	"namespace over another": {spec: "  targetNamespace: web\n", files: map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\nnamespace: own\n"}},
	"prefix and suffix":      {spec: "  namePrefix: a-\n  nameSuffix: -z\n"},
	"prefix over another":    {spec: "  namePrefix: a-\n", files: map[string]string{"app/kustomization.yaml": "resources: [web.yaml]\nnamePrefix: own-\n"}},
	"common metadata":        {spec: "  commonMetadata: {labels: {team: a, own: other}, annotations: {note: \"1\"}}\n"},
	"components": {spec: "  components: [../comp]\n", files: map[string]string{
		"comp/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: [map.yaml]\nlabels: [{pairs: {from: comp}}]\n", "comp/map.yaml": fluxMap("comp", "  a: b\n"),
	}},
	"missing component":         {spec: "  components: [../gone]\n", fails: true},
	"ignored missing component": {spec: "  components: [../gone]\n  ignoreMissingComponents: true\n"},
	"remote component":          {spec: "  components: [\"https://github.com/a/b\"]\n", fails: true},
	"strategic patch":           {spec: "  patches:\n  - patch: |\n      apiVersion: apps/v1\n      kind: Deployment\n      metadata: {name: web}\n      spec: {replicas: 3}\n"},
	"patch by target":           {spec: "  patches:\n  - target: {kind: Deployment, labelSelector: own=label}\n    patch: |\n      - {op: replace, path: /spec/replicas, value: 4}\n"},
	"patch that misses":         {spec: "  patches:\n  - target: {kind: Job}\n    patch: |\n      - {op: replace, path: /spec/replicas, value: 4}\n"},
	"broken patch":              {spec: "  patches:\n  - target: {kind: Deployment}\n    patch: |\n      - {op: remove, path: /spec/gone}\n", fails: true},
	"images":                    {spec: "  images: [{name: example.com/web, newTag: \"2\"}]\n"},
	"images over others": {spec: "  images: [{name: example.com/web, newTag: \"2\"}, {name: other, digest: \"sha256:aa\"}]\n", files: map[string]string{
		"app/kustomization.yaml": "resources: [web.yaml]\nimages: [{name: example.com/web, newName: example.com/new, digest: \"sha256:bb\"}]\n",
	}},
	"build metadata":  {spec: "  buildMetadata: [originAnnotations]\n"},
	"generators only": {files: map[string]string{"app/kustomization.yaml": "configMapGenerator: [{name: gen, literals: [a=b]}]\n"}},
	"substitute": {spec: "  postBuild: {substitute: {name: prod, count: \"3\"}}\n", files: map[string]string{
		"app/v.yaml": fluxMap("v", "  a: ${name}\n  b: ${name^^}/${name:0:2}/${#name}\n  c: ${missing:=default}/${missing:-other}\n  d: $${name} $name\n  e: ${name/prod/dev}\n") +
			"---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: \"${name}-x\"}\nspec:\n  replicas: ${count}\n",
	}},
	"substitute a line break": {spec: "  postBuild: {substitute: {a: \"x\\ny\"}}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a}\n")}},
	"substitution disabled": {spec: "  postBuild: {substitute: {a: x}}\n", files: map[string]string{
		"app/v.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: v, annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {a: \"${a}${b}\"}\n" +
			"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: w, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\ndata: {a: \"${a}${b}\"}\n",
	}},
	"no substitution":         {files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a}\n")}},
	"empty substitution":      {spec: "  postBuild: {substitute: {}}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a}\n")}},
	"always substituted":      {spec: "  postBuild: {substituteStrategy: Always}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a:=x}\n")}},
	"missing variable":        {spec: "  postBuild: {substitute: {a: x}}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${b}\n")}, fails: true},
	"bad substitution":        {spec: "  postBuild: {substitute: {a: x}}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a\n")}, fails: true},
	"bad name":                {spec: "  postBuild: {substitute: {a-b: x}}\n", fails: true},
	"substitution to no YAML": {spec: "  postBuild: {substitute: {a: \"{\"}}\n", files: map[string]string{"app/v.yaml": fluxMap("v", "  a: ${a}\n")}, fails: true},
	"substitute from": {spec: "  postBuild:\n    substitute: {c: inline}\n    substituteFrom: [{kind: ConfigMap, name: vars}, {kind: Secret, name: more}, {kind: ConfigMap, name: gone, optional: true}]\n", files: map[string]string{
		"app/v.yaml": fluxMap("v", "  a: ${a}\n  b: ${b}\n  c: ${c}\n  d: ${d}\n"),
	}},
	"substitute from what is missing": {spec: "  postBuild: {substituteFrom: [{kind: ConfigMap, name: gone}]}\n", fails: true},
	"missing path":                    {spec: "  path: ./gone\n", fails: true},
	"broken YAML":                     {files: map[string]string{"app/broken.yaml": "a: [\n"}, fails: true},
	"no kind":                         {files: map[string]string{"app/broken.yaml": "a: b\n"}, fails: true},
	"no name":                         {files: map[string]string{"app/job.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: x-}\n"}, fails: true},
	"twice":                           {files: map[string]string{"app/again.yaml": fluxDeployment}, fails: true},
	"link":                            {files: map[string]string{"app/link.yaml": "->../shared/map.yaml", "shared/map.yaml": fluxMap("shared", "  a: b\n")}},
	"custom resource with openapi": {files: map[string]string{
		"app/kustomization.yaml": "resources: [web.yaml, c.yaml]\nopenapi: {path: schema.json}\npatches: [{path: patch.yaml}]\n",
		"app/c.yaml":             "apiVersion: example.com/v1\nkind: Web\nmetadata: {name: w}\nspec: {items: [{name: a, v: 1}, {name: b, v: 2}]}\n",
		"app/patch.yaml":         "apiVersion: example.com/v1\nkind: Web\nmetadata: {name: w}\nspec: {items: [{name: b, v: 3}]}\n",
		"app/schema.json": `{"definitions":{"web":{"properties":{"spec":{"properties":{"items":{"type":"array","x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge",` +
			`"items":{"type":"object"}}}}},"x-kubernetes-group-version-kind":[{"group":"example.com","kind":"Web","version":"v1"}]}}}`,
	}},
}

// fluxTree returns the files of a case: an entry with variables, and the Kustomization.
func fluxTree(c fluxCase) map[string]string {
	files := map[string]string{
		"clusters/prod/apps.yaml": fluxKustomization("apps", "./app", ""),
		"clusters/prod/vars.yaml": strings.Replace(fluxMap("vars", "  a: map\n  b: map\n  c: map\n"), "  name: vars\n", "  name: vars\n  namespace: flux-system\n", 1) +
			"---\napiVersion: v1\nkind: Secret\nmetadata: {name: more, namespace: flux-system}\ndata: {b: c2VjcmV0Cg==}\nstringData: {d: plain}\n",
		"app/web.yaml": fluxDeployment,
	}
	maps.Copy(files, c.files)
	maps.DeleteFunc(files, func(_, content string) bool { return content == "" })
	spec := fluxKustomization("apps", "./app", c.spec)
	if strings.Contains(c.spec, "  path:") {
		spec = strings.Replace(spec, "  path: ./app\n", "", 1)
	}
	files["clusters/prod/apps.yaml"] = spec
	return files
}

// TestFluxLikeKustomizeController compares what a Kustomization renders to with what Flux's own packages build.
func TestFluxLikeKustomizeController(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(fluxCases)) {
		t.Run(name, func(t *testing.T) { compareWithFlux(t, fluxCases[name]) })
	}
}

func compareWithFlux(t *testing.T, c fluxCase) {
	t.Helper()
	files := fluxTree(c)
	cluster := objectsIn(t, files["clusters/prod/vars.yaml"])
	k := objectsIn(t, files["clusters/prod/apps.yaml"])[0]
	want, failure := fluxtest.Build(writeTree(t, files), k, cluster)
	if c.fails != (failure != nil) {
		t.Fatalf("Flux: %v", failure)
	}
	response, _ := mustRender(t, files, fluxRequest())
	if failed := slices.Contains(response.Failed, "flux-system/apps"); failed != c.fails {
		t.Fatalf("failed: %v, %v; Flux: %v", failed, response.Results, failure)
	}
	if c.fails {
		checkUnitError(t, response)
		return
	}
	var got []map[string]any
	for _, object := range response.Objects {
		if object.Unit == "flux-system/apps" {
			got = append(got, objectsIn(t, string(object.YAML))...)
		}
	}
	if diff := cmp.Diff(canonicalObjects(t, want), canonicalObjects(t, got)); diff != "" {
		t.Errorf("- Flux, + Prerig\n%s", diff)
	}
}

// checkUnitError looks for the error of a unit, and for what is rendered all the same.
func checkUnitError(t *testing.T, response *render.Response) {
	t.Helper()
	if !slices.ContainsFunc(response.Results, func(one result.Result) bool {
		return one.Severity == result.Error && one.Tags[render.TagUnit] == "flux-system/apps" && one.ResourceRef != nil && one.File != nil
	}) {
		t.Errorf("no error with an object and a file: %v", response.Results)
	}
	t.Log(response.UnitError())
	units := map[string]int{}
	for _, object := range response.Objects {
		units[object.Unit]++
	}
	if units["flux-system/flux-system"] != 2 || units["flux-system/apps"] != 0 {
		t.Errorf("got the objects %v", units)
	}
}

// TestFluxLikeKustomizeControllerAtRandom combines the cases that Flux builds.
func TestFluxLikeKustomizeControllerAtRandom(t *testing.T) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(fluxCases)) {
		if !fluxCases[name].fails {
			names = append(names, name)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 25 {
		c := fluxCase{files: map[string]string{}}
		var chosen, fields []string
		for _, n := range random.Perm(len(names))[:2+random.IntN(3)] {
			one := fluxCases[names[n]]
			field, _, _ := strings.Cut(strings.TrimSpace(one.spec), ":")
			if field != "" && slices.Contains(fields, field) {
				continue
			}
			chosen, fields = append(chosen, names[n]), append(fields, field)
			c.spec += one.spec
			for name, content := range one.files {
				if _, taken := c.files[name]; !taken {
					c.files[name] = content
				}
			}
		}
		t.Run(fmt.Sprintf("%d %s", i, strings.Join(chosen, ", ")), func(t *testing.T) {
			files := fluxTree(c)
			_, err := fluxtest.Build(writeTree(t, files), objectsIn(t, files["clusters/prod/apps.yaml"])[0], objectsIn(t, files["clusters/prod/vars.yaml"]))
			c.fails = err != nil
			compareWithFlux(t, c)
		})
	}
}
