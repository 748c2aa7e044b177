// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"io"
	"net/http"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
)

// boundLists refuses answers with lists of so many elements that these take a hundred times the bytes of the answer. Those of real
// objects have more than 32 bytes on average.
type boundLists struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b boundLists) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundBody{ReadCloser: response.Body, elements: budget.Elements{Most: 10_000}}
	return response, nil
}

type boundBody struct {
	io.ReadCloser
	elements budget.Elements
	read     int
}

// Read implements io.Reader.
func (b *boundBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += n
	b.elements.Most = max(b.elements.Most, 10_000+b.read/32)
	if over := b.elements.Add(p[:n]); over != nil {
		return 0, over
	}
	return n, err
}
