// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/verify"
	"github.com/prerig/prerig/pipeline/verify/watch"
)

// TestComparisonsThatDecideNothing covers comparisons after which a wave must not go on: none, one that failed, and one that had read the
// branch before the merge was known.
func TestComparisonsThatDecideNothing(t *testing.T) {
	merged := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	report := &verify.Report{}
	for name, test := range map[string]struct {
		found watch.Found
		want  pullrequest.CheckState
		text  string
	}{
		"none":             {watch.Found{}, pullrequest.CheckPending, "not been compared since"},
		"failed":           {watch.Found{Began: merged.Add(time.Minute), Err: errors.New("down")}, pullrequest.CheckPending, "cannot be compared"},
		"before the merge": {watch.Found{Began: merged.Add(-time.Second), At: merged.Add(time.Minute), Report: report}, pullrequest.CheckPending, "not been compared since"},
		"after the merge":  {watch.Found{Began: merged.Add(time.Second), Report: report}, pullrequest.CheckGreen, ""},
	} {
		test.found.Cluster = "eu"
		got := rolloutCheck(test.found, []string{""}, merged)
		if got.Name != "verify/eu" || got.State != test.want || !strings.Contains(got.Text, test.text) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestWavesWaitForTheirOwnCluster finds the clusters that are compared with what a wave publishes.
func TestWavesWaitForTheirOwnCluster(t *testing.T) {
	const url = "https://git.example.com/org/config.git"
	var all []clusterWatcher
	for _, v := range []config.Verify{
		{Name: "eu", URL: url, Branch: "rendered", Paths: []string{"eu"}},
		{Name: "us", URL: url, Branch: "rendered", Paths: []string{"us/shop", "us/billing"}},
		{Name: "all", URL: "https://git.example.com/org/config", Branch: "rendered"},
		{Name: "other-branch", URL: url, Branch: "main"},
		{Name: "default-branch", URL: url},
		{Name: "other-repository", URL: "https://git.example.com/org/apps.git", Branch: "rendered"},
	} {
		all = append(all, clusterWatcher{v, watch.New(watch.Cluster{Name: v.Name}, nil)})
	}
	for dir, want := range map[string]string{
		"eu/shop":    "verify/eu verify/all",
		"eu":         "verify/eu verify/all",
		"us/billing": "verify/us verify/all",
		"us/other":   "verify/all",
		"us":         "verify/us verify/all",
		"europe":     "verify/all",
	} {
		var names []string
		entry := v1alpha1.Publish{Git: &v1alpha1.GitPublish{URL: url, Branch: "rendered", Path: dir}}
		for _, check := range rolloutChecks(all)([]v1alpha1.Publish{entry}, time.Now()) {
			names = append(names, check.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s: got %s, want %s", dir, got, want)
		}
	}
}
