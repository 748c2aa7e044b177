// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// captured is as kubectl get prints objects, with what people write by hand.
const captured = `apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: b, namespace: shop}
  data: {size: "5"}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a, namespace: shop}
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: a, namespace: other}
---
apiVersion: v1
kind: SecretList
items:
- metadata: {name: keys, namespace: shop}
  data: {user: YWRtaW4=}
  stringData: {password: secret}
---
# only a comment
---
{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": {"pods": 10000000}}}
`

func capturedRelease() *v1alpha1.Helm {
	release := releaseOf("apps/shop")
	release.Lookup, release.Captured = v1alpha1.LookupCaptured, "cluster.yaml"
	return release
}

// TestCapturedObjects asks for objects as charts do.
func TestCapturedObjects(t *testing.T) {
	for expression, want := range map[string]string{
		`(lookup "v1" "ConfigMap" "shop" "b").data.size`:                                                       "5",
		`lookup "v1" "ConfigMap" "shop" "none" | toJson`:                                                       "{}",
		`lookup "v1" "ConfigMap" "" "b" | toJson`:                                                              "{}",
		`lookup "apps/v1" "ConfigMap" "shop" "b" | toJson`:                                                     "{}",
		`if lookup "v1" "ConfigMap" "shop" "none" }}yes{{ else }}no{{ end`:                                     "no",
		`range (lookup "v1" "ConfigMap" "shop" "").items }}{{ .metadata.name }} {{ end`:                        "a b ",
		`range (lookup "v1" "ConfigMap" "" "").items }}{{ .metadata.namespace }}-{{ .metadata.name }} {{ end`:  "other-a shop-a shop-b ",
		`(lookup "v1" "ConfigMap" "shop" "").kind`:                                                             "ConfigMapList",
		`lookup "batch/v1" "Job" "" "" | toJson`:                                                               `{"apiVersion":"batch/v1","items":[],"kind":"JobList","metadata":{}}`,
		`(lookup "v1" "Secret" "shop" "keys").data.password | b64dec`:                                          "secret",
		`(lookup "v1" "Secret" "shop" "keys").data.user | b64dec`:                                              "admin",
		`(lookup "v1" "Secret" "shop" "keys").stringData`:                                                      "",
		`(lookup "v1" "Secret" "shop" "keys").kind`:                                                            "Secret",
		`(lookup "v1" "Node" "" "n1").status.capacity.pods`:                                                    "10000000",
		`(lookup "v1" "Node" "shop" "n1").status.capacity.pods`:                                                "10000000",
		`$x := lookup "v1" "Node" "" "n1" }}{{ $_ := set $x "kind" "y" }}{{ (lookup "v1" "Node" "" "n1").kind`: "Node",
	} {
		files := chartWith(map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  value: |-\n    <{{ " + expression + " }}>\n"})
		files["cluster.yaml"] = captured
		manifests, err := Render(context.Background(), sourceOf(t, files), capturedRelease(), Options{})
		if got := printed(manifests); err != nil || !strings.Contains(got, "<"+want+">") {
			t.Errorf("%s: %v, got %s, want %s", expression, err, got, want)
		}
	}
}

// TestCapturedFilesAreRead checks that a change of the file is one of the release, also where no template asks.
func TestCapturedFilesAreRead(t *testing.T) {
	files := chartWith(map[string]string{"templates/a.yaml": configMap("a", "x")})
	files["cluster.yaml"] = captured
	view := sourceOf(t, files)
	if _, err := Render(context.Background(), view, capturedRelease(), Options{}); err != nil {
		t.Fatal(err)
	}
	changed := maps.Clone(files)
	changed["cluster.yaml"] += "---\n"
	for _, test := range []struct {
		files    map[string]string
		affected bool
	}{{files, false}, {changed, true}} {
		b := tree.NewBuilder(tree.Limits{})
		for name, content := range test.files {
			if err := b.Add(name, tree.File, []byte(content)); err != nil {
				t.Fatal(err)
			}
		}
		if _, affected := view.Record().Affected(b.Build()); affected != test.affected {
			t.Errorf("affected is %t", affected)
		}
	}
}

func TestErrorsOfCapturedFiles(t *testing.T) {
	for text, want := range map[string]string{
		"a: [":                                      "cluster.yaml",
		"apiVersion: v1\n---\n- x\n":                "cluster.yaml:1: an object needs apiVersion, kind and metadata.name",
		"# x\n---\n- x\n":                           "cluster.yaml:3: ",
		"apiVersion: v1\nkind: A\n":                 "cluster.yaml:1: an object needs",
		captured + "---\n" + captured:               "cluster.yaml:31: ConfigMap b is here twice",
		"apiVersion: v1\nkind: List\nitems:\n- 5\n": "cluster.yaml:4: it is no object",
	} {
		files := chartWith(map[string]string{"templates/a.yaml": configMap("a", "x")})
		files["cluster.yaml"] = text
		_, err := Render(context.Background(), sourceOf(t, files), capturedRelease(), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Render(context.Background(), sourceOf(t, chartWith(nil)), capturedRelease(), Options{}); err == nil || !strings.Contains(err.Error(), "reading helm.captured: ") {
		t.Error(err)
	}
}
