// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestVerdictOfWorkloadsInjectedBefore excuses a difference by an earlier injection only if there is none without it.
func TestVerdictOfWorkloadsInjectedBefore(t *testing.T) {
	pod := func(image string) Outcome {
		return Outcome{Pod: newUnstructuredObject(map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": image}}}})}
	}
	workload := newUnstructuredObject(map[string]any{"kind": "Pod"})
	for name, c := range map[string]struct {
		c    Case
		want Verdict
	}{
		"equal":                    {Case{Webhook: pod("a"), Prerig: pod("a")}, NotInjected},
		"different":                {Case{Webhook: pod("a"), Prerig: pod("b")}, Different},
		"equal without it":         {Case{Webhook: pod("a"), Prerig: pod("b"), Without: &Case{Webhook: pod("b"), Prerig: pod("b")}}, InjectedBefore},
		"refused, equal without":   {Case{Webhook: Outcome{Refused: "no"}, Prerig: pod("b"), Without: &Case{Webhook: pod("b"), Prerig: pod("b")}}, InjectedBefore},
		"different without it too": {Case{Webhook: pod("a"), Prerig: pod("b"), Without: &Case{Webhook: pod("a"), Prerig: pod("b")}}, Different},
		"refused without it":       {Case{Webhook: pod("a"), Prerig: pod("b"), Without: &Case{Webhook: Outcome{Refused: "no"}, Prerig: pod("b")}}, Different},
	} {
		t.Run(name, func(t *testing.T) {
			c.c.Workload = workload
			if c.c.Without != nil {
				c.c.Without.Workload = workload
			}
			if c.c.determineVerdict(map[string]int{}); c.c.Verdict != c.want {
				t.Errorf("the verdict is %q, want %q", c.c.Verdict, c.want)
			}
		})
	}
}
