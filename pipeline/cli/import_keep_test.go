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
	ok(t, "", "import", input, "--to", policy)
	first := readFile(t, policy)
	changed := strings.Replace(first, "  istio:\n", "  istio:\n    runtimeWebhook: Disable\n    admission: Raw\n", 1)
	changed = strings.Replace(changed, "  annotations:\n", "  annotations:\n    example.com/owner: mesh\n", 1)
	changed += "  lint: {disabled: true}\n  workloads:\n  - {apiVersion: example.com/v1, kind: Fleet, podTemplate: spec.template}\n  unknownNamespace: Inject\n"
	must(t, os.WriteFile(policy, []byte(changed), 0o600))
	_, stderr := ok(t, "", "import", input, "--to", policy)
	if want := "info: kept from the previous policy in " + policy + ": metadata.annotations[example.com/owner], spec.istio.admission, spec.istio.runtimeWebhook, spec.lint, spec.workloads\n"; !strings.Contains(stderr, want) {
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
	ok(t, "", "import", input, "--to", policy)
	if again := readFile(t, policy); again != got {
		t.Errorf("a second time:\n%s", again)
	}
	must(t, os.WriteFile(policy, []byte(first), 0o600))
	if _, stderr := ok(t, "", "import", input, "--to", policy); readFile(t, policy) != first || strings.Contains(stderr, "kept") {
		t.Errorf("of a policy that nobody has touched something was kept:\n%s", stderr)
	}
}

// TestImportOverPoliciesOfAllKinds replaces policies with parts that say nothing, one that is completed from a cluster, and no file at all.
func TestImportOverPoliciesOfAllKinds(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	policy := filepath.Join(t.TempDir(), "prerig.yaml")
	ok(t, "", "import", input, "--to", policy)
	want := readFile(t, policy)
	for _, spec := range []string{"{istio: {}, workloads: [], lint: {suppress: [], rules: {}}, images: {pins: {}}}", "{istio: {}, from: Cluster}"} {
		must(t, os.WriteFile(policy, []byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: istio}\nspec: "+spec+"\n"), 0o600))
		if _, stderr := ok(t, "", "import", input, "--to", policy); readFile(t, policy) != want || strings.Contains(stderr, "kept") {
			t.Errorf("%s: %s\n%s", spec, stderr, readFile(t, policy))
		}
	}
}

// TestImportReplacesNothingThatWouldBeLost tries files that are no policy, that hold other things beside it, and policies that cannot be
// read, of which nothing could be kept.
func TestImportReplacesNothingThatWouldBeLost(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	must(t, err)
	t.Chdir(t.TempDir())
	const policy = "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: "
	web := deployment("web", "shop")
	for name, tc := range map[string]struct{ text, want string }{
		"a Deployment":                {web, "error: writing out.yaml: the file exists and is not an InjectionPolicy; remove it, or choose another file with --to\n"},
		"comments":                    {"# what we know of the mesh\n", "is not an InjectionPolicy"},
		"comments and markers":        {"---\n# what we know of the mesh\n---\n", "is not an InjectionPolicy"},
		"a List":                      {"apiVersion: v1\nkind: List\nitems: []\n", "is not an InjectionPolicy"},
		"no YAML":                     {"a: [\n", "error: writing out.yaml: the manual settings in the existing file cannot be kept; fix it, remove it, or choose another file with --to: decoding out.yaml"},
		"no text":                     {"\xff\xfe\x00", "cannot be kept"},
		"a policy with a slip":        {policy + "{lints: {}}\n", "cannot be kept"},
		"a policy with a key twice":   {policy + "{istio: {}, istio: {}}\n", "cannot be kept"},
		"two policies":                {policy + "{istio: {}}\n---\n" + policy + "{istio: {}}\n", "it contains more than one policy"},
		"a policy and something else": {policy + "{istio: {}}\n---\n" + web, "the existing file has 1 document besides the policy, which would be lost"},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, os.WriteFile("out.yaml", []byte(tc.text), 0o600))
			code, _, stderr := command(t, "", "import", input, "-q", "--to", "out.yaml")
			if code != ExitError || !strings.Contains(stderr, tc.want) {
				t.Errorf("exit code %d, want %q:\n%s", code, tc.want, stderr)
			}
			if got := readFile(t, "out.yaml"); got != tc.text {
				t.Errorf("it was replaced:\n%s", got)
			}
		})
	}
	own := readFile(t, input)
	must(t, os.WriteFile("cluster.yaml", []byte(own), 0o600))
	if code, _, _ := command(t, "", "import", "--to", "cluster.yaml", "cluster.yaml"); code != ExitError || readFile(t, "cluster.yaml") != own {
		t.Errorf("exit code %d, or it has replaced its own input", code)
	}
	for _, blank := range []string{"", "\n  \n", "---", "---\n\n--- \r\n...\n", "\ufeff---\n"} {
		must(t, os.WriteFile("out.yaml", []byte(blank), 0o600))
		ok(t, "", "import", input, "-q", "--to", "out.yaml")
		ok(t, "", "import", input, "-q", "--watch-diff", "out.yaml")
	}
}
