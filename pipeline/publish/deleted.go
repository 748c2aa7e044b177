// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// ErrDeleted is the cause of an error about a branch that was deleted and would be recreated with only part of its
// former content. Applying that with pruning would remove the rest from the cluster, whereas a missing branch has no
// effect.
var ErrDeleted = errors.New("the branch was deleted, and nothing is written while it would come back without what was on it: push its last commit again, " +
	"or start it again with prerig daemon reconcile --force for all of its pipelines")

// PublishersIn returns the pipelines that have published to the branch of an entry, according to their states in a
// store.
func PublishersIn(store *status.Store) func(ctx context.Context, to v1alpha1.Publish) ([]string, error) {
	return func(ctx context.Context, to v1alpha1.Publish) ([]string, error) {
		if err := store.Sync(ctx); err != nil {
			return nil, err
		}
		var out []string
		for _, pipeline := range store.Known() {
			published := store.Get(pipeline).Status.Published
			if slices.ContainsFunc(published, func(one v1alpha1.Published) bool { return one.Revision != "" && to.IsSameBranch(one.Target) }) {
				out = append(out, pipeline)
			}
		}
		return out, nil
	}
}

// checkDeleted rejects starting a branch if pipelines have published to it whose results it would not start with:
// it was deleted. One of the changes may request that it is started again.
func (b *Branch) checkDeleted(ctx context.Context, at branchHead, begins, asked []Change) error {
	anew := slices.ContainsFunc(asked, func(c Change) bool { return c.Anew })
	if !at.parent.IsZero() || b.Publishers == nil || anew {
		return nil
	}
	known, err := b.Publishers(ctx)
	if err != nil {
		return fmt.Errorf("looking who has published to %s: %w", b.Target(), err)
	}
	others := slices.DeleteFunc(slices.Clone(known), func(pipeline string) bool {
		return slices.ContainsFunc(begins, func(c Change) bool { return c.Pipeline == pipeline })
	})
	if len(others) == 0 {
		return nil
	}
	who := others[0]
	if len(others) > 1 {
		who += fmt.Sprintf(" and %d more", len(others)-1)
	}
	return fmt.Errorf("publishing to %s, where %s published too: %w", b.Target(), who, ErrDeleted)
}
