// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// ambientSteps are those of prerig ambient plan in their order.
var ambientSteps = []string{"network", "waypoint", "routes", "policies", "limit", "label", "sidecars", "cleanup", "enforce"}

// TestServerAcceptsAmbientSteps creates, as dry runs, every object of the files that prerig ambient plan --write makes in each step, at an API
// server with the definitions of Istio and the Gateway API and the validation of istiod. The files are those of pipeline/ambient/testdata, and
// of the directory PRERIG_AMBIENT_SETS, which make ambient-server fills.
func TestServerAcceptsAmbientSteps(t *testing.T) {
	if os.Getenv("PRERIG_CLUSTER") != "full" {
		t.Skip("PRERIG_CLUSTER is not full; make ambient-server runs this")
	}
	p := programs(t)
	program := builtPrerig(t)
	dirs := ambientFiles(t)
	c := started(t, p, Options{})
	for _, definition := range gatewayDefinitions(t) {
		if _, err := c.Create(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.InstallIstio(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.pollUntilReady(t.Context(), func(ctx context.Context) error { return refusesEmptyOperations(ctx, c) }); err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	namespaces := map[string]bool{}
	for _, step := range append([]string{""}, ambientSteps...) {
		var objects []*unstructured.Unstructured
		for _, dir := range dirs {
			if step != "" {
				cmd := exec.CommandContext(t.Context(), program, "ambient", "plan", "--write", "--step", step, dir)
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("step %s: %v\n%s", step, err, out)
				}
			}
			objects = append(objects, objectsBelow(t, dir)...)
		}
		before := len(tried)
		for _, obj := range objects {
			data, err := obj.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if tried[string(data)] || obj.GetKind() == "Namespace" {
				continue
			}
			tried[string(data)] = true
			if name := obj.GetNamespace(); !namespaces[name] && name != istioNamespace {
				namespaces[name] = true
				if err := c.AddNamespace(t.Context(), name, nil, nil); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := c.Try(t.Context(), obj); err != nil {
				t.Errorf("after step %q: %s %s/%s: %v\n%s", step, obj.GetKind(), obj.GetNamespace(), obj.GetName(), err, data)
			}
		}
		t.Logf("step %q: %d objects", step, len(tried)-before)
	}
}

// errAccepted is what the server answers before istiod validates.
type errAccepted struct{}

func (errAccepted) Error() string { return "the server accepts a policy that istiod refuses" }

// refusesEmptyOperations waits for istiod's validation: no schema refuses this policy.
func refusesEmptyOperations(ctx context.Context, c *Cluster) error {
	_, err := c.Try(ctx, newUnstructuredObject(map[string]any{
		"apiVersion": "security.istio.io/v1", "kind": "AuthorizationPolicy", "metadata": map[string]any{"name": "empty", "namespace": istioNamespace},
		"spec": map[string]any{"rules": []any{map[string]any{"to": []any{map[string]any{"operation": map[string]any{}}}}}},
	}))
	switch {
	case err == nil:
		return errAccepted{}
	case strings.Contains(err.Error(), "denied the request"):
		return nil
	}
	return err
}

// gatewayDefinitions are the standard ones of the Gateway API that Istio is built with.
func gatewayDefinitions(t *testing.T) (out []*unstructured.Unstructured) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api")
	cmd.Dir = filepath.Join("..", "upstream", "istio")
	where, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	names, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(where)), "config/crd/standard/*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("looking for the definitions of the Gateway API: %v", err)
	}
	for _, name := range names {
		for _, obj := range gateObjects(t, name) {
			if obj.GetKind() == "CustomResourceDefinition" {
				out = append(out, obj)
			}
		}
	}
	return out
}

// setsAtOnce is the number of sets in one directory: a plan compares each namespace with all files.
const setsAtOnce = 20

// ambientFiles returns directories with the files to move.
func ambientFiles(t *testing.T) (dirs []string) {
	t.Helper()
	write := func(name string, data []byte) {
		if err := os.WriteFile(filepath.Join(dirs[len(dirs)-1], name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	archives, err := filepath.Glob("../../../pipeline/ambient/testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("looking for the cases: %v", err)
	}
	for _, name := range archives {
		dirs = append(dirs, t.TempDir())
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			if rest, ok := strings.CutPrefix(f.Name, "in/"); ok {
				write(rest, f.Data)
			}
		}
	}
	sets, err := filepath.Glob(filepath.Join(os.Getenv("PRERIG_AMBIENT_SETS"), "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range sets {
		if i%setsAtOnce == 0 {
			dirs = append(dirs, t.TempDir())
		}
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		write(filepath.Base(name), data)
	}
	t.Logf("%d sets", len(sets))
	return dirs
}

func objectsBelow(t *testing.T, dir string) (out []*unstructured.Unstructured) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		out = append(out, gateObjects(t, name)...)
	}
	return out
}
