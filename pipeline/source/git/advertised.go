// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"io"
	"net/http"

	"github.com/prerig/prerig/pipeline/source/tree"
)

// maxAdvertised bounds the list of references, which is held in memory: about a million of them.
const maxAdvertised = 64 << 20

// shortList bounds the answers to what is only read: in Git's protocol over https that is the list of references.
type shortList struct {
	next http.RoundTripper
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (s *shortList) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := s.next.RoundTrip(request)
	if err == nil && request.Method == http.MethodGet {
		response.Body = &limitedReader{r: response.Body, Closer: response.Body, left: s.max, max: s.max}
	}
	return response, err
}

// limitedReader fails where a list goes on for longer than it may.
type limitedReader struct {
	r io.Reader
	io.Closer
	left, max int64
}

func (c *limitedReader) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &tree.LimitError{What: "size of the list of references in bytes", Limit: c.max}
	}
	n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
