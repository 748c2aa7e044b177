// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/prerig/prerig/pipeline/source/dir"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func TestRead(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{"a/b": "b", ".git/config": "secret", "big": "0123456789"} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755), os.WriteFile(filepath.Join(root, name), []byte(content), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.Symlink("/etc/passwd", filepath.Join(root, "out")), os.Symlink("a", filepath.Join(root, "in"))); err != nil {
		t.Fatal(err)
	}
	files, err := dir.Read(root, tree.Limits{FileBytes: 5})
	if err != nil {
		t.Fatal(err)
	}
	view := tree.NewView(files, tree.Limits{})
	if content, err := view.Read("in/b"); err != nil || string(content) != "b" {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := view.Read("out"); !errors.Is(err, tree.ErrOutside) {
		t.Errorf("got %v", err)
	}
	if _, err := view.Read(".git/config"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	var limit *tree.LimitError
	if _, err := view.Read("big"); !errors.As(err, &limit) {
		t.Errorf("got %v", err)
	}
	if _, err := dir.Read(filepath.Join(root, "none"), tree.Limits{}); err == nil {
		t.Error("a missing directory was read")
	}
}
