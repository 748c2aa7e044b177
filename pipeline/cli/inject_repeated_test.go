// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

// TestLastOfRepeatedKeysInStreamsCounts: the output of helm template is read as Helm and Argo CD read it. A file with such
// a mistake is refused.
func TestLastOfRepeatedKeysInStreamsCounts(t *testing.T) {
	web := strings.Replace(arrange(t), "  template:\n", "  replicas: 1\n  replicas: 2\n  template:\n", 1)
	const want = "warning: stdin:11: Deployment shop/web spec.replicas: the key is there more than once in the same mapping; the last one counts"
	for _, args := range []string{"inject -p tiny.yaml", "explain -p tiny.yaml", "lint -p tiny.yaml", "lint --as-is", "gate -p tiny.yaml", "gate --as-is"} {
		code, stdout, stderr := command(t, web, strings.Fields(args)...)
		if code == ExitError || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit %d\n%s\n%s", args, code, stdout, stderr)
		}
		if strings.HasPrefix(args, "inject") && (strings.Contains(stdout, "replicas: 1") || !strings.Contains(stdout, "replicas: 2")) {
			t.Errorf("%s:\n%s", args, stdout)
		}
	}
	put(t, web, "twice.yaml")
	if code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "twice.yaml"); code != ExitError || !strings.Contains(stderr, "twice in the same mapping") {
		t.Errorf("a file: exit %d\n%s", code, stderr)
	}
}
