// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"path/filepath"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// In a linked work tree objects are not below its own directory, also when the packs are listed again.
func TestALinkedWorkTreeIsReadAgain(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "1"})
	repository.InWork("gc", "-q")
	linked := filepath.Join(t.TempDir(), "linked")
	repository.InWork("worktree", "add", "-q", linked)
	local, err := OpenLocal(linked)
	if err != nil {
		t.Fatal(err)
	}
	if local.mirror.Has(plumbing.NewHash("0123456789012345678901234567890123456789")) {
		t.Error("it has what does not exist")
	}
	local.mirror.reopenStorage() // as after an error of the system
	_, files, err := local.Commit("HEAD")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(files, tree.Limits{}).Read("a"); err != nil || string(got) != "1" {
		t.Errorf("%q, %v", got, err)
	}
}
