// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// maxAnswer bounds the provider's answers in bytes. Sets of keys and ID tokens have some kilobytes.
const maxAnswer = 1 << 20

// errElsewhere is a redirect that is not followed. It omits the target, which the provider has chosen.
var errElsewhere = errors.New("the OpenID Connect provider redirects to another server")

// sameServer follows redirects within a server that repeat the request: others would send codes, the client's secret
// or tokens to a server that the provider's description does not name.
func sameServer(next *http.Request, before []*http.Request) error {
	first := before[0]
	same := next.Method == first.Method && next.URL.Scheme == first.URL.Scheme && next.URL.Host == first.URL.Host
	if !same || len(before) > 5 {
		return errElsewhere
	}
	return nil
}

// providerTransport sends what is asked of the provider: encrypted where its own URL is, whatever endpoints it
// describes. It leaves out the bodies of refusals, which the libraries quote whole.
type providerTransport struct {
	next   http.RoundTripper
	issuer string
}

// RoundTrip implements http.RoundTripper.
func (p *providerTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Scheme != "https" && strings.HasPrefix(p.issuer, "https://") {
		if request.Body != nil {
			request.Body.Close()
		}
		return nil, fmt.Errorf("the OpenID Connect provider names an address at %s that is not https", request.URL.Host)
	}
	response, err := p.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	// The token endpoint's error codes are read from its answer.
	if response.StatusCode >= http.StatusBadRequest && request.Method != http.MethodPost {
		response.Body.Close()
		response.Body, response.ContentLength = io.NopCloser(strings.NewReader("")), 0
	}
	return response, nil
}
