// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportKeepsWhatItLeavesToPeople imports again over a policy that somebody has changed by hand.
func TestImportKeepsWhatItLeavesToPeople(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	policy := filepath.Join(t.TempDir(), "prerig.yaml")
	ok(t, "", "import", input, "-o", policy)
	first := readFile(t, policy)
	changed := strings.Replace(first, "  istio:\n", "  istio:\n    runtimeWebhook: Disable\n    admission: Raw\n", 1)
	changed = strings.Replace(changed, "  annotations:\n", "  annotations:\n    example.com/owner: mesh\n", 1)
	changed += "  lint: {disabled: true}\n  workloads:\n  - {apiVersion: example.com/v1, kind: Fleet, podTemplate: spec.template}\n  unknownNamespace: Inject\n"
	must(t, os.WriteFile(policy, []byte(changed), 0o600))
	_, stderr := ok(t, "", "import", input, "-o", policy)
	if want := "info: kept of the policy that was in " + policy + ": metadata.annotations[example.com/owner], spec.istio.admission, spec.istio.runtimeWebhook, spec.lint, spec.workloads\n"; !strings.Contains(stderr, want) {
		t.Errorf("it is not told, want %q:\n%s", want, stderr)
	}
	got := readFile(t, policy)
	for _, kept := range []string{"runtimeWebhook: Disable", "admission: Raw", "example.com/owner: mesh", "disabled: true", "kind: Fleet"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is gone", kept)
		}
	}
	if strings.Contains(got, "unknownNamespace: Inject") {
		t.Error("what an import decides was kept")
	}
	ok(t, "", "import", input, "-q", "--watch-diff", policy)
	// A second time nothing changes, and a policy that nobody has touched comes out as it was.
	ok(t, "", "import", input, "-o", policy)
	if again := readFile(t, policy); again != got {
		t.Errorf("a second time:\n%s", again)
	}
	must(t, os.WriteFile(policy, []byte(first), 0o600))
	if _, stderr := ok(t, "", "import", input, "-o", policy); readFile(t, policy) != first || strings.Contains(stderr, "kept") {
		t.Errorf("of a policy that nobody has touched something was kept:\n%s", stderr)
	}
}

// TestImportOverPoliciesOfAllKinds replaces policies with parts that say nothing, one that is completed from a cluster, and no file at all.
func TestImportOverPoliciesOfAllKinds(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	policy := filepath.Join(t.TempDir(), "prerig.yaml")
	ok(t, "", "import", input, "-o", policy)
	want := readFile(t, policy)
	for _, spec := range []string{"{istio: {}, workloads: [], lint: {suppress: [], rules: {}}, images: {pins: {}}}", "{istio: {}, from: Cluster}"} {
		must(t, os.WriteFile(policy, []byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: istio}\nspec: "+spec+"\n"), 0o600))
		if _, stderr := ok(t, "", "import", input, "-o", policy); readFile(t, policy) != want || strings.Contains(stderr, "kept") {
			t.Errorf("%s: %s\n%s", spec, stderr, readFile(t, policy))
		}
	}
}

// TestImportWarnsOfWhatItCannotKeep replaces a policy that cannot be read, which is a way to mend it.
func TestImportWarnsOfWhatItCannotKeep(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	policy := filepath.Join(t.TempDir(), "prerig.yaml")
	must(t, os.WriteFile(policy, []byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {lints: {}}\n"), 0o600))
	if _, stderr := ok(t, "", "import", input, "-q", "-o", policy); !strings.Contains(stderr, "warning: nothing is kept of what was set by hand in "+policy) {
		t.Errorf("it is not told:\n%s", stderr)
	}
	ok(t, "", "import", input, "-q", "--watch-diff", policy)
}
