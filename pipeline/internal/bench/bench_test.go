// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/benchmark"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

func TestApplicationsAndPipelines(t *testing.T) {
	all, err := v1alpha1.ParseAll([]byte(pipelineFiles(3, "http://127.0.0.1/x.git")["apps.yaml"]))
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || all[2].Spec.Build.Path != "apps/app-0002" {
		t.Errorf("got %d pipelines", len(all))
	}
	for _, set := range []map[string]string{appFiles("a", "1"), policyFiles("1.29.0")} {
		for name, text := range set {
			for doc := range strings.SplitSeq(text, "---\n") {
				var object map[string]any
				if err := yaml.UnmarshalStrict([]byte(doc), &object); err != nil || object["kind"] == nil || strings.Contains(doc, "%!") {
					t.Errorf("%s: %v\n%s", name, err, doc)
				}
			}
		}
	}
}

func TestFleet(t *testing.T) {
	if sizes, err := fleetSizes("100, 1000 10000"); err != nil || !slices.Equal(sizes, []int{100, 1000, 10_000}) {
		t.Errorf("sizes %v, %v", sizes, err)
	}
	if _, err := fleetSizes("many"); err == nil {
		t.Error("a size that is no number is taken")
	}
	files := fleetPipelines(3, "http://127.0.0.1/x.git")
	for name, text := range files {
		if all, err := v1alpha1.ParseAll([]byte(text)); err != nil || len(all) != 1 {
			t.Errorf("%s: %d pipelines, %v", name, len(all), err)
		}
	}
	if all, err := v1alpha1.ParseAll([]byte(fleetPipeline(0, "http://127.0.0.1/x.git", "  interval: 100h\n"))); err != nil || all[0].Spec.Interval == nil {
		t.Errorf("a changed pipeline: %v", err)
	}
	if len(files) != 3 || len(fleetFiles(3)) != 3+3*2 {
		t.Errorf("%d and %d files", len(files), len(fleetFiles(3)))
	}
}

// TestFleetReport: what was not measured is told from what was, and what grows too fast is named.
func TestFleetReport(t *testing.T) {
	var out strings.Builder
	b := &benchRun{report: benchmark.Report{Out: &out}}
	small := &fleet{n: 100, upgrade: cost{wall: time.Second}, base: cost{wall: time.Second}, none: []time.Duration{time.Millisecond}}
	large := &fleet{n: 1000, upgrade: cost{wall: 10 * time.Second}, base: cost{wall: 20 * time.Second}}
	if err := b.reportFleets([]*fleet{small, large}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 1.00 ", "| 1.30 ", "| 1.0 ms | – ", "grows faster than linearly between the last two: change of a base"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
}

func TestPeak(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("the system has no /proc")
	}
	if n, all := peakMemory(os.Getpid()), familyMemory(os.Getpid()); n < 1<<20 || all < 1<<20 {
		t.Errorf("this process has %d bytes, with its children %d", n, all)
	}
	before := familyTime(os.Getpid())
	for begin := time.Now(); familyTime(os.Getpid()) == before; {
		if time.Since(begin) > 3*time.Minute {
			t.Fatal("no processor time is counted")
		}
	}
}
