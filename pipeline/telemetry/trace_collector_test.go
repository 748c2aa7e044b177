// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
)

// span is what a collector is told of a span.
type span struct {
	Trace, ID, Parent, Name string
	Text                    map[string][]string // attributes that are texts or lists of them
	Failed                  bool
}

// collector is an OTLP collector over HTTP.
type collector struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []span
	bodies   [][]byte
	headers  []http.Header
	paths    []string
	services []string
	problem  error
}

func collect(t *testing.T) *collector {
	t.Helper()
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = unpacked
		}
		data, err := io.ReadAll(body)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.bodies, c.headers, c.paths = append(c.bodies, data), append(c.headers, r.Header), append(c.paths, r.URL.Path)
		c.problem = errors.Join(c.problem, err, c.read(data))
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(c.Close)
	return c
}

// read takes an ExportTraceServiceRequest apart.
func (c *collector) read(data []byte) error {
	var problem error
	each := func(data []byte, number uint64, f func([]byte)) {
		problem = errors.Join(problem, fields(data, func(n uint64, value []byte) {
			if n == number {
				f(value)
			}
		}))
	}
	each(data, 1, func(resource []byte) {
		each(resource, 1, func(about []byte) {
			each(about, 1, func(attribute []byte) { c.services = append(c.services, string(attribute)) })
		})
		each(resource, 2, func(scope []byte) {
			each(scope, 2, func(data []byte) {
				s, err := readSpan(data)
				problem = errors.Join(problem, err)
				c.spans = append(c.spans, s)
			})
		})
	})
	return problem
}

func readSpan(data []byte) (span, error) {
	s := span{Text: map[string][]string{}}
	var problem error
	err := fields(data, func(n uint64, value []byte) {
		switch n {
		case 1:
			s.Trace = hex.EncodeToString(value)
		case 2:
			s.ID = hex.EncodeToString(value)
		case 4:
			s.Parent = hex.EncodeToString(value)
		case 5:
			s.Name = string(value)
		case 9:
			problem = errors.Join(problem, s.attribute(value))
		case 15:
			problem = errors.Join(problem, fields(value, func(n uint64, code []byte) { s.Failed = s.Failed || n == 3 && code[0] == 2 }))
		}
	})
	return s, errors.Join(err, problem)
}

// attribute reads a key and a value that is a text or a list of texts.
func (s *span) attribute(data []byte) error {
	key, problem := "", error(nil)
	var values []string
	var value func(n uint64, data []byte)
	value = func(n uint64, data []byte) {
		switch n {
		case 1:
			values = append(values, string(data))
		case 5:
			problem = errors.Join(problem, fields(data, func(_ uint64, one []byte) { problem = errors.Join(problem, fields(one, value)) }))
		}
	}
	err := fields(data, func(n uint64, data []byte) {
		if n == 1 {
			key = string(data)
		} else {
			problem = errors.Join(problem, fields(data, value))
		}
	})
	if len(values) > 0 {
		s.Text[key] = values
	}
	return errors.Join(err, problem)
}

// fields calls f with the number and the bytes of each field of a protobuf message. A number's bytes are those of its
// encoding.
func fields(data []byte, f func(n uint64, value []byte)) error {
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 {
			return errors.New("malformed tag")
		}
		data = data[size:]
		length := 0
		switch tag & 7 {
		case 0:
			_, length = binary.Uvarint(data)
		case 1:
			length = 8
		case 2:
			n, size := binary.Uvarint(data)
			if size <= 0 {
				return errors.New("malformed length")
			}
			data, length = data[size:], int(n)
		case 5:
			length = 4
		}
		if length <= 0 && tag&7 != 2 || length > len(data) {
			return errors.New("malformed field")
		}
		f(tag>>3, data[:length])
		data = data[length:]
	}
	return nil
}

// find returns the spans that match.
func (c *collector) find(match func(span) bool) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.spans), func(s span) bool { return !match(s) })
}

// sent reports whether a text was sent in any body.
func (c *collector) sent(text string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.ContainsFunc(c.bodies, func(body []byte) bool { return bytes.Contains(body, []byte(text)) })
}
