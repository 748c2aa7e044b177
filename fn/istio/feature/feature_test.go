// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"slices"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

func TestTable(t *testing.T) {
	seen := map[Name]bool{}
	for _, row := range table {
		if seen[row.name] {
			t.Errorf("feature %q has two rows", row.name)
		}
		seen[row.name] = true
		for _, span := range row.Spans {
			if span.From.Minor < release.OldestMinor || span.From.Minor > release.NewestMinor || span.To.Compare(span.From) < 0 || row.source == "" {
				t.Errorf("feature %q has the range %s and the source %q", row.name, span, row.source)
			}
		}
	}
}

func TestOf(t *testing.T) {
	for _, spot := range []struct {
		release string
		name    Name
		want    bool
	}{
		{"1.11", InjectLabel, false}, {"1.12", InjectLabel, true}, {"1.26", InjectStrictValues, false}, {"1.27", InjectStrictValues, true},
		{"1.8", TemplatesMerged, false}, {"1.9", TemplatesMerged, true}, {"1.10", StatusRevision, false}, {"1.11", StatusRevision, true},
		{"1.18", NativeSidecars, false}, {"1.19", NativeSidecars, true}, {"1.23", NativeSidecarAnnotation, false}, {"1.24", NativeSidecarAnnotation, true},
		{"1.24", ProberLifecycle, false}, {"1.25", ProberLifecycle, true}, {"1.30", PrometheusScrapeTargets, false}, {"1.31", PrometheusScrapeTargets, true},
	} {
		r := release.Between(spot.release, spot.release)[0].To
		if got := Of(r).Has(spot.name); got != spot.want {
			t.Errorf("%s: %q is %t, want %t", spot.release, spot.name, got, spot.want)
		}
		if got := In(r, spot.name); got != spot.want {
			t.Errorf("%s: In(%q) is %t, want %t", spot.release, spot.name, got, spot.want)
		}
	}
}

func TestSince(t *testing.T) {
	for name, want := range map[Name]release.Release{
		InjectStrictValues: {Minor: 27}, ValidateResources: {Minor: 29}, "no such feature": release.Newest(release.NewestMinor + 1),
	} {
		if got := Since(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

func TestDependingOnPatch(t *testing.T) {
	if got := DependingOnPatch(31); len(got) > 0 {
		t.Errorf("1.31: got %q, want nothing", got)
	}
	if got := DependingOnPatch(10); len(got) != 2 || !slices.Contains(got, ProxyMetadataMerged) || !slices.Contains(got, CronJobByShortName) {
		t.Errorf("1.10: got %q, want how proxyMetadata merges and which Jobs are a CronJob's", got)
	}
}
