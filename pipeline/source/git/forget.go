// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Forget removes commits from those that are kept. Objects that only they need are removed when the mirror is
// compacted; until then they may still be read. A commit that is fetched again is kept again.
func (m *Mirror) Forget(ctx context.Context, commits ...Hash) error {
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the mirror: %w", err)
	}
	defer unlock()
	all := m.shallowCommits()
	left := slices.DeleteFunc(slices.Clone(all), func(h Hash) bool { return slices.Contains(commits, h) })
	if len(left) == len(all) {
		return nil
	}
	return m.writeShallow(left)
}

// writeShallow writes the commits that are kept.
func (m *Mirror) writeShallow(commits []Hash) error {
	var text strings.Builder
	for _, hash := range commits {
		text.WriteString(hash.String() + "\n")
	}
	name := filepath.Join(m.dir, "shallow")
	if err := os.WriteFile(name+".new", []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("noting the fetched commits: %w", err)
	}
	return os.Rename(name+".new", name)
}
