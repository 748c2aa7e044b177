// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/base64"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// canary is what no capture may have.
const canary = "canary-value-of-a-secret"

// TestCaptureReplacesTheCluster captures a cluster twice, with the same bytes and without the value of a Secret, and then has
// Prerig do without the cluster: the imported policy and the admitted pods are the same.
func TestCaptureReplacesTheCluster(t *testing.T) {
	b := newAdmitBench(t, leastSets)
	b.installIstio(t)
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	for _, s := range b.sets {
		for _, o := range []map[string]any{
			object("v1", "Secret", s.namespace, "opaque", map[string]any{"stringData": map[string]any{"key": canary}}),
			object("v1", "Secret", s.namespace, "token", map[string]any{"type": "Opaque", "data": map[string]any{"token": encoded}}),
			object("v1", "ConfigMap", s.namespace, "unrelated", map[string]any{"data": map[string]any{"key": canary}}),
		} {
			o["metadata"].(map[string]any)["annotations"] = map[string]any{"kubectl.kubernetes.io/last-applied-configuration": canary}
			if _, err := b.Create(t.Context(), converted(t, o)); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := b.capture(t)
	namespaces := b.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, patch := range []string{
		`{"metadata":{"labels":{"touched":"yes"},"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"` + canary + `"}}}`, `{"metadata":{"labels":{"touched":null}}}`,
	} {
		if _, err := namespaces.Patch(t.Context(), b.sets[0].namespace, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	second := b.capture(t)
	files := filesBelow(t, first)
	if d := cmp.Diff(files, filesBelow(t, second)); d != "" {
		t.Errorf("the second capture differs:\n%s", d)
	}
	for name, text := range files {
		if strings.Contains(text, canary) || strings.Contains(text, encoded) {
			t.Errorf("%s has the value of a Secret", name)
		}
	}
	if out, err := exec.CommandContext(t.Context(), b.program, "capture", "--kubeconfig", b.Kubeconfig, "--to", first, "--check").CombinedOutput(); err != nil {
		t.Errorf("prerig capture --check: %v\n%s", err, out)
	}
	live, err := os.ReadFile(b.policy)
	if err != nil {
		t.Fatal(err)
	}
	offline, err := exec.CommandContext(t.Context(), b.program, "import", "-q", first).Output()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(live), string(offline)); d != "" {
		t.Errorf("the policies of the cluster (-) and of the capture (+) differ:\n%s", d)
	}
	b.policy = filepath.Join(t.TempDir(), "prerig.yaml")
	if err := os.WriteFile(b.policy, offline, 0o600); err != nil {
		t.Fatal(err)
	}
	pods := b.draw(2 * leastSets)
	got := b.admit(t, first, pods)
	equal := 0
	for i, pod := range pods {
		if compareAdmitted(t, b.client, pod, got[i]) == outcomeEqual {
			equal++
		}
	}
	t.Logf("%d files, %d of %d pods are stored as predicted", len(files), equal, len(pods))
	if equal < len(pods)/4 {
		t.Errorf("only %d pods were stored and compared", equal)
	}
}

// filesBelow returns the files of a directory by their names.
func filesBelow(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		out[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
