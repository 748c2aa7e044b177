// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
	"time"
)

func TestFreeze(t *testing.T) {
	for name, tc := range map[string]struct {
		freeze Freeze
		in     []string
		out    []string
	}{
		"hours": {
			Freeze{From: "08:30", To: "17:00"}, []string{"2026-03-02T08:30:00Z", "2026-03-02T16:59:59Z"}, []string{"2026-03-02T08:29:59Z", "2026-03-02T17:00:00Z"},
		},
		"a weekend, over midnight": {
			Freeze{Days: []string{"Fri", "Sat"}, From: "16:00", To: "16:00", TimeZone: "Europe/Berlin"},
			[]string{"2026-11-20T15:00:00Z", "2026-11-21T12:00:00Z", "2026-11-22T14:59:59Z"}, []string{"2026-11-20T14:59:59Z", "2026-11-22T15:00:00Z", "2026-11-19T20:00:00Z"},
		},
		"when the clocks go forward": {
			Freeze{From: "02:00", To: "03:30", TimeZone: "Europe/Berlin"}, []string{"2026-03-29T01:00:00Z", "2026-03-29T01:29:00Z"}, []string{"2026-03-29T00:59:00Z", "2026-03-29T01:30:00Z"},
		},
		"days of the year": {
			Freeze{Since: "2026-12-20", Until: "2027-01-02"}, []string{"2026-12-20T00:00:00Z", "2027-01-02T23:59:59Z"}, []string{"2026-12-19T23:59:59Z", "2027-01-03T00:00:00Z"},
		},
		"what cannot be read": {Freeze{From: "late"}, []string{"2026-03-02T08:30:00Z"}, nil},
		"a zone of nowhere":   {Freeze{TimeZone: "Mars/Olympus"}, []string{"2026-03-02T08:30:00Z"}, nil},
	} {
		for want, times := range map[bool][]string{true: tc.in, false: tc.out} {
			for _, text := range times {
				at, err := time.Parse(time.RFC3339, text)
				if err != nil {
					t.Fatal(err)
				}
				if tc.freeze.Contains(at) != want {
					t.Errorf("%s: %s is in %s: %v", name, text, tc.freeze, !want)
				}
			}
		}
	}
}

func TestMatchStatus(t *testing.T) {
	for pattern, names := range map[string]string{"ci": "ci", "ci/*": "ci/ ci/a", "*": "a", "*/eu": "argocd/eu a/b/eu", "a*c*e": "abcde ace"} {
		for name := range strings.FieldsSeq(names) {
			if !MatchStatus(pattern, name) {
				t.Errorf("%s does not match %s", pattern, name)
			}
		}
		for _, name := range []string{"cix", "xci", "ae", "eu/x"} {
			if pattern != "*" && MatchStatus(pattern, name) {
				t.Errorf("%s matches %s", pattern, name)
			}
		}
	}
}

// TestWhatIsWrongWithMerging has one wrong field each.
func TestWhatIsWrongWithMerging(t *testing.T) {
	const label = "groupBy: Label, label: wave, "
	for fields, want := range map[string]string{
		"merge: Never":                                                           "spec.publish[0].git.pullRequest.merge: ",
		"mergeWhen: {approvals: 1}":                                              "is for merge: WhenGreen",
		"merge: WhenGreen, mergeWhen: {approvals: -1}":                           "mergeWhen.approvals: must not be negative",
		"merge: WhenGreen, mergeWhen: {method: Octopus}":                         "mergeWhen.method: ",
		"merge: WhenGreen, mergeWhen: {greenFor: -1s}":                           "mergeWhen.greenFor: must not be negative",
		"merge: WhenGreen, mergeWhen: {freeze: [{days: [Caturday]}]}":            "mergeWhen.freeze[0].days[0]: ",
		"merge: WhenGreen, mergeWhen: {freeze: [{from: \"25:00\"}]}":             "mergeWhen.freeze[0].from: ",
		"merge: WhenGreen, mergeWhen: {freeze: [{since: soon}]}":                 "mergeWhen.freeze[0].since: ",
		"merge: WhenGreen, mergeWhen: {freeze: [{timeZone: Mars/Olympus}]}":      "mergeWhen.freeze[0].timeZone: ",
		"merge: WhenGreen, mergeWhen: {after: [{group: team/shop}]}":             "is the pipeline's own group",
		"waves: {order: [a, b]}":                                                 "needs groupBy: Label",
		label + "waves: {order: [eu]}":                                           "must list two waves at least",
		label + "waves: {order: [eu, eu]}":                                       "waves.order[1]: ",
		label + "waves: {order: [canary, us]}":                                   "does not list eu",
		label + "waves: {order: [canary, eu]}":                                   "",
		"merge: WhenGreen, mergeWhen: {after: [{group: team/other, delay: 1h}]}": "",
	} {
		_, err := Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop, namespace: team, labels: {wave: eu}}\nspec:\n" +
			"  source: {git: {url: https://github.com/org/app, secretRef: {name: bot}}}\n  publish: [{git: {branch: rendered, pullRequest: {" + fields + "}}}]\n"))
		text := ""
		if err != nil {
			text = err.Error()
		}
		if (want == "") != (err == nil) || !strings.Contains(text, want) {
			t.Errorf("%s: got %v, want %q", fields, err, want)
		}
	}
}
