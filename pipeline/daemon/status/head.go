// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"fmt"
	"time"
)

// headName is where the head is stored.
const headName = "catalog/head"

// Head is the commit that all processes have the pipelines from, where these are in a Git repository.
type Head struct {
	// URL, Ref and Path are the repository, the reference that is followed and the directory.
	URL  string `json:"url"`
	Ref  string `json:"ref,omitempty"`
	Path string `json:"path,omitempty"`
	// Commit in full, Name the full name of the reference that it was found at.
	Commit string `json:"commit"`
	Name   string `json:"name,omitempty"`
	// At is when it was found at the reference.
	At time.Time `json:"at"`
}

// Heads keeps the head of one repository of pipelines.
type Heads struct {
	store *Store
	name  string // empty for the only repository
}

// Heads returns the store of the head of the repository with a name, which is empty if it is the only one.
func (s *Store) Heads(name string) Heads { return Heads{s, name} }

func (h Heads) key() string {
	if h.name == "" {
		return headName
	}
	return headName + "/" + h.name
}

// Head returns the commit of the pipelines and the revision for SaveHead, which increases with each save. If none
// is stored, the revision is 0, and the head is the one stored when only one repository was supported.
func (h Heads) Head(ctx context.Context) (Head, uint64, error) {
	data, revision, ok, err := h.store.q.Load(ctx, h.key())
	if err == nil && !ok && h.name != "" {
		data, _, ok, err = h.store.q.Load(ctx, headName)
		revision = 0
	}
	if err != nil || !ok {
		return Head{}, 0, err
	}
	head, err := decodeJSON[Head](data)
	if err != nil {
		return Head{}, revision, nil // of another version: it is looked up again
	}
	return *head, revision, nil
}

// SaveHead stores the commit unless another process has since the revision was loaded, and returns the new
// revision.
func (h Heads) SaveHead(ctx context.Context, head Head, revision uint64) (uint64, error) {
	data, err := encodeJSON(head)
	if err != nil {
		return 0, fmt.Errorf("saving the commit of the pipelines: %w", err)
	}
	return h.store.q.SaveAfter(ctx, h.key(), data, revision)
}
