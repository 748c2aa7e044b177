// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package deploy_test

import (
	"os"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// TestObjectsThatNobodyHasLookedAt has kstatus, by which Flux waits, not take an object for ready before the daemon has seen it. The API
// server fills in the definition's default.
func TestObjectsThatNobodyHasLookedAt(t *testing.T) {
	for _, name := range []string{"crds/prerig.dev_renderpipelines.yaml", "crds/prerig.dev_injectionpolicies.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var definition struct {
			Spec struct {
				Names    struct{ Kind string }
				Versions []struct {
					Name   string
					Schema struct {
						OpenAPIV3Schema struct {
							Properties map[string]struct{ Default map[string]int64 }
						}
					}
				}
			}
		}
		if err := yaml.Unmarshal(text, &definition); err != nil {
			t.Fatal(err)
		}
		for _, version := range definition.Spec.Versions {
			o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "prerig.dev/" + version.Name, "kind": definition.Spec.Names.Kind}}
			o.SetName("new")
			o.SetNamespace("shop")
			o.SetGeneration(1)
			status := map[string]any{}
			for field, value := range version.Schema.OpenAPIV3Schema.Properties["status"].Default {
				status[field] = value
			}
			o.Object["status"] = status
			if got, err := kstatus.Compute(o); err != nil || got.Status != kstatus.InProgressStatus {
				t.Errorf("a new %s is %+v, %v", o.GetKind(), got, err)
			}
		}
	}
}
