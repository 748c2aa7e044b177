// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/source/git"
)

// TargetKinds returns the kinds of targets that can be opened.
func TargetKinds() []string { return slices.Sorted(maps.Keys(targetKinds)) }

// UnownedAt returns the files that a commit changed and that no pipeline owns, for which no rollback of it is allowed.
func UnownedAt(b *Branch, commit, before git.Hash) ([]string, error) {
	at, err := b.Mirror.Commit(commit)
	if err != nil {
		return nil, err
	}
	parent, err := b.Mirror.Commit(before)
	if err != nil {
		return nil, err
	}
	p, err := computePublication(b.Mirror.NewDraft(), at, parent)
	if err != nil {
		return nil, err
	}
	return p.unowned, nil
}
