// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
)

var update = flag.Bool("update", false, "write the expected files anew")

// TestExpected compares with what was looked through.
func TestExpected(t *testing.T) {
	c, spec := builtIn(t, newest)
	in, err := istio.New(istio.Options{
		Version: c.version, Config: c.config, Values: c.values, Mesh: c.mesh,
		Native: istio.Native(spec.Istio.NativeSidecars), KubernetesVersion: spec.Istio.KubernetesVersion,
	})
	if err != nil {
		t.Fatal(err)
	}
	if warnings := in.Warnings(); len(warnings) > 0 {
		t.Errorf("the policy warns: %q", warnings)
	}
	if !in.NativeSidecars() {
		t.Error("the proxy is not a native sidecar")
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	expected := map[string]bool{}
	for _, path := range inputs(t) {
		object := objects(t, path)[0]
		templates, err := registry.Templates(object)
		if err != nil || len(templates) != 1 {
			t.Fatalf("%s has %d pod templates: %v", path, len(templates), err)
		}
		res, err := inject.Istio(in, inject.Request{Pod: templates[0].Pod, Owner: templates[0].Owner, Namespace: inject.Namespace{Name: "shop"}})
		if err != nil {
			t.Fatal(err)
		}
		got := manifest.Marshal(templates[0].Write(object, res.Pod))
		golden := strings.TrimSuffix(path, ".input.yaml") + ".expected.yaml"
		expected[golden] = true
		if *update {
			if err := os.WriteFile(golden, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", golden, diff)
		}
	}
	found, err := filepath.Glob(filepath.Join("testdata", "istio", "*.expected.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		if !expected[path] {
			t.Errorf("%s has no input any more", path)
		}
	}
}

func inputs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join("testdata", "istio", "*.input.yaml"))
	if err != nil || len(found) == 0 {
		t.Fatalf("finding inputs: %v, %d", err, len(found))
	}
	slices.Sort(found)
	return found
}
