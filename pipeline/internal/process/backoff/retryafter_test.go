// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package backoff_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/backoff"
)

// TestRetryAfter reads both forms of the header.
func TestRetryAfter(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"3": 3 * time.Second, "": 0, "soon": 0, "-3": 0, "99999999999": 0, time.Now().Add(time.Minute).UTC().Format(http.TimeFormat): time.Minute,
		time.Now().Add(-time.Minute).UTC().Format(http.TimeFormat): 0,
	} {
		got := backoff.RetryAfter(http.Header{"Retry-After": {text}})
		if (got - want).Abs() > 2*time.Second {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
