// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"github.com/prerig/prerig/pipeline/config"
)

// Trace sends traces to the configured collector, and does not trace without one. The returned function sends the
// remaining traces.
func Trace(c config.Tracing, version string) (stop func(context.Context) error, err error) {
	if c.Endpoint == "" {
		return func(context.Context) error { return nil }, nil
	}
	headers, err := readHeaders(c.Headers)
	if err != nil {
		return nil, err
	}
	endpoint := strings.TrimSuffix(c.Endpoint, "/")
	if !strings.HasSuffix(endpoint, "/v1/traces") {
		endpoint += "/v1/traces"
	}
	about := resource.NewSchemaless(attribute.String("service.name", "prerig"),
		attribute.String("service.version", version))
	provider := trace.NewTracerProvider(trace.WithBatcher(newExporter(endpoint, headers)), trace.WithResource(about),
		trace.WithSampler(trace.ParentBased(trace.TraceIDRatioBased(c.Ratio))))
	otel.SetTracerProvider(provider)
	return provider.Shutdown, nil
}

// TellTraceErrors logs errors of tracing, which would otherwise bypass the log.
func TellTraceErrors(log *slog.Logger) {
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces could not be sent", "error", err) }))
}

// readHeaders reads lines of "Name: value"; they may hold credentials, so errors do not quote them.
func readHeaders(file string) (map[string]string, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the headers for traces: %w", err)
	}
	headers := map[string]string{}
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok {
			return nil, fmt.Errorf("reading the headers for traces: line %d of %s is not \"Name: value\"", i+1, file)
		}
		headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	return headers, nil
}
