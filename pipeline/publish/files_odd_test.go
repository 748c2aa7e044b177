// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// Whatever a source's file looks like, readers of the one file of the layout Single find each object, and no other.
func TestOneFileOfOddDocuments(t *testing.T) {
	body := func(name string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
	}
	crlf := func(text string) string { return string(bytes.ReplaceAll([]byte(text), []byte("\n"), []byte("\r\n"))) }
	sources := []string{
		body("plain"), "---\n" + body("marked"), "--- # why\n" + body("remarked"), "\ufeff" + body("bom"), "\ufeff---\n" + body("bom-marked"),
		"%YAML 1.1\n---\n" + body("directive"), crlf(body("crlf")), crlf("---\n" + body("crlf-marked")), crlf(body("a") + "---\n" + body("b")),
		body("ended") + "...\n", body("c") + "...\n---\n" + body("d"), "# above\n\n---\n" + body("commented"), "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: flow}}\n",
		"---\n---\n" + body("empty-before") + "---\n---\n", body("keep") + "data:\n  k: |+\n    text\n\n\n", body("short") + "data:\n  k: |\n    text",
		"{\"apiVersion\": \"v1\", \"kind\": \"ConfigMap\", \"metadata\": {\"name\": \"json\"}}", "---  \n" + body("blanks"), "---\t\n" + body("tab"),
		body("dashes") + "data:\n  k: |\n    ---\n    text\n  l: \"---\"\n",
	}
	for _, style := range []v1alpha1.Style{v1alpha1.StyleCanonical, v1alpha1.StylePreserve} {
		var objects []render.Object
		var want []string
		for i, source := range sources {
			file, err := manifest.Parse("f.yaml", []byte(source))
			if err != nil {
				t.Errorf("%q: %v", source, err)
				continue
			}
			for _, doc := range file.Docs {
				if doc.Empty() {
					continue
				}
				meta, ok := doc.Peek()
				if !ok {
					value, err := doc.Object()
					if err != nil {
						t.Fatalf("%q: %v", source, err)
					}
					meta.Name, _ = value["metadata"].(map[string]any)["name"].(string)
				}
				want = append(want, meta.Name)
				objects = append(objects, render.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: fmt.Sprint(i), Name: meta.Name, YAML: doc.Raw()})
			}
		}
		for _, layout := range []v1alpha1.Layout{v1alpha1.LayoutSingle, v1alpha1.LayoutObjects} {
			files, err := publish.Files(objects, layout, style)
			if err != nil {
				t.Fatal(err)
			}
			found := map[string]int{}
			for name, content := range files {
				decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
				for {
					var value map[string]any
					err := decoder.Decode(&value)
					if errors.Is(err, io.EOF) {
						break
					}
					if err != nil {
						t.Errorf("%s, %s: reading %s: %v", style, layout, name, err)
						break
					}
					if metadata, ok := value["metadata"].(map[string]any); ok {
						found[fmt.Sprint(metadata["name"])]++
					}
				}
			}
			for _, name := range want {
				if found[name] != 1 {
					t.Errorf("%s, %s: %s is there %d times", style, layout, name, found[name])
				}
			}
		}
	}
}
