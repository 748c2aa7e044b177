// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestImportWatchDiff compares what an import decides, and leaves alone what people add.
func TestImportWatchDiff(t *testing.T) {
	input, err := filepath.Abs(filepath.Join("..", "..", "examples", "import-from-cluster", "cluster.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	policy := filepath.Join(t.TempDir(), "prerig.yaml")
	if code, _, said := command(t, "", "import", input, "--to", policy); code != 0 {
		t.Fatal(said)
	}
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(string) string
		code   int
		shows  string
	}{
		"the same":       {func(s string) string { return s }, 0, ""},
		"lint of people": {func(s string) string { return s + "  lint: {disabled: true}\n  defaultNamespace: shop\n# why\n" }, 0, ""},
		"its own webhook switched off": {func(s string) string {
			return strings.Replace(s, "  istio:\n", "  istio:\n    runtimeWebhook: Disable\n", 1)
		}, 0, ""},
		"another namespace": {func(s string) string { return s + "  unknownNamespace: Inject\n" }, 1, "-  unknownNamespace: Inject"},
		"no policy":         {func(string) string { return "kind: ConfigMap\n" }, 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			other := filepath.Join(t.TempDir(), "prerig.yaml")
			if err := os.WriteFile(other, []byte(c.change(string(text))), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, said := command(t, "", "import", input, "-q", "--watch-diff", other)
			if code != c.code || !strings.Contains(out, c.shows) || code == 0 && out != "" {
				t.Errorf("exit code %d, want %d:\n%s%s", code, c.code, out, said)
			}
		})
	}
}
