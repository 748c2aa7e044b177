// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
)

// FuzzAlike looks for two workloads of one key whose pods differ by more than their values: Admit reports them.
func FuzzAlike(f *testing.F) {
	f.Add("web-1", "main", "x:1", "value 1", "100m", `object.metadata.generateName`)
	f.Add("web-7", "web-7", "x", "8080", "1000m", `object.spec.containers[0].name == "web-7" ? "a" : "b"`)
	f.Add("default", "istio-proxy", "x:latest", "true", "1Gi", `string(size(object.metadata.labels["app"]))`)
	f.Fuzz(func(t *testing.T, name, container, image, value, amount, expression string) {
		if strings.ContainsAny(name+container+image+value+amount, "\n") {
			t.Skip()
		}
		workloads := alikeWorkloads(2) + strings.NewReplacer("web-1", name, "main-1", container, "registry.example.com/web:1.1", image,
			"shard 1", value, "11m", amount).Replace(alikeWorkloads(1))
		mutation := fmt.Sprintf(`[JSONPatch{op: "add", path: "/metadata/labels/z", value: %s}]`, expression)
		cluster := alikeCluster + mutating("p", "  failurePolicy: Ignore", strings.ReplaceAll(mutation, "'", "''"))
		request := &render.AdmitRequest{}
		for text, list := range map[string]*[]render.GateDocument{cluster: &request.Catalog, workloads: new([]render.GateDocument)} {
			file, err := manifest.Parse("k8s.yaml", []byte(text))
			if err != nil {
				t.Skip()
			}
			for _, doc := range file.Docs {
				if sent, ok := render.NewGateDocument(doc, doc, "k8s.yaml"); ok {
					*list = append(*list, sent)
				}
			}
			if text == workloads {
				request.Groups = []render.AdmitGroup{{Documents: *list}}
			}
		}
		if _, err := Admit(t.Context(), request); errors.Is(err, errNotAlike) {
			t.Fatal(err)
		}
	})
}
