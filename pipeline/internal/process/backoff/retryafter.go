// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"net/http"
	"strconv"
	"time"
)

// RetryAfter returns how long a server asks clients to wait in the header of that name, in seconds or as a date, or 0
// if it does not ask.
func RetryAfter(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(after, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
