// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

func unitObject(unit, name string) render.Object {
	return render.Object{
		APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, Unit: unit,
		YAML: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: shop}\n"),
	}
}

// TestUnitsHaveDirectories writes each unit to a directory of its own, where two may have the same object.
func TestUnitsHaveDirectories(t *testing.T) {
	t.Parallel()
	objects := []render.Object{unitObject("flux-system/a", "x"), unitObject("flux-system/b", "x"), unitObject("flux-system/b", "y")}
	for layout, want := range map[v1alpha1.Layout][]string{
		v1alpha1.LayoutObjects: {"flux-system/a/shop/configmap-x.yaml", "flux-system/b/shop/configmap-x.yaml", "flux-system/b/shop/configmap-y.yaml"},
		v1alpha1.LayoutSingle:  {"flux-system/a/manifests.yaml", "flux-system/b/manifests.yaml"},
	} {
		files, err := publish.Files(objects, layout, v1alpha1.StylePreserve)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) {
			t.Errorf("%s: got %q", layout, got)
		}
	}
	if _, err := publish.Files(append(objects, objects[0]), v1alpha1.LayoutObjects, v1alpha1.StylePreserve); err == nil {
		t.Error("a unit has an object twice")
	}
}

// TestFailedUnitsKeepWhatIsPublished keeps the files of units without a result as long as one fails, and deletes those
// of others.
func TestFailedUnitsKeepWhatIsPublished(t *testing.T) {
	t.Parallel()
	text := func(name string) []byte { return unitObject("", name).YAML }
	published := map[string][]byte{
		"flux-system/a/shop/configmap-old.yaml": text("old"), "flux-system/b/shop/configmap-b.yaml": text("b"),
		"flux-system/child-of-b/shop/configmap-c.yaml": text("c"), "../elsewhere/x/y.yaml": text("z"), "note.yaml": text("n"),
	}
	objects := []render.Object{unitObject("flux-system/a", "x")}
	for _, failed := range [][]string{nil, {"flux-system/b"}} {
		files, err := publish.Files(objects, v1alpha1.LayoutObjects, v1alpha1.StylePreserve)
		if err != nil {
			t.Fatal(err)
		}
		all := publish.KeepFailed(files, published, &render.Response{Type: v1alpha1.BuildFlux, Objects: objects, Failed: failed})
		want := []string{"flux-system/a/shop/configmap-x.yaml"}
		if failed != nil {
			want = append(want, "flux-system/b/shop/configmap-b.yaml", "flux-system/child-of-b/shop/configmap-c.yaml")
		}
		if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, want) || len(all) != len(want) {
			t.Errorf("failed %q: got %q, %d objects", failed, got, len(all))
		}
	}
}

// TestErrorOfFailedUnitClosesNoGate publishes the other units.
func TestErrorOfFailedUnitClosesNoGate(t *testing.T) {
	t.Parallel()
	ofUnit := result.Result{Severity: result.Error, Message: "broken", Tags: map[string]string{render.TagUnit: "flux-system/a"}}
	gates := v1alpha1.Gates{Severity: v1alpha1.GateError}
	if err := publish.CheckFindings(gates, result.Results{ofUnit}); err != nil {
		t.Error(err)
	}
	if err := publish.CheckFindings(gates, result.Results{ofUnit, {Severity: result.Error, Message: "found in an object"}}); err == nil {
		t.Error("another error closes no gate")
	}
}
