// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// put writes a file, and the directories around it.
func put(t *testing.T, text string, at ...string) string {
	t.Helper()
	name := filepath.Join(at...)
	must(t, os.MkdirAll(filepath.Dir(name), 0o755))
	must(t, os.WriteFile(name, []byte(text), 0o644))
	return name
}

// exists reports whether a file is there, and is no link.
func exists(at ...string) bool {
	info, err := os.Lstat(filepath.Join(at...))
	return err == nil && info.Mode().IsRegular()
}

// TestInjectWritesNothingThroughLinks injects into a directory that somebody else may have prepared.
func TestInjectWritesNothingThroughLinks(t *testing.T) {
	web := arrange(t)
	put(t, web, "k8s/a/web.yaml")
	outside := t.TempDir()
	theirs := put(t, "theirs", outside, "web.yaml")
	for at, to := range map[string]string{"file/a/web.yaml": theirs, "directory/a": outside} {
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		must(t, os.Symlink(to, at))
		into, _, _ := strings.Cut(at, "/")
		code, _, stderr := command(t, "", "inject", "-p", "tiny.yaml", "--to", into+"/", "k8s")
		if code != ExitError || !strings.Contains(stderr, "a link points to") {
			t.Errorf("%s: exit code %d\n%s", at, code, stderr)
		}
		if got := readFile(t, theirs); got != "theirs" {
			t.Fatalf("%s: the file outside was written:\n%s", at, got)
		}
	}
	// A link to another place in the directory is the user's own matter, and the directory itself may be one.
	must(t, os.MkdirAll("real/b", 0o755))
	must(t, os.Symlink("b", "real/a"))
	must(t, os.Symlink("real", "link"))
	ok(t, "", "inject", "-p", "tiny.yaml", "-o", "link", "k8s")
	if !exists("real/b/web.yaml") {
		t.Error("nothing was written through the user's own links")
	}
}

// TestInjectDoesNotReadItsResults runs twice over a directory that the results are in.
func TestInjectDoesNotReadItsResults(t *testing.T) {
	web := arrange(t)
	put(t, web, "repository/k8s/web.yaml")
	for range 2 {
		_, stderr := ok(t, "", "inject", "-p", "tiny.yaml", "--to", "repository/inj/", "repository")
		if !strings.Contains(stderr, "1 injected") {
			t.Errorf("it is not one workload:\n%s", stderr)
		}
	}
	if !exists("repository/inj/k8s/web.yaml") || exists("repository/inj/inj/k8s/web.yaml") {
		t.Error("the results were injected as well")
	}
	// Whoever names the directory itself means it.
	ok(t, "", "inject", "-p", "tiny.yaml", "--to", "repository/inj/", "repository/inj")
}
