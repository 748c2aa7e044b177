// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWrite(t *testing.T) {
	t.Setenv("PRERIG_STATE", "/home/somebody/state")
	t.Setenv("HOME", "/home/somebody")
	t.Setenv("XDG_CACHE_HOME", "/home/somebody/caches")
	dir := t.TempDir()
	if err := write(dir, "v1.2.3", "2026-11-23"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"man/man1/prerig.1":               `"PRERIG" "1" "Nov 2026" "Prerig v1.2.3" "Prerig Manual"`,
		"man/man1/prerig-inject.1":        "--check",
		"man/man1/prerig-daemon-status.1": "--state",
		"man/man1/prerig-render.1":        `"/home/you/.cache/prerig"`,
		"completions/prerig.bash":         "complete -o default -F __start_prerig prerig",
		"completions/_prerig":             "#compdef prerig",
		"completions/prerig.fish":         "complete -c prerig",
		"completions/prerig.ps1":          "Register-ArgumentCompleter -CommandName 'prerig'",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
		} else if !strings.Contains(string(text), want) || strings.Contains(string(text), "somebody") {
			t.Errorf("%s lacks %q, or has this machine's state directory:\n%.600s", name, want, text)
		}
	}
	if err := write(dir, "v1.2.3", "yesterday"); err == nil {
		t.Error("a date that is none was taken")
	}
	if err := write("", "v1.2.3", "2026-11-23"); err == nil {
		t.Error("wrote nowhere")
	}
}
