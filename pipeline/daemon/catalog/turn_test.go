// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// TestWhoWaitsForALookGivesUpInTime follows a repository while another look at it waits for a server that does not answer.
func TestWhoWaitsForALookGivesUpInTime(t *testing.T) {
	r := gittest.New(t).Repository(t, "pipelines")
	r.Commit("first", map[string]string{"one.yaml": pipeline("one", good)})
	h, begun, answer := &heads{}, make(chan struct{}), make(chan struct{})
	var silent atomic.Bool
	from := place(t, r, h, "", t.TempDir())
	open := from.Open
	from.Open = func(ctx context.Context) (*git.Mirror, *git.Remote, error) {
		if silent.Load() {
			close(begun)
			<-answer
			silent.Store(false)
		}
		return open(ctx)
	}
	c, err := openRepository(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	silent.Store(true)
	looked := make(chan error, 1)
	go func() {
		_, err := c.Refresh(t.Context())
		looked <- err
	}()
	<-begun
	h.mu.Lock()
	h.revision++ // another process has found a newer commit
	h.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	gaveUp := make(chan error, 1)
	go func() { gaveUp <- c.Follow(ctx, "one") }()
	select {
	case err := <-gaveUp:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it gives up with %v", err)
		}
	case <-time.After(15 * time.Second):
		t.Error("it waits on")
	}
	close(answer)
	if err := <-looked; err != nil {
		t.Error(err)
	}
	if err := c.Follow(t.Context(), "one"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}
