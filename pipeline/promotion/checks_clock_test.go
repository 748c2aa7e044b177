// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"testing"
	"time"
)

// TestATimeFromTheFutureBeginsAnew: what is green since a time that the clock has not reached any more would wait
// until it has.
func TestATimeFromTheFutureBeginsAnew(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct{ since, said, want time.Time }{
		"noted before":              {now.Add(-time.Hour), time.Time{}, now.Add(-time.Hour)},
		"said later":                {now.Add(-time.Hour), now.Add(-time.Minute), now.Add(-time.Minute)},
		"said in the future":        {now.Add(-time.Hour), now.Add(time.Hour), now.Add(-time.Hour)},
		"the clock was set back":    {now.Add(time.Hour), time.Time{}, now},
		"by a year":                 {now.Add(365 * 24 * time.Hour), now.Add(-time.Minute), now},
		"that of the host, as well": {now.Add(time.Hour), now.Add(time.Hour), now},
	} {
		if got := laterReportedTime(test.since, test.said, now); !got.Equal(test.want) {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
