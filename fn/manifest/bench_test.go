// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// benchList is a ResourceList of n triples of Deployment, Service and ConfigMap, about 650 bytes an item.
func benchList(n int) []byte {
	var b strings.Builder
	b.WriteString("apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems:\n")
	item := func(text string) {
		for i, l := range strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n") {
			if i == 0 {
				b.WriteString("- " + l)
			} else {
				b.WriteString("  " + l)
			}
		}
		b.WriteString("\n")
	}
	for i := range n {
		item(strings.ReplaceAll(deployment[strings.Index(deployment, "apiVersion"):], "name: web", fmt.Sprintf("name: web-%d", i)))
		item(fmt.Sprintf("apiVersion: v1\nkind: Service\nmetadata:\n  name: web-%d\nspec:\n  selector: {app: web}\n  ports:\n  - port: 80\n    targetPort: 8080\n", i))
		item(fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web-%d\ndata:\n  config: |\n%s", i, strings.Repeat("    key = \"value\" # and more\n", 30)))
	}
	b.WriteString("functionConfig:\n  apiVersion: prerig.dev/v1alpha1\n  kind: InjectionPolicy\n  metadata:\n    name: mesh\n")
	return []byte(b.String())
}

func BenchmarkParseResourceList(b *testing.B) {
	src := benchList(5000)
	b.SetBytes(int64(len(src)))
	b.ReportAllocs()
	for b.Loop() {
		rl, err := ParseResourceList(src)
		if err != nil || len(rl.Items) != 15000 {
			b.Fatal(len(rl.Items), err)
		}
		for _, it := range rl.Items {
			if _, ok := it.Peek(); !ok {
				b.Fatal(string(it.Raw()))
			}
		}
	}
}

func BenchmarkResourceListBytes(b *testing.B) {
	src := benchList(5000)
	rl, err := ParseResourceList(src)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		rl.Bytes(rl.Items, nil)
	}
}

// BenchmarkObject decodes a Deployment of 40 lines; Kubernetes is the same with sigs.k8s.io/yaml.
func BenchmarkObject(b *testing.B) {
	f, err := Parse("", []byte(deployment))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := f.Docs[0].Object(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkKubernetes(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var v map[string]any
		if err := yaml.Unmarshal([]byte(deployment), &v); err != nil {
			b.Fatal(err)
		}
	}
}

// benchTemplate is a pod template of 200 lines.
var benchTemplate = func() []byte {
	var b strings.Builder
	b.WriteString("metadata:\n  labels:\n    a: b\nspec:\n  containers:\n  - name: istio-proxy\n    image: \"registry.example/proxyv2:1.31\"\n    env:\n")
	for i := range 64 {
		fmt.Fprintf(&b, "    - name: VARIABLE_%d\n      valueFrom:\n        fieldRef: {fieldPath: metadata.name}\n", i)
	}
	return []byte(b.String())
}()

func BenchmarkDecodeTemplate(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(benchTemplate); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWith(b *testing.B) {
	f, err := Parse("", []byte(deployment))
	if err != nil {
		b.Fatal(err)
	}
	d := f.Docs[0]
	obj, err := d.Object()
	if err != nil {
		b.Fatal(err)
	}
	tmpl := obj["spec"].(map[string]any)["template"].(map[string]any)
	side, err := Decode(benchTemplate)
	if err != nil {
		b.Fatal(err)
	}
	spec := tmpl["spec"].(map[string]any)
	spec["containers"] = append(spec["containers"].([]any), side.(map[string]any)["spec"].(map[string]any)["containers"].([]any)...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := d.With(obj); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkMarshal(b *testing.B) {
	v, err := Decode(benchTemplate)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Marshal(v)
	}
}
