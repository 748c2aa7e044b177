// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Permit returns an error for a URL that must not be requested, for example because the credentials of the request are
// not for it.
type Permit func(ctx context.Context, at *url.URL) error

type permitKey struct{}

// WithPermit returns a context whose requests follow redirects only to URLs that a permit allows, and that the reach of
// the context includes. It has an effect on transports of PerRequest.
func WithPermit(ctx context.Context, p Permit) context.Context {
	return context.WithValue(ctx, permitKey{}, p)
}

// NotPermittedError is returned for a redirect to a URL that must not be requested. A retry fails again.
type NotPermittedError struct{ Host string }

// Error omits the URL, which a server has chosen.
func (e *NotPermittedError) Error() string {
	return fmt.Sprintf("the server redirects to another URL of %s, which the credentials are not for; "+
		"give the new URL if that is right", e.Host)
}

// PerRequest returns a transport that checks each redirect where it is requested: a URL that a server has chosen is
// subject to the same rules as one that a pipeline names. The error is an *[OutOfReachError] or that of the permit,
// and no request is sent then.
func PerRequest(next http.RoundTripper) http.RoundTripper { return perRequest{next} }

type perRequest struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (p perRequest) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Response == nil { // it does not follow a redirect
		return p.next.RoundTrip(request)
	}
	ctx := request.Context()
	err := CheckURL(ctx, request.URL)
	if permit, ok := ctx.Value(permitKey{}).(Permit); ok && err == nil {
		err = permit(ctx, request.URL)
	}
	if err != nil {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, err
	}
	return p.next.RoundTrip(request)
}

// BoundAnswers returns a transport for libraries that read answers without a limit: reading more than a number of
// bytes of one is an error.
func BoundAnswers(next http.RoundTripper, most int64) http.RoundTripper {
	return boundAnswers{next, most}
}

type boundAnswers struct {
	next http.RoundTripper
	most int64
}

// RoundTrip implements http.RoundTripper.
func (b boundAnswers) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: b.most}
	return response, nil
}

// errTooLarge is about an answer that is larger than it may be.
var errTooLarge = errors.New("the answer is larger than such answers are")

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left+1)])
	b.left -= int64(n)
	if b.left < 0 {
		return 0, errTooLarge
	}
	return n, err
}
