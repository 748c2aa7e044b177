// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"runtime/debug"
	"sync"
)

const (
	// watchBytes is how many bytes one event of a watch has at most. The largest object that etcd stores has 1.5 MB.
	watchBytes = 16 << 20
	// sumBytes bounds the answers of one Meter in a process without a limit of its memory, such as a command's.
	sumBytes = 4 << 30
)

// ErrTooMuch is the cause of the error about answers that are larger, together or alone, than they may be.
var ErrTooMuch = errors.New("the answers are larger than such answers are")

var errElsewhere = errors.New("the API server redirects to another server")

// Meter bounds the sum of the answers to related requests, and holds memory for them in the shared budget. It is safe for
// concurrent use.
type Meter struct {
	most int64

	mu    sync.Mutex
	sum   int64
	lease *Lease
}

type meterKey struct{}

// NewMeter returns a meter for related requests to a server. The caller calls Release after it no longer needs the answers.
func NewMeter(ctx context.Context, server string) *Meter {
	m := &Meter{most: sumBytes, lease: Memory(ctx, server)}
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		m.most = shared().memory.share
	}
	return m
}

// Of returns a context for one of the requests.
func (m *Meter) Of(ctx context.Context) context.Context { return context.WithValue(ctx, meterKey{}, m) }

// Release returns what the meter holds of the shared budget.
func (m *Meter) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lease.Release()
}

// add counts bytes that have arrived.
func (m *Meter) add(ctx context.Context, count int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sum += count; m.sum > m.most {
		return fmt.Errorf("%w: more than %d bytes", ErrTooMuch, m.most)
	}
	if m.sum <= FreeBytes || m.sum <= m.lease.held {
		return nil
	}
	return m.lease.Grow(ctx, 2*m.sum)
}

// APIServer returns a transport for clients of a Kubernetes API server, which read answers whole. It bounds them, the elements of their
// lists and each event of a watch. Answers count in the Meter of the request's context, or in one of their own until they are closed.
// Redirects to other servers are not followed: the client would add its token to each request.
func APIServer(next http.RoundTripper) http.RoundTripper { return apiServer{next} }

type apiServer struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (a apiServer) RoundTrip(request *http.Request) (*http.Response, error) {
	if from := request.Response; from != nil && (from.Request == nil || from.Request.URL.Host != request.URL.Host || from.Request.URL.Scheme != request.URL.Scheme) {
		return nil, errElsewhere
	}
	response, err := a.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	ctx := request.Context()
	body := &answerBody{ReadCloser: response.Body, ctx: ctx, elements: Elements{Most: leastElements}}
	if isWatch := request.URL.Query().Get("watch"); isWatch == "true" || isWatch == "1" {
		body.watches = true
	} else if meter, ok := ctx.Value(meterKey{}).(*Meter); ok {
		body.meter = meter
	} else {
		body.meter = NewMeter(ctx, request.URL.Host)
		body.release = body.meter.Release
	}
	response.Body = body
	return response, nil
}

// answerBody is an answer as it arrives.
type answerBody struct {
	io.ReadCloser
	ctx      context.Context
	read     int64 // bytes of the answer, or of the event that is being read
	watches  bool
	elements Elements
	meter    *Meter // nil for a watch
	release  func() // nil if the meter is another's
	failed   error
}

// Read implements io.Reader.
func (b *answerBody) Read(p []byte) (int, error) {
	if b.failed != nil {
		return 0, b.failed
	}
	n, err := b.ReadCloser.Read(p)
	if b.failed = b.count(p[:n]); b.failed != nil {
		return 0, b.failed
	}
	return n, err
}

// count counts what has arrived. Each line of a watch is an event.
func (b *answerBody) count(text []byte) error {
	if b.watches {
		return b.countEvents(text)
	}
	if err := b.countPart(text); err != nil {
		return err
	}
	return b.meter.add(b.ctx, int64(len(text)))
}

func (b *answerBody) countEvents(text []byte) error {
	for {
		line, rest, ended := bytes.Cut(text, []byte("\n"))
		if b.read+int64(len(line)) > watchBytes {
			return fmt.Errorf("%w: an event has more than %d bytes", ErrTooMuch, watchBytes)
		}
		if err := b.countPart(line); err != nil || !ended {
			return err
		}
		b.read, b.elements, text = 0, Elements{Most: leastElements}, rest
	}
}

func (b *answerBody) countPart(text []byte) error {
	b.read += int64(len(text))
	b.elements.Most = leastElements + int(b.read/bytesOfElement)
	return b.elements.Add(text)
}

// Close implements io.Closer.
func (b *answerBody) Close() error {
	if b.release != nil {
		b.release()
		b.release = nil
	}
	return b.ReadCloser.Close()
}
