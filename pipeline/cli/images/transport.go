// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

// maxBody is the size of the largest answer that is read: manifests may have 4 MiB by the distribution specification,
// and an image's configuration is smaller than that.
const maxBody = 8 << 20

// retryTransport is an http.RoundTripper that reads the whole answer, within a time, and tries again when that fails
// for a reason that may pass. It is not for layers.
type retryTransport struct {
	inner   http.RoundTripper
	timeout time.Duration
	retry   Retry
}

// passing are the statuses that may be different the next time.
var passing = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
	http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// RoundTrip returns the first answer that is not a passing failure, or the last one.
func (t *retryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx := req.Context()
	for attempt := 1; ; attempt++ {
		resp, err := t.roundTripOnce(req)
		last := attempt >= t.retry.Attempts || !isRepeatable(req)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case err != nil && (last || isPermanent(err)):
			if attempt > 1 {
				err = fmt.Errorf("%w (tried %d times)", err, attempt)
			}
			return nil, err
		case err == nil && (last || !slices.Contains(passing, resp.StatusCode)):
			return resp, nil
		}
		wait := backoff.Delay(t.retry.First, t.retry.Max, attempt)
		if resp != nil {
			if asked := backoff.RetryAfter(resp.Header); asked > 0 {
				wait = min(asked, t.retry.Max)
			}
		}
		if err := backoff.Wait(ctx, wait); err != nil {
			return nil, err
		}
	}
}

// roundTripOnce makes one request and reads its answer to the end within the time.
func (t *retryTransport) roundTripOnce(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeoutCause(req.Context(), t.timeout,
		fmt.Errorf("%s did not respond within %s", req.URL.Host, t.timeout))
	defer cancel()
	attempt := req.Clone(ctx)
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		attempt.Body = body
	}
	resp, err := t.inner.RoundTrip(attempt)
	if err != nil {
		return nil, contextCause(ctx, err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err != nil {
		return nil, contextCause(ctx, fmt.Errorf("reading the response of %s: %w", req.URL.Host, err))
	}
	if len(data) > maxBody {
		return nil, &tooLarge{host: req.URL.Host}
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}

// contextCause returns the reason the context ended, if it did: "deadline exceeded" means little to a user.
func contextCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

type tooLarge struct{ host string }

func (e *tooLarge) Error() string {
	return fmt.Sprintf("the response of %s is larger than %d MiB", e.host, maxBody>>20)
}

// isRepeatable reports whether a request may be sent again: it asks for something, or its body can be had again (a
// login).
func isRepeatable(req *http.Request) bool {
	return req.Body == nil || req.Body == http.NoBody || req.GetBody != nil
}

// isPermanent reports whether an error will be the same the next time.
func isPermanent(err error) bool {
	var dns *net.DNSError
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var large *tooLarge
	return errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &large) || errors.Is(err, http.ErrSchemeMismatch)
}

// describeUnreachable describes an error of a registry that cannot be reached, without the URL of the request.
func describeUnreachable(err error) error {
	var dns *net.DNSError
	var dial *net.OpError
	switch {
	case errors.As(err, &dns):
		return fmt.Errorf("the registry %s cannot be found (no such host); check its name, and whether this machine is online", dns.Name)
	case errors.As(err, &dial) && dial.Op == "dial":
		return fmt.Errorf("the registry at %s cannot be reached: %w", dial.Addr, dial.Err)
	}
	return err
}
