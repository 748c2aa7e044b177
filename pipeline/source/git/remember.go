// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"slices"
)

// Remember keeps a commit that is in the mirror from being dropped for being old. It is for one that stays in use while
// others come and go; asked again and again it costs nothing.
func (m *Mirror) Remember(ctx context.Context, commit Hash) error {
	all := m.shallowCommits()
	if slices.Contains(all[max(0, len(all)-maxKnown/2):], commit) {
		return nil
	}
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return fmt.Errorf("remembering commit %s: %w", commit, err)
	}
	defer unlock()
	return m.rememberCommit(commit)
}
