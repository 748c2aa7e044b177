// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// HoldName is the name of the record that state was lost, as JSON with an id and the time. status.Store reads it.
const HoldName = "queue/hold"

// holdPipelines notes that state was lost.
func (q *State) holdPipelines(ctx context.Context) error {
	data, err := json.Marshal(map[string]any{"id": rand.Text(), "since": time.Now().UTC()})
	if err != nil {
		return fmt.Errorf("noting that state was lost: %w", err)
	}
	return q.Save(ctx, HoldName, data)
}

// forgetDamagedDescriptions removes the descriptions of streams that the server could not restore. The streams are
// recreated and recover the existing messages; but an existing description is never rewritten, and would be
// rejected at every start.
func (q *Queue) forgetDamagedDescriptions(ctx context.Context, dir string) error {
	descriptions, err := listStreamFiles(dir, "meta.inf")
	if err != nil {
		return err
	}
	sums, err := listStreamFiles(dir, "meta.sum")
	if err != nil {
		return err
	}
	restored := map[string]bool{}
	var info struct {
		Streams []string `json:"streams"`
		Total   int      `json:"total"`
	}
	// The queue has about ten streams, and the server returns up to a thousand names at once.
	answer, err := q.nc.RequestWithContext(ctx, "$JS.API.STREAM.NAMES", nil)
	if err == nil {
		err = json.Unmarshal(answer.Data, &info)
	}
	if err == nil && info.Total > len(info.Streams) {
		err = errors.New("there are too many")
	}
	if err != nil {
		return fmt.Errorf("listing the streams that were restored: %w", err)
	}
	for _, name := range info.Streams {
		restored[name] = true
	}
	for _, file := range append(descriptions, sums...) {
		if restored[filepath.Base(filepath.Dir(file))] {
			continue
		}
		if err := os.Remove(file); err != nil {
			return fmt.Errorf("removing a damaged description of a stream: %w", err)
		}
	}
	return nil
}
