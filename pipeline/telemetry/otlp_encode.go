// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"math"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/encoding/protowire"
)

// message is an encoded protobuf message. Fields with the zero value are left out, as proto3 requires.
type message []byte

func (m *message) bytes(field protowire.Number, value []byte) {
	if len(value) > 0 {
		m.embed(field, value)
	}
}

func (m *message) text(field protowire.Number, value string) { m.bytes(field, []byte(value)) }

// embed appends a message, also if it is empty.
func (m *message) embed(field protowire.Number, value message) {
	*m = protowire.AppendBytes(protowire.AppendTag(*m, field, protowire.BytesType), value)
}

func (m *message) number(field protowire.Number, value int) {
	if value > 0 {
		*m = protowire.AppendVarint(protowire.AppendTag(*m, field, protowire.VarintType), uint64(value))
	}
}

func (m *message) fixed64(field protowire.Number, value uint64) {
	*m = protowire.AppendFixed64(protowire.AppendTag(*m, field, protowire.Fixed64Type), value)
}

func (m *message) time(field protowire.Number, at time.Time) {
	m.fixed64(field, uint64(max(0, at.UnixNano())))
}

func (m *message) attributes(field protowire.Number, all []attribute.KeyValue) {
	for _, one := range all {
		var pair message
		pair.text(1, string(one.Key))
		pair.embed(2, encodeValue(one.Value))
		m.embed(field, pair)
	}
}

// encodeSpans returns an ExportTraceServiceRequest (opentelemetry/proto/collector/trace/v1/trace_service.proto and
// opentelemetry/proto/trace/v1/trace.proto of opentelemetry-proto 1.10). All spans have the same resource.
func encodeSpans(spans []trace.ReadOnlySpan) []byte {
	var scopes []instrumentation.Scope
	ofScope := map[instrumentation.Scope]*message{}
	for _, span := range spans {
		scope := span.InstrumentationScope()
		m, ok := ofScope[scope]
		if !ok {
			m = &message{}
			var about message
			about.text(1, scope.Name)
			about.text(2, scope.Version)
			about.attributes(3, scope.Attributes.ToSlice())
			m.embed(1, about)
			ofScope[scope] = m
			scopes = append(scopes, scope)
		}
		m.embed(2, encodeSpan(span))
	}
	var about, ofResource, request message
	about.attributes(1, spans[0].Resource().Attributes())
	ofResource.embed(1, about)
	for _, scope := range scopes {
		m := ofScope[scope]
		m.text(3, scope.SchemaURL)
		ofResource.embed(2, *m)
	}
	ofResource.text(3, spans[0].Resource().SchemaURL())
	request.embed(1, ofResource)
	return request
}

// encodeSpan returns a Span. The numbers of its kinds are those of the Go API.
func encodeSpan(span trace.ReadOnlySpan) message {
	var m message
	context, parent := span.SpanContext(), span.Parent()
	m.ids(context)
	m.text(3, context.TraceState().String())
	if id := parent.SpanID(); id.IsValid() {
		m.bytes(4, id[:])
	}
	m.text(5, span.Name())
	m.number(6, int(span.SpanKind()))
	m.time(7, span.StartTime())
	m.time(8, span.EndTime())
	m.attributes(9, span.Attributes())
	m.number(10, span.DroppedAttributes())
	for _, event := range span.Events() {
		var one message
		one.time(1, event.Time)
		one.text(2, event.Name)
		one.attributes(3, event.Attributes)
		one.number(4, event.DroppedAttributeCount)
		m.embed(11, one)
	}
	m.number(12, span.DroppedEvents())
	for _, link := range span.Links() {
		var one message
		one.ids(link.SpanContext)
		one.attributes(4, link.Attributes)
		one.number(5, link.DroppedAttributeCount)
		one.flags(6, link.SpanContext.TraceFlags(), link.SpanContext)
		m.embed(13, one)
	}
	m.number(14, span.DroppedLinks())
	var status message
	status.text(2, span.Status().Description)
	switch span.Status().Code {
	case codes.Ok:
		status.number(3, 1)
	case codes.Error:
		status.number(3, 2)
	}
	m.embed(15, status)
	m.flags(16, context.TraceFlags(), parent)
	return m
}

// ids appends the IDs of a span context, which a Span and a Link begin with.
func (m *message) ids(c api.SpanContext) {
	traceID, spanID := c.TraceID(), c.SpanID()
	m.bytes(1, traceID[:])
	m.bytes(2, spanID[:])
}

// Bits of Span.flags and Link.flags beside the flags of W3C.
const (
	remoteIsKnown = 0x100
	isRemote      = 0x200
)

func (m *message) flags(field protowire.Number, flags api.TraceFlags, parent api.SpanContext) {
	value := uint32(flags) | remoteIsKnown
	if parent.IsRemote() {
		value |= isRemote
	}
	*m = protowire.AppendFixed32(protowire.AppendTag(*m, field, protowire.Fixed32Type), value)
}

// encodeValue returns an AnyValue. A value that is set is written also if it is zero.
func encodeValue(of attribute.Value) message {
	var m message
	switch value := of.AsInterface().(type) {
	case bool:
		m = protowire.AppendVarint(protowire.AppendTag(m, 2, protowire.VarintType), protowire.EncodeBool(value))
	case int64:
		m = protowire.AppendVarint(protowire.AppendTag(m, 3, protowire.VarintType), uint64(value))
	case float64:
		m.fixed64(4, math.Float64bits(value))
	case []bool:
		m.embed(5, encodeList(value, attribute.BoolValue))
	case []int64:
		m.embed(5, encodeList(value, attribute.Int64Value))
	case []float64:
		m.embed(5, encodeList(value, attribute.Float64Value))
	case []string:
		m.embed(5, encodeList(value, attribute.StringValue))
	case string:
		m.embed(1, message(value))
	default:
		m.embed(1, message(of.String()))
	}
	return m
}

// encodeList returns an ArrayValue.
func encodeList[T any](values []T, of func(T) attribute.Value) message {
	var m message
	for _, one := range values {
		m.embed(1, encodeValue(of(one)))
	}
	return m
}
