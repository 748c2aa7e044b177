// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"
)

// MaxBody is the largest delivery that is read, in bytes: what Flux's receivers accept too.
const MaxBody = 3 << 20

// Bounds of what senders cost before anything is known of them. Anybody can reach the port of webhooks.
const (
	// maxLarge and maxSmall are how many bytes all bodies take that are being read or verified, together: those of up to smallBody
	// bytes, as nearly all deliveries are, and the others, which so keep no small one waiting.
	maxLarge, maxSmall = 6 << 20, 2 << 20
	smallBody          = 64 << 10
	// firstPiece is what one body takes at first. Most deliveries fit.
	firstPiece = 32 << 10
	// bodyTimeout is how long one body may take to arrive.
	bodyTimeout = 10 * time.Second
	// roomTimeout is how long one waits for others to make room.
	roomTimeout = 5 * time.Second
)

var (
	errBodyTooLarge = fmt.Errorf("the body has more than %d bytes", MaxBody)
	errNoRoom       = errors.New("too much is being read at once")
)

// bodyReader reads bodies within a bound on all of them together. It counts what has arrived, not what was announced, so that
// nobody takes room away without sending.
type bodyReader struct{ small, large *semaphore.Weighted }

func newBodyReader() *bodyReader {
	return &bodyReader{small: semaphore.NewWeighted(maxSmall), large: semaphore.NewWeighted(maxLarge)}
}

// roomFor returns where a body is counted. One that does not say how long it is may be large.
func (b *bodyReader) roomFor(req *http.Request) *semaphore.Weighted {
	if 0 <= req.ContentLength && req.ContentLength <= smallBody {
		return b.small
	}
	return b.large
}

// read returns the body of a request and what gives its room back, which is never nil. The error is errBodyTooLarge, errNoRoom,
// or that of a sender who does not go on.
func (b *bodyReader) read(w http.ResponseWriter, req *http.Request) (body []byte, release func(), err error) {
	held, room := int64(0), b.roomFor(req)
	release = func() { room.Release(held) }
	if req.ContentLength > MaxBody {
		return nil, release, errBodyTooLarge
	}
	// Recorders of tests have no deadline.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	for size := int64(firstPiece); ; size *= 2 {
		if req.ContentLength >= 0 {
			size = min(size, req.ContentLength+1) // and what shows that it has ended
		}
		size = min(size, MaxBody+1)
		if err := acquireRoom(req.Context(), room, size); err != nil {
			return nil, release, err
		}
		grown := make([]byte, size)
		copied := copy(grown, body)
		room.Release(held)
		held = size
		n, err := io.ReadFull(req.Body, grown[copied:])
		body = grown[:copied+n]
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return body, release, shortBody(req, body, err)
		case err != nil:
			return nil, release, fmt.Errorf("reading the body: %w", err)
		case len(body) > MaxBody:
			return nil, release, errBodyTooLarge
		}
	}
}

// acquireRoom waits a while for room.
func acquireRoom(ctx context.Context, room *semaphore.Weighted, bytes int64) error {
	ctx, cancel := context.WithTimeout(ctx, roomTimeout)
	defer cancel()
	if room.Acquire(ctx, bytes) != nil {
		return errNoRoom
	}
	return nil
}

// shortBody returns an error where less has come than was announced: net/http reports the end of a connection in the same way as
// io.ReadFull reports the end of a body.
func shortBody(req *http.Request, body []byte, err error) error {
	if req.ContentLength > int64(len(body)) {
		return fmt.Errorf("reading the body: %d of %d bytes came: %w", len(body), req.ContentLength, err)
	}
	return nil
}
