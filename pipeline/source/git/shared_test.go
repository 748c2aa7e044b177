// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// gitIn runs git in a directory.
func gitIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@example.com", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// upstreamRepository is a repository with one commit, packed, that serves partial clones.
func upstreamRepository(t *testing.T) (dir, above string) {
	t.Helper()
	above = t.TempDir()
	dir = filepath.Join(above, "upstream")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	gitIn(t, dir, "add", "-A")
	gitIn(t, dir, "commit", "--quiet", "-m", "first")
	gitIn(t, dir, "repack", "-q", "-a", "-d")
	gitIn(t, dir, "config", "uploadpack.allowFilter", "true")
	gitIn(t, dir, "config", "uploadpack.allowAnySHA1InWant", "true")
	return dir, above
}

// TestClonesThatShareObjects reads clones by git clone --shared, one of such a clone, and a work tree of one.
func TestClonesThatShareObjects(t *testing.T) {
	upstream, above := upstreamRepository(t)
	gitIn(t, above, "clone", "--quiet", "--shared", upstream, "one")
	gitIn(t, above, "clone", "--quiet", "--reference", "one", "file://"+upstream, "two")
	gitIn(t, filepath.Join(above, "one"), "worktree", "add", "--quiet", filepath.Join(above, "three"), "-b", "other")
	for _, name := range []string{"one", "two", "three"} {
		local, err := git.OpenLocal(filepath.Join(above, name))
		if err != nil {
			t.Fatal(name, err)
		}
		_, files, err := local.CommitInFull("HEAD")
		if err != nil {
			t.Fatal(name, err)
		}
		if content, err := tree.NewView(files, tree.Limits{}).Read("a.yaml"); err != nil || string(content) != "a: b\n" {
			t.Errorf("%s: %q, %v", name, content, err)
		}
	}
	if err := os.RemoveAll(upstream); err != nil {
		t.Fatal(err)
	}
	if _, err := git.OpenLocal(filepath.Join(above, "one")); err == nil || !strings.Contains(err.Error(), "clone again without --shared") {
		t.Error(err)
	}
}

// TestPartialClone names the files that a partial clone lacks and how to fetch them, and reads it when they are there.
func TestPartialClone(t *testing.T) {
	upstream, above := upstreamRepository(t)
	gitIn(t, above, "clone", "--quiet", "--filter=blob:none", "--no-checkout", "file://"+upstream, "partial")
	at := filepath.Join(above, "partial")
	local, err := git.OpenLocal(at)
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = local.CommitInFull("HEAD")
	const fix = "git fetch --refetch --no-filter origin"
	if err == nil || !strings.Contains(err.Error(), "lacks a.yaml of HEAD") || err != nil && !strings.Contains(err.Error(), fix) {
		t.Fatal(err)
	}
	gitIn(t, at, strings.Fields(fix)[1:]...)
	if local, err = git.OpenLocal(at); err != nil {
		t.Fatal(err)
	}
	if _, _, err := local.CommitInFull("HEAD"); err != nil {
		t.Error(err)
	}
}
