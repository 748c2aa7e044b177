// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"errors"
	"io"
	"net/http"
	"syscall"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

// retryTransport repeats a request if the server, or a proxy in front of it, reports that it did not accept it.
// Reading is safe to repeat, and so is pushing: a push that succeeded after all finds its branch moved, and Send
// checks where to.
type retryTransport struct {
	next http.RoundTripper
	wait time.Duration
}

// tries is how often a request is sent at most, and longestWait the longest time between two of them.
const (
	tries       = 5
	longestWait = 10 * time.Second
)

// RoundTrip implements http.RoundTripper.
func (r *retryTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	for try := 1; ; try++ {
		response, err := r.next.RoundTrip(request)
		if try == tries || !shouldRetry(response, err) || request.Body != nil && request.GetBody == nil {
			return response, err
		}
		if response != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
			response.Body.Close()
		}
		if err := backoff.Wait(request.Context(), backoff.Delay(r.wait, longestWait, try)); err != nil {
			return nil, err
		}
		if request.GetBody != nil {
			body, err := request.GetBody()
			if err != nil {
				return nil, err
			}
			request = request.Clone(request.Context())
			request.Body = body
		}
	}
}

func shouldRetry(response *http.Response, err error) bool {
	if err != nil {
		return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
	}
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}
