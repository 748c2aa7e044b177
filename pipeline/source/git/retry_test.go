// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestRequestsAreRepeatedWithTheirBody(t *testing.T) {
	for _, tc := range []struct {
		status, failures, want, calls int
	}{
		{http.StatusServiceUnavailable, 3, http.StatusOK, 4},
		{http.StatusServiceUnavailable, 100, http.StatusServiceUnavailable, tries},
		{http.StatusForbidden, 100, http.StatusForbidden, 1},
	} {
		calls := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls++
			if body, _ := io.ReadAll(r.Body); string(body) != "pack" {
				t.Errorf("call %d had the body %q", calls, body)
			}
			if calls <= tc.failures {
				w.WriteHeader(tc.status)
			}
		}))
		client := &http.Client{Transport: &retryTransport{http.DefaultTransport, time.Millisecond}}
		response, err := client.Post(server.URL, "text/plain", strings.NewReader("pack"))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tc.want || calls != tc.calls {
			t.Errorf("%+v: got %d after %d calls", tc, response.StatusCode, calls)
		}
		server.Close()
	}
}
