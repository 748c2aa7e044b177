// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// TestPlaceFindings compares the places of findings with the lines of the files that are published.
func TestPlaceFindings(t *testing.T) {
	text := map[string]string{
		"a": "# of a chart\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: shop}\ndata:\n  k: one\n  x: |\n    two\n    lines\n",
		"s": "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: shop}\nstringData: {password: one}\n",
		"z": "---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: z\nspec:\n  template:\n    spec:\n      containers:\n      - name: main\n        imagee: zz\n",
	}
	var objects []render.Object
	for _, name := range []string{"a", "s", "z"} {
		o := render.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, YAML: []byte(text[name])}
		switch name {
		case "s":
			o.Kind = "Secret"
		case "z":
			o.APIVersion, o.Kind, o.Namespace = "apps/v1", "Deployment", ""
		}
		objects = append(objects, o)
	}
	git := func(layout v1alpha1.Layout, style v1alpha1.Style, secrets v1alpha1.SecretsPolicy) v1alpha1.Publish {
		return v1alpha1.Publish{Git: &v1alpha1.GitPublish{Branch: "rendered", Path: "web", Layout: layout, Style: style}, Secrets: secrets}
	}
	for name, tc := range map[string]struct {
		to   v1alpha1.Publish
		want string // the file of the field of z, and what stands in its line
		a, s string // those of the others
	}{
		"objects":   {git(v1alpha1.LayoutObjects, v1alpha1.StyleCanonical, ""), "rendered:web/deployment-z.yaml", "rendered:web/shop/configmap-a.yaml", "rendered:web/shop/secret-s.yaml"},
		"preserved": {git(v1alpha1.LayoutObjects, v1alpha1.StylePreserve, ""), "rendered:web/deployment-z.yaml", "rendered:web/shop/configmap-a.yaml", "rendered:web/shop/secret-s.yaml"},
		"single":    {git(v1alpha1.LayoutSingle, v1alpha1.StylePreserve, ""), "rendered:web/manifests.yaml", "rendered:web/manifests.yaml", "rendered:web/manifests.yaml"},
		"root":      {v1alpha1.Publish{Git: &v1alpha1.GitPublish{Branch: "env/prod", Path: "."}}, "env/prod:deployment-z.yaml", "env/prod:shop/configmap-a.yaml", "env/prod:shop/secret-s.yaml"},
		"artifact":  {v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{}}, "deployment-z.yaml", "shop/configmap-a.yaml", "shop/secret-s.yaml"},
		"encrypted": {git(v1alpha1.LayoutObjects, v1alpha1.StyleCanonical, v1alpha1.SecretsEncrypt), "rendered:web/deployment-z.yaml", "rendered:web/shop/configmap-a.yaml", "rendered:web/shop/secret-s.yaml"},
		"encrypted in one file": {git(v1alpha1.LayoutSingle, v1alpha1.StyleCanonical, v1alpha1.SecretsEncrypt), "rendered:web/manifests.yaml",
			"rendered:web/manifests.yaml", "rendered:web/manifests.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			find := func(i int, field string) result.Result {
				ref := result.ResourceRef{APIVersion: objects[i].APIVersion, Kind: objects[i].Kind, Namespace: objects[i].Namespace, Name: objects[i].Name}
				return result.Result{Severity: result.Error, Message: "wrong", ResourceRef: &ref, Field: &result.Field{Path: field}}
			}
			known := find(0, "data")
			known.File = &result.File{Path: "app/a.yaml", Line: 3}
			gone := find(0, "data")
			gone.ResourceRef.Name = "gone"
			results := result.Results{find(2, "spec.template.spec.containers[0].imagee"), find(0, "data.x.deeper"), find(1, "stringData"), known, gone, {Message: "of nothing"}}
			PlaceFindings(v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{tc.to}}, results, objects, &Texts{})
			if results[3].File.String() != "app/a.yaml:3" || results[4].File != nil || results[5].File != nil {
				t.Errorf("got %v", results[3:])
			}
			layout, style := tc.to.Format()
			files, err := Files(objects, layout, style)
			if err != nil {
				t.Fatal(err)
			}
			encrypted, single := tc.to.Secrets == v1alpha1.SecretsEncrypt, layout == v1alpha1.LayoutSingle
			for i, want := range []struct {
				file, line string
				unknown    bool
			}{{tc.want, "imagee: zz", encrypted && single}, {tc.a, "x: |", false}, {tc.s, "stringData:", encrypted}} {
				got := results[i].File
				if got == nil || got.Path != want.file || want.unknown != (got.Line == 0) {
					t.Errorf("got %v, want %+v", got, want)
					continue
				}
				name := got.Path[strings.Index(got.Path, ":")+1:]
				lines := strings.Split(string(files[strings.TrimPrefix(name, "web/")]), "\n")
				if !want.unknown && !strings.Contains(lines[got.Line-1], want.line) {
					t.Errorf("line %d of %s is %s", got.Line, got.Path, lines[got.Line-1])
				}
			}
			if text := fmt.Sprint(results[0]); !strings.HasPrefix(text, "error: "+tc.want) {
				t.Error(text)
			}
		})
	}
}

// TestPlacesOfUpdates: a finding about an update names the object in the source where that is known, and others do not.
func TestPlacesOfUpdates(t *testing.T) {
	text := []byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec:\n  template: {}\n")
	known := render.Object{APIVersion: "batch/v1", Kind: "Job", Name: "a", YAML: text, Source: render.Place{Path: "app/jobs.yaml", Line: 7}}
	unknown := render.Object{APIVersion: "batch/v1", Kind: "Job", Name: "b", YAML: []byte(strings.Replace(string(text), "name: a", "name: b", 1))}
	find := func(name, code string) result.Result {
		return result.Result{
			Severity: result.Error, Message: "wrong", Tags: map[string]string{result.TagCode: code}, Field: &result.Field{Path: "spec.template"},
			ResourceRef: &result.ResourceRef{APIVersion: "batch/v1", Kind: "Job", Name: name},
		}
	}
	results := result.Results{find("a", "update-rejected"), find("b", "update-rejected"), find("a", "schema-invalid")}
	to := v1alpha1.Publish{Git: &v1alpha1.GitPublish{Branch: "rendered", Path: "."}}
	PlaceFindings(v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{to}}, results, []render.Object{known, unknown}, &Texts{})
	for i, want := range []string{"app/jobs.yaml:7", "rendered:job-b.yaml:6", "rendered:job-a.yaml:6"} {
		if got := results[i].File.String(); got != want {
			t.Errorf("finding %d is at %s, want %s", i, got, want)
		}
	}
}
