// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/instrumentation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	api "go.opentelemetry.io/otel/trace"
)

// someSpans returns spans with everything that OTLP has for them.
func someSpans(t *testing.T) []trace.ReadOnlySpan {
	t.Helper()
	state, err := api.ParseTraceState("vendor=one")
	if err != nil {
		t.Fatal(err)
	}
	of := func(span byte, remote bool) api.SpanContext {
		return api.NewSpanContext(api.SpanContextConfig{
			TraceID: api.TraceID{1, 2, 3}, SpanID: api.SpanID{span}, TraceFlags: api.FlagsSampled, TraceState: state, Remote: remote,
		})
	}
	at := time.Unix(1_700_000_000, 5).UTC()
	about := resource.NewWithAttributes("https://example.com/schema", attribute.String("service.name", "prerig"))
	return tracetest.SpanStubs{
		{
			Name: "first", SpanContext: of(1, false), SpanKind: api.SpanKindServer, StartTime: at, EndTime: at.Add(time.Second), Resource: about,
			Attributes: []attribute.KeyValue{
				attribute.String("text", "ä"), attribute.String("empty", ""), attribute.Bool("no", false), attribute.Bool("yes", true),
				attribute.Int("zero", 0), attribute.Int("negative", -5), attribute.Float64("half", 0.5), attribute.StringSlice("texts", []string{"a", ""}),
				attribute.IntSlice("numbers", []int{1, 0}), attribute.BoolSlice("bools", []bool{true, false}), attribute.Float64Slice("floats", []float64{0, 2}),
				attribute.StringSlice("none", nil),
			},
			Status: trace.Status{Code: codes.Error, Description: "broken"}, DroppedAttributes: 3, DroppedEvents: 2, DroppedLinks: 1,
			Events: []trace.Event{{Name: "exception", Time: at, DroppedAttributeCount: 4, Attributes: []attribute.KeyValue{attribute.String("a", "b")}}},
			InstrumentationScope: instrumentation.Scope{
				Name: "one", Version: "1.0", SchemaURL: "https://example.com/scope", Attributes: attribute.NewSet(attribute.String("k", "v")),
			},
		},
		{
			Name: "second", SpanContext: of(2, false), Parent: of(1, true), StartTime: at, EndTime: at, Resource: about,
			Status: trace.Status{Code: codes.Ok}, InstrumentationScope: instrumentation.Scope{Name: "two"},
			SpanKind: api.SpanKindInternal, Links: []trace.Link{{SpanContext: of(3, true), Attributes: []attribute.KeyValue{attribute.Int("n", 1)}, DroppedAttributeCount: 2}},
		},
	}.Snapshots()
}

// TestSpansAreEncodedAsByOpenTelemetry compares with the request of OpenTelemetry's own exporter (otlptracehttp 1.47.0) for the same spans.
func TestSpansAreEncodedAsByOpenTelemetry(t *testing.T) {
	want, err := os.ReadFile("testdata/spans.hex")
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(encodeSpans(someSpans(t))); got != strings.TrimSpace(string(want)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestWhatACollectorAnswers checks which answers are errors, and which requests may be repeated.
func TestWhatACollectorAnswers(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header string
		body   string
		want   string
		again  bool
		wait   time.Duration
	}{
		"accepted":      {status: 200},
		"all accepted":  {status: 200, body: "\x0a\x00"},
		"some rejected": {status: 200, body: "\x0a\x09\x08\x07\x12\x05quota", want: "the collector rejected 7 spans: quota"},
		"in JSON":       {status: 202, body: "{}"},
		"overloaded":    {status: 503, header: "7", body: "later", want: "503 Service Unavailable: later", again: true, wait: 7 * time.Second},
		"too many":      {status: 429, want: "429 Too Many Requests", again: true},
		"not permitted": {status: 401, body: "who?", want: "401 Unauthorized: who?"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if test.header != "" {
					w.Header().Set("Retry-After", test.header)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body))
			}))
			defer server.Close()
			wait, err := newExporter(server.URL, nil).send(t.Context(), []byte("any"))
			_, again := err.(*retryError) //nolint:errorlint // send returns it as it is
			if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) || again != test.again || wait != test.wait {
				t.Errorf("got %v, again %v, after %s", err, again, wait)
			}
		})
	}
}
