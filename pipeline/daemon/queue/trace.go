// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
)

// TraceOf returns the W3C traceparent of ctx, to be stored with data; "" without tracing.
func TraceOf(ctx context.Context) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// withTrace returns a context that belongs to what was stored with a traceparent.
func withTrace(ctx context.Context, trace string) context.Context {
	if trace == "" {
		return ctx
	}
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": trace})
}
