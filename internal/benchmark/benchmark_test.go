// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package benchmark_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/internal/benchmark"
)

func TestMedian(t *testing.T) {
	figures := []time.Duration{3, 1, 2}
	if got := benchmark.Median(figures...); got != 2 || figures[0] != 3 {
		t.Errorf("got %d of %v", got, figures)
	}
}

func TestTable(t *testing.T) {
	var got strings.Builder
	report := benchmark.Report{Out: &got}
	rows := [][]string{{"", "wall"}, {"one, 30 µs", benchmark.Millis(1500 * time.Microsecond)}, {"all", benchmark.Seconds(90 * time.Second)}}
	if err := report.Table("growth", rows...); err != nil {
		t.Fatal(err)
	}
	const want = `
growth
|            | wall    |
|------------|---------|
| one, 30 µs | 1.5 ms  |
| all        | 90.00 s |
`
	if got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", got.String(), want)
	}
}

func TestRequire(t *testing.T) {
	var got strings.Builder
	report := benchmark.Report{Out: &got}
	if report.Require(true, "never said"); report.Finish(true) != nil {
		t.Errorf("met, and yet: %v", report.Finish(true))
	}
	report.Require(false, "%d is too many", 3)
	report.Require(false, "too slow")
	if err := report.Finish(true); err == nil || err.Error() != "3 is too many\ntoo slow" {
		t.Errorf("strict: %v", err)
	}
	if err := report.Finish(false); err != nil || got.String() != "missed: 3 is too many\nmissed: too slow\n" {
		t.Errorf("%v, and it says %q", err, got.String())
	}
}
