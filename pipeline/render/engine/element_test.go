// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// TestElementsOfLists: each element is published as a document of its own, so that its text must be one.
func TestElementsOfLists(t *testing.T) {
	element := "apiVersion: v1\n  kind: ConfigMap\n  metadata:\n    name: NAME\n  data:\n    k: |\n      one\n        two\n    l: 'a\n\n      b'\n"
	list := func(names ...string) string {
		text := "apiVersion: v1\nkind: List\nitems:\n"
		for _, name := range names {
			text += "- " + strings.ReplaceAll(element, "NAME", name)
		}
		return text
	}
	indented := "apiVersion: v1\nkind: List\nitems:\n  # first\n  -   # odd\n" + strings.ReplaceAll("      apiVersion: v1\n      kind: ConfigMap\n      metadata:\n        name: odd\n      data: {k: \"one\\n  two\\n\", l: \"a\\nb\"}\n", "\t", "")
	for name, text := range map[string]string{
		"block": list("a", "b"), "crlf": strings.ReplaceAll(list("c", "d"), "\n", "\r\n"), "indented": indented,
		"flow":    "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: e}, data: {k: \"one\\n  two\\n\", l: \"a\\nb\"}}]\n",
		"json":    "{\n  \"apiVersion\": \"v1\",\n  \"kind\": \"List\",\n  \"items\": [\n    {\n      \"apiVersion\": \"v1\",\n      \"kind\": \"ConfigMap\",\n      \"metadata\": {\"name\": \"j\"},\n      \"data\": {\"k\": \"one\\n  two\\n\",\n        \"l\": \"a\\nb\"}\n    }\n  ]\n}\n",
		"nested":  "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: List\n  items:\n  - " + strings.ReplaceAll(strings.ReplaceAll(element, "NAME", "inner"), "\n", "\n  "),
		"anchors": "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: x}\n  data: &data {k: \"one\\n  two\\n\", l: \"a\\nb\"}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: z}\n  data: *data\n",
		"empty":   "apiVersion: v1\nkind: List\nitems: []\n",
	} {
		for _, style := range []v1alpha1.Style{v1alpha1.StyleCanonical, v1alpha1.StylePreserve} {
			t.Run(fmt.Sprint(name, " ", style), func(t *testing.T) {
				response, _, err := renderFiles(t, map[string]string{"app/list.yaml": text}, request("app"))
				if err != nil {
					t.Fatal(err)
				}
				if name != "empty" && len(response.Objects) == 0 {
					t.Error("there is no object")
				}
				files, err := publish.Files(response.Objects, v1alpha1.LayoutObjects, style)
				if err != nil {
					t.Fatal(err)
				}
				for file, content := range files {
					if strings.Contains(file, "unnamed") {
						t.Errorf("the name was not found: %s", file)
					}
					value, err := manifest.Decode(content)
					if err != nil {
						t.Errorf("%s: %v:\n%s", file, err, content)
						continue
					}
					object, _ := value.(map[string]any)
					data, _ := object["data"].(map[string]any)
					k, l := strings.ReplaceAll(fmt.Sprint(data["k"]), "\r\n", "\n"), strings.ReplaceAll(fmt.Sprint(data["l"]), "\r\n", "\n")
					if object["kind"] != "ConfigMap" || k != "one\n  two\n" || l != "a\nb" {
						t.Errorf("%s: %v\n%s", file, object, content)
					}
				}
			})
		}
	}
}

// TestAnElementKeepsItsComments, and what was injected into it.
func TestAnElementKeepsItsComments(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- # the shop's own\n  " + strings.TrimSuffix(strings.ReplaceAll(deployment, "\n", "\n  "), "  ")
	r := request("app")
	r.Policies = []render.Policy{{Origin: "mesh.yaml", YAML: extra}}
	inList, _ := mustRender(t, map[string]string{"app/list.yaml": list}, r)
	alone, _ := mustRender(t, map[string]string{"app/web.yaml": deployment}, r)
	got, want := string(inList.Objects[0].YAML), string(alone.Objects[0].YAML)
	if !strings.Contains(want, "name: logger") || got != "# the shop's own\n"+want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWhatIsForToolsIsLeftOutOfLists as it is outside of them.
func TestWhatIsForToolsIsLeftOutOfLists(t *testing.T) {
	list := "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: local, annotations: {config.kubernetes.io/local-config: \"true\"}}\n" +
		"- apiVersion: prerig.dev/v1alpha1\n  kind: InjectionPolicy\n  metadata: {name: mesh}\n- apiVersion: v1\n  kind: ConfigMap\n  metadata: {name: kept}\n"
	response, _ := mustRender(t, map[string]string{"app/list.yaml": list}, request("app"))
	if got := ids(response); got != "v1 ConfigMap kept" {
		t.Errorf("got %s", got)
	}
}
