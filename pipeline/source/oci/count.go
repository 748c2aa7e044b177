// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// decodedSize is the maximum ratio of the memory that an answer needs, with what it is decoded to, to its bytes: short
// annotations are the worst.
const decodedSize = 10

// Count returns a registry whose answers count as memory for the answers of foreign servers until they are released,
// which the caller does as soon as it needs none of them. What reads blobs counts them itself.
func (r *Registry) Count(ctx context.Context) (counted *Registry, release func()) {
	c := &counter{ctx: ctx, next: r.transport, lease: budget.Memory(ctx, r.Repository.RegistryStr())}
	return &Registry{Repository: r.Repository, Dir: r.Dir, auth: r.auth, transport: c}, c.release
}

// counter is a transport that counts answers.
type counter struct {
	ctx  context.Context
	next http.RoundTripper

	mu    sync.Mutex
	lease *budget.Lease
	size  int64
}

// RoundTrip implements http.RoundTripper.
func (c *counter) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	if err == nil && !strings.Contains(firstRequest(request).URL.Path, "/blobs/") {
		response.Body = &countedBody{response.Body, c}
	}
	return response, err
}

func (c *counter) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lease.Release()
}

// add counts bytes that have come. Small answers never wait.
func (c *counter) add(n int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size += int64(n)
	if c.size <= budget.FreeBytes {
		return nil
	}
	return c.lease.Grow(c.ctx, decodedSize*c.size)
}

type countedBody struct {
	io.ReadCloser
	of *counter
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if counting := b.of.add(n); counting != nil {
		return 0, counting
	}
	return n, err
}
