// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// endless is a body of which all but the end has come, as long as hold is open.
type endless struct {
	left int
	full chan<- struct{} // is told when all that comes at once has been read
	hold <-chan struct{}
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		e.full <- struct{}{}
		<-e.hold
		return 0, io.ErrClosedPipe
	}
	n := min(e.left, len(p))
	e.left -= n
	return n, nil
}

// TestLargeBodiesKeepNoSmallOneWaiting has large bodies take all the room that there is for these, and hold it. Deliveries of the
// usual size are read meanwhile.
func TestLargeBodiesKeepNoSmallOneWaiting(t *testing.T) {
	b := newBodyReader()
	full, hold := make(chan struct{}, 1), make(chan struct{})
	var held sync.WaitGroup
	const size = MaxBody - 1
	held.Go(func() {
		req := httptest.NewRequest(http.MethodPost, "/", &endless{left: size, full: full, hold: hold})
		req.ContentLength = size + 1
		_, release, err := b.read(httptest.NewRecorder(), req)
		release()
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a sender that does not go on: %v", err)
		}
	})
	<-full
	rest := int64(maxLarge - MaxBody - 1)
	if !b.large.TryAcquire(rest) {
		t.Fatal("one sender takes more than its body")
	}
	for range 20 {
		body, release, err := b.read(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 20_000))))
		if err != nil || len(body) != 20_000 {
			t.Errorf("a small delivery: %d bytes, %v", len(body), err)
		}
		release()
	}
	if b.large.TryAcquire(1) {
		t.Error("there is room for more large ones")
	}
	close(hold)
	held.Wait()
	b.large.Release(rest)
	if !b.large.TryAcquire(maxLarge) || !b.small.TryAcquire(maxSmall) {
		t.Error("room is lost")
	}
}
