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
	// At is when it was found there.
	At time.Time `json:"at"`
}

// Head returns the commit of the pipelines and the revision for SaveHead, which is higher for a later one. Without any the
// revision is 0.
func (s *Store) Head(ctx context.Context) (Head, uint64, error) {
	data, revision, ok, err := s.q.Load(ctx, headName)
	if err != nil || !ok {
		return Head{}, 0, err
	}
	head, err := decodeJSON[Head](data)
	if err != nil {
		return Head{}, revision, nil // of another version: it is looked up again
	}
	return *head, revision, nil
}

// SaveHead stores the commit if nobody else has since the revision was loaded, and gives the new revision.
func (s *Store) SaveHead(ctx context.Context, head Head, revision uint64) (uint64, error) {
	data, err := encodeJSON(head)
	if err != nil {
		return 0, fmt.Errorf("saving the commit of the pipelines: %w", err)
	}
	return s.q.SaveAfter(ctx, headName, data, revision)
}
