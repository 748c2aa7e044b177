// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/sdk/trace"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

// Limits of an export. Batches wait in memory meanwhile, so it must end.
const (
	requestTimeout = 10 * time.Second
	exportTimeout  = time.Minute
	firstRetry     = 5 * time.Second
	longestRetry   = 30 * time.Second
	maxReply       = 64 << 10
)

// exporter sends spans by OTLP over HTTP, in binary form (OTLP 1.10). The exporter of OpenTelemetry does the same,
// and links gRPC.
type exporter struct {
	client   http.Client
	endpoint string
	headers  map[string]string
	stopped  chan struct{}
	stop     sync.Once
}

func newExporter(endpoint string, headers map[string]string) *exporter {
	return &exporter{
		client: http.Client{Timeout: requestTimeout}, endpoint: endpoint, headers: headers,
		stopped: make(chan struct{}),
	}
}

// ExportSpans implements trace.SpanExporter. It repeats requests that the collector cannot take now.
func (e *exporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	if len(spans) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, exportTimeout)
	defer cancel()
	go func() {
		select {
		case <-e.stopped:
			cancel()
		case <-ctx.Done():
		}
	}()
	body := encodeSpans(spans)
	for failures := 1; ; failures++ {
		wait, err := e.send(ctx, body)
		var again *retryError
		if !errors.As(err, &again) {
			return err
		}
		wait = max(wait, backoff.Delay(firstRetry, longestRetry, failures))
		if until, ok := ctx.Deadline(); ok && time.Until(until) < wait {
			return err
		}
		if backoff.Wait(ctx, wait) != nil {
			return err
		}
	}
}

// Shutdown implements trace.SpanExporter. It ends what is being sent.
func (e *exporter) Shutdown(context.Context) error {
	e.stop.Do(func() { close(e.stopped) })
	return nil
}

// retryError is the error of a request that may be repeated.
type retryError struct{ error }

// Unwrap returns the cause.
func (e *retryError) Unwrap() error { return e.error }

// send sends a request once. If the error is a *retryError, wait is how long the collector asks to wait at least.
func (e *exporter) send(ctx context.Context, body []byte) (wait time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, e.endpoint, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	request.Header.Set("User-Agent", "prerig")
	for name, value := range e.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := e.client.Do(request)
	if err != nil {
		if ctx.Err() == nil {
			err = &retryError{err}
		}
		return 0, err
	}
	defer response.Body.Close()
	reply, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if response.StatusCode/100 == 2 {
		if err != nil {
			return 0, fmt.Errorf("reading the answer of %s: %w", e.endpoint, err)
		}
		return 0, rejectedSpans(reply)
	}
	err = fmt.Errorf("sending to %s: %s: %s", e.endpoint, response.Status, strings.TrimSpace(string(reply)))
	switch response.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return backoff.RetryAfter(response.Header), &retryError{err}
	}
	return 0, err
}

// rejectedSpans returns an error if a collector reports that it dropped spans
// (ExportTraceServiceResponse.partial_success). Answers in other formats are not read.
func rejectedSpans(reply []byte) error {
	rejected, message := uint64(0), ""
	for len(reply) > 0 {
		field, kind, n := protowire.ConsumeTag(reply)
		if n < 0 || field != 1 || kind != protowire.BytesType {
			return nil
		}
		partial, size := protowire.ConsumeBytes(reply[n:])
		if size < 0 {
			return nil
		}
		reply = reply[n+size:]
		for len(partial) > 0 {
			field, kind, n := protowire.ConsumeTag(partial)
			size := protowire.ConsumeFieldValue(field, kind, partial[max(n, 0):])
			if n < 0 || size < 0 {
				return nil
			}
			switch {
			case field == 1 && kind == protowire.VarintType:
				rejected, _ = protowire.ConsumeVarint(partial[n:])
			case field == 2 && kind == protowire.BytesType:
				message, _ = protowire.ConsumeString(partial[n:])
			}
			partial = partial[n+size:]
		}
	}
	if rejected == 0 && message == "" {
		return nil
	}
	return fmt.Errorf("the collector rejected %d spans: %s", rejected, message)
}
