// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestVerifyShowsAll writes what a terminal would obey so that it is seen: it could take away the lines above.
func TestVerifyShowsAll(t *testing.T) {
	dir := t.TempDir()
	pod := func(more string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop" + more + "}\nspec: {containers: [{name: app, image: 'a:1'}]}\n"
	}
	must(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(pod("")), 0o600))
	code, out, text := command(t, pod(`, annotations: {a: "\e[1A\e[2K"}`), "verify", "--rendered", dir, "-")
	if code != 1 || strings.Contains(out, "\x1b") || !strings.Contains(out, `\x1b[1A\x1b[2K`) {
		t.Errorf("exit code %d:\n%q\n%s", code, out, text)
	}
}

// TestVerifyOfNothing fails where no pod was compared: it must not look as if all were as committed.
func TestVerifyOfNothing(t *testing.T) {
	dir := t.TempDir()
	saved := func(namespace, phase string) string {
		return "apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: " + namespace + "}\nspec: {containers: [{name: app, image: 'a:1'}]}\nstatus: {phase: " + phase + "}\n"
	}
	must(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(saved("shop", "")), 0o600))
	for name, c := range map[string]struct {
		pod  string
		args []string
		code int
	}{
		"a committed namespace":    {saved("shop", "Running"), nil, 0},
		"only pods that are over":  {saved("shop", "Succeeded"), nil, 0},
		"pods of another one":      {saved("other", "Running"), nil, 2},
		"a namespace without pods": {saved("shop", "Running"), []string{"-n", "shpo"}, 2},
		"nothing fails":            {saved("other", "Running"), []string{"--fail-on", "never", "-o", "json"}, 2},
	} {
		code, out, text := command(t, c.pod, append([]string{"verify", "--rendered", dir, "-"}, c.args...)...)
		if code != c.code || strings.Contains(text, "nothing was compared") != (c.code == 2) || c.code == 2 && out != "" {
			t.Errorf("%s: exit code %d, want %d:\n%s%s", name, code, c.code, out, text)
		}
	}
}
