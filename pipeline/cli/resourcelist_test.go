// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
)

const resourceListOfAnother = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
items: []
functionConfig:
  apiVersion: example.com/v1
  kind: SetReplicas
`

// TestResourceListInTheTreeDecidesNothing: a saved input of another function stops no command, and that of Prerig's own
// does not choose the sidecar of the other files.
func TestResourceListInTheTreeDecidesNothing(t *testing.T) {
	web := arrange(t)
	tiny := readFile(t, "tiny.yaml")
	own := "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\nfunctionConfig:\n  " +
		strings.ReplaceAll(strings.ReplaceAll(tiny, "1.31.0", "1.20.0"), "\n", "\n  ")
	for name, list := range map[string]string{"another function's": resourceListOfAnother, "its own": own} {
		for _, args := range []string{"explain .", "inject .", "inject -i .", "inject --check .", "inject --remove .", "lint .", "gate ."} {
			t.Chdir(t.TempDir())
			writeFiles(t, map[string]string{"fn/testdata/input.yaml": list, "prerig.yaml": tiny, "app/web.yaml": web})
			code, stdout, stderr := command(t, "", strings.Fields(args)...)
			if code == 2 || strings.Contains(stdout, "1.20.0") || strings.Contains(stderr, "1.20.0") {
				t.Errorf("%s ResourceList, %s: exit %d\n%s\n%s", name, args, code, stdout, stderr)
			}
			if want := "1 ResourceList (fn/testdata/input.yaml) was skipped"; !strings.Contains(stderr, want) {
				t.Errorf("%s ResourceList, %s: %q is missing in\n%s", name, args, want, stderr)
			}
			if injected := readFile(t, "app/web.yaml"); args == "inject -i ." && !strings.Contains(injected, "proxyv2:1.31.0") {
				t.Errorf("%s ResourceList: the policy of the repository was not followed:\n%s", name, injected)
			}
		}
	}
}

// TestResourceListAloneHasItsOwnPolicy: the input of a function that was named itself is worked on by its functionConfig.
func TestResourceListAloneHasItsOwnPolicy(t *testing.T) {
	web := arrange(t)
	writeFiles(t, map[string]string{"list.yaml": resourceListOfAnother, "web.yaml": web})
	for args, stdin := range map[string]string{"inject list.yaml": "", "inject": resourceListOfAnother} {
		if code, _, stderr := command(t, stdin, strings.Fields(args)...); code != 2 || !strings.Contains(stderr, "reading functionConfig in") {
			t.Errorf("%s: exit %d\n%s", args, code, stderr)
		}
	}
	if code, _, stderr := command(t, "", "inject", "list.yaml", "web.yaml"); code != 0 {
		t.Errorf("beside another file: exit %d\n%s", code, stderr)
	}
}
