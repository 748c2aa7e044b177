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
		_, release, err := b.readRequestBody(httptest.NewRecorder(), req)
		release()
		if !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("a sender that does not go on: %v", err)
		}
	})
	<-full
	others := b.large.Lease("others")
	if err := others.Grow(t.Context(), maxLarge/2); err != nil {
		t.Fatalf("one sender takes more than its share: %v", err)
	}
	for range 20 {
		body, release, err := b.readRequestBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 20_000))))
		if err != nil || len(body) != 20_000 {
			t.Errorf("a small delivery: %d bytes, %v", len(body), err)
		}
		release()
	}
	close(hold)
	held.Wait()
	again := b.large.Lease("192.0.2.1")
	if err := again.Grow(t.Context(), maxLarge/2); err != nil {
		t.Errorf("room is lost: %v", err)
	}
}

// TestBodiesThatDoNotComeTakeNoRoom: each has its headers and some bytes there, of all that it has announced.
func TestBodiesThatDoNotComeTakeNoRoom(t *testing.T) {
	for _, came := range []int{0, 1, freePiece - 1} {
		b := newBodyReader()
		full, hold := make(chan struct{}, 1), make(chan struct{})
		var held sync.WaitGroup
		for range 900 {
			held.Go(func() {
				req := httptest.NewRequest(http.MethodPost, "/", &endless{left: came, full: full, hold: hold})
				req.ContentLength = 60_000
				_, release, err := b.readRequestBody(httptest.NewRecorder(), req)
				release()
				if !errors.Is(err, io.ErrClosedPipe) {
					t.Errorf("a sender that does not go on: %v", err)
				}
			})
			<-full
		}
		// Also for those of the same sender, such as a proxy.
		for range 20 {
			body, release, err := b.readRequestBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 60_000))))
			if err != nil || len(body) != 60_000 {
				t.Errorf("after %d bytes of others: %d bytes, %v", came, len(body), err)
			}
			release()
		}
		close(hold)
		held.Wait()
	}
}

// TestOneSenderTakesItsShareOnly has one sender send nearly all of many bodies, and hold them. The others are read at
// once.
func TestOneSenderTakesItsShareOnly(t *testing.T) {
	b := newBodyReader()
	full, hold := make(chan struct{}, 1000), make(chan struct{})
	var held sync.WaitGroup
	for range maxSmall / smallBody / 2 { // all that one sender has
		held.Go(func() {
			req := httptest.NewRequest(http.MethodPost, "/", &endless{left: 60_000, full: full, hold: hold})
			req.ContentLength, req.RemoteAddr = 60_001, "198.51.100.1:1234"
			_, release, _ := b.readRequestBody(httptest.NewRecorder(), req)
			release()
		})
		<-full
	}
	for range 20 {
		body, release, err := b.readRequestBody(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 60_000))))
		if err != nil || len(body) != 60_000 {
			t.Errorf("%d bytes, %v", len(body), err)
		}
		release()
	}
	close(hold)
	held.Wait()
}
