// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package request

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/prerig/prerig/fn/podmap"
)

// TestQuantitiesOfEveryKindAreBounded: a quantity that Kubernetes' types read for minutes is an error in any of them.
func TestQuantitiesOfEveryKindAreBounded(t *testing.T) {
	for kind, typ := range scheme.Scheme.AllKnownTypes() {
		if err := podmap.CheckQuantities(map[string]any{}, reflect.New(typ).Interface()); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	for kind, spec := range map[string]map[string]any{
		"/v1 ResourceQuota":         {"hard": map[string]any{"pods": "1e-999999999"}},
		"/v1 PersistentVolumeClaim": {"resources": map[string]any{"requests": map[string]any{"storage": "1e-999999999"}}},
		"/v1 Pod":                   {"volumes": []any{map[string]any{"name": "v", "emptyDir": map[string]any{"sizeLimit": "1e-999999999"}}}},
		"autoscaling/v2 HorizontalPodAutoscaler": {"metrics": []any{map[string]any{"type": "External", "external": map[string]any{
			"target": map[string]any{"type": "Value", "value": "1e-999999999"}}}}},
	} {
		apiVersion, name, _ := strings.Cut(kind, " ")
		apiVersion = strings.TrimPrefix(apiVersion, "/")
		object := map[string]any{"apiVersion": apiVersion, "kind": name, "metadata": map[string]any{"name": "x"}, "spec": spec}
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := convertToTyped(object, gv.WithKind(name)); err == nil || !strings.Contains(err.Error(), "the exponent of") {
			t.Errorf("%s: got %v", kind, err)
		}
	}
}
