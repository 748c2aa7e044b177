// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"reflect"
	"testing"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// TestMixesAreInjectedAlike compares the results for what is measured with those of an injection that knows no shapes. The injection by shapes
// compares each workload, too, as it does in all tests.
func TestMixesAreInjectedAlike(t *testing.T) {
	p, err := v1alpha1.Parse([]byte(policy))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mixes {
		t.Run(m.name, func(t *testing.T) {
			list, err := manifest.ParseResourceList(resourceList(m.stream(60)))
			if err != nil {
				t.Fatal(err)
			}
			var items []fn.Item
			for i, doc := range list.Items {
				items = append(items, fn.Item{Doc: doc, Index: i})
			}
			run := func(opts ...fn.Option) *fn.Report {
				in, err := fn.New([]*v1alpha1.InjectionPolicy{p}, opts...)
				if err != nil {
					t.Fatal(err)
				}
				report, err := in.Run(t.Context(), items)
				if err != nil || report.Failed() || report.Changed() != 60 {
					t.Fatal(err, report.Changed(), report.Results)
				}
				return report
			}
			with, without := run(), run(fn.WithoutShapes())
			for i := range items {
				if with.Items[i].Doc.Text() != without.Items[i].Doc.Text() {
					t.Errorf("item %d: got\n%s\nwant\n%s", i, with.Items[i].Doc.Text(), without.Items[i].Doc.Text())
				}
			}
			if !reflect.DeepEqual(with.Results, without.Results) || !reflect.DeepEqual(with.Outcomes, without.Outcomes) {
				t.Error("the results or outcomes differ")
			}
		})
	}
}
