// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// MaxBody is the largest delivery that is read, in bytes: what Flux's receivers accept too.
const MaxBody = 3 << 20

// Bounds of what senders cost before anything is known of them. Anybody can reach the port of webhooks.
const (
	// maxLarge and maxSmall are how many bytes all bodies take that are being read or verified, together: those of up
	// to smallBody bytes, as nearly all deliveries are, and the others, which so keep no small one waiting. One sender
	// has half of each.
	maxLarge, maxSmall = 8 << 20, 4 << 20
	smallBody          = 64 << 10
	// freePiece is the part of each body that is not counted, so that senders of empty bodies use no room.
	freePiece = 1 << 10
	// bodyTimeout is how long one body may take to arrive, and idleTimeout how long it may pause.
	bodyTimeout, idleTimeout = 10 * time.Second, 3 * time.Second
	// roomTimeout is how long one waits for others to make room.
	roomTimeout = 5 * time.Second
)

var (
	errBodyTooLarge = fmt.Errorf("the body has more than %d bytes", MaxBody)
	errNoRoom       = errors.New("too much is being read at once")
)

// bodyReader reads bodies within a limit on all of them together, of which each sender has a share. It counts the
// bytes that arrived, not those announced, so that no sender reserves room without sending.
type bodyReader struct{ small, large *budget.Budget }

func newBodyReader() *bodyReader {
	return &bodyReader{
		small: budget.New(maxSmall, maxSmall/2, roomTimeout),
		large: budget.New(maxLarge, maxLarge/2, roomTimeout),
	}
}

// reserveBodyBudget returns the budget of a body. A body of unknown length may be large.
func (b *bodyReader) reserveBodyBudget(req *http.Request) *budget.Lease {
	sender, _, err := net.SplitHostPort(req.RemoteAddr)
	if err != nil {
		sender = req.RemoteAddr
	}
	if 0 <= req.ContentLength && req.ContentLength <= smallBody {
		return b.small.Lease(sender)
	}
	return b.large.Lease(sender)
}

// readRequestBody returns the body of a request and a function that releases its room, which is never nil. The error is
// errBodyTooLarge, errNoRoom, or that of a sender that stopped sending.
func (b *bodyReader) readRequestBody(w http.ResponseWriter, req *http.Request) (body []byte, release func(), err error) {
	room := b.reserveBodyBudget(req)
	release = room.Release
	if req.ContentLength > MaxBody {
		return nil, release, errBodyTooLarge
	}
	from := &deadlineBody{body: req.Body, to: http.NewResponseController(w), until: time.Now().Add(bodyTimeout)}
	for size := int64(freePiece); ; size *= 2 {
		if req.ContentLength >= 0 {
			size = min(size, req.ContentLength+1) // and what shows that it has ended
		}
		size = min(size, MaxBody+1)
		if size > freePiece {
			if err := room.Grow(req.Context(), size); err != nil {
				return nil, release, errNoRoom
			}
		}
		grown := make([]byte, size)
		copied := copy(grown, body)
		n, err := io.ReadFull(from, grown[copied:])
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

// deadlineBody is a body that fails if it stalls for a while or does not arrive in time.
type deadlineBody struct {
	body  io.Reader
	to    *http.ResponseController
	until time.Time
}

// Read implements io.Reader.
func (d *deadlineBody) Read(p []byte) (int, error) {
	next := time.Now().Add(idleTimeout)
	if next.After(d.until) {
		next = d.until
	}
	_ = d.to.SetReadDeadline(next) // recorders of tests have none
	return d.body.Read(p)
}

// shortBody returns an error where less has come than was announced: net/http reports the end of a connection in the same way as
// io.ReadFull reports the end of a body.
func shortBody(req *http.Request, body []byte, err error) error {
	if req.ContentLength > int64(len(body)) {
		return fmt.Errorf("reading the body: %d of %d bytes came: %w", len(body), req.ContentLength, err)
	}
	return nil
}
