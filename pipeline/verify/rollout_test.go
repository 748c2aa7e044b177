// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestRolloutOfDirectories counts the pods of some directories by what a wave waits for.
func TestRolloutOfDirectories(t *testing.T) {
	merged := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	before, after := merged.Add(-time.Hour), merged.Add(time.Minute)
	report := &Report{Pods: []Pod{
		{File: "eu/shop/web.yaml", State: Current, created: after, ready: true},
		{File: "eu/shop/api.yaml", State: Resized, created: before},
		{File: "eu/shop/db.yaml", State: Older, created: before, ready: true},
		{File: "eu/shop/db.yaml", State: Older, created: after, ready: true}, // what deploys has yet to apply the commit
		{File: "eu/shop/odd.yaml", State: Changed, created: before, ready: true},
		{File: "eu/shop/odd.yaml", State: Changed, created: after, ready: true},
		{File: "eu/shopping/x.yaml", State: Changed, created: after},
		{File: "us/shop/web.yaml", State: Older, created: before},
		{State: Foreign, created: after},
	}}
	for _, test := range []struct {
		dirs []string
		want Rollout
	}{
		{[]string{"eu/shop"}, Rollout{Pods: 6, Behind: 3, NotReady: 1, Wrong: 1}},
		{[]string{"./eu/shop/"}, Rollout{Pods: 6, Behind: 3, NotReady: 1, Wrong: 1}},
		{[]string{"eu", "us/shop"}, Rollout{Pods: 8, Behind: 4, NotReady: 1, Wrong: 2}},
		{[]string{""}, Rollout{Pods: 8, Behind: 4, NotReady: 1, Wrong: 2}},
		{[]string{"asia"}, Rollout{}},
		{nil, Rollout{}},
	} {
		if d := cmp.Diff(test.want, report.RolloutOf(test.dirs, merged)); d != "" {
			t.Errorf("%q (-want +got):\n%s", test.dirs, d)
		}
	}
}

// TestReadyPods reads whether a pod is ready and when it was created from the pod itself.
func TestReadyPods(t *testing.T) {
	for text, want := range map[string]bool{
		`{status: {conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "True"}]}}`:  true,
		`{status: {conditions: [{type: Initialized, status: "True"}, {type: Ready, status: "False"}]}}`: false,
		`{status: {conditions: [{type: Ready, status: Unknown}]}}`:                                      false,
		`{status: {phase: Pending}}`: false,
		`{}`:                         false,
	} {
		if got := isPodReady(parse(t, text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}
