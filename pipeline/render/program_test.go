// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A renderer of another build might render something else, so that only the one that was built with the program is started.
func TestRendererOfAnotherBuildIsNotStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	self, beside := filepath.Join(dir, "prerig"), filepath.Join(dir, Program)
	itself := []string{self, Command}
	if got := rendererCommand(self, "sha256:00"); !slices.Equal(got, itself) {
		t.Errorf("with no renderer beside it: got %v, want %v", got, itself)
	}
	if err := os.WriteFile(beside, []byte("one build"), 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := identify(beside)
	if err != nil {
		t.Fatal(err)
	}
	if got := rendererCommand(self, id); !slices.Equal(got, []string{beside}) {
		t.Errorf("with its renderer beside it: got %v, want %s", got, beside)
	}
	if got := rendererCommand(self, ""); !slices.Equal(got, itself) {
		t.Errorf("for a program that was built alone: got %v, want %v", got, itself)
	}
	if err := os.WriteFile(beside, []byte("another build"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := rendererCommand(self, id); !slices.Equal(got, itself) {
		t.Errorf("with another build's renderer beside it: got %v, want %v", got, itself)
	}
}
