// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// TestChecksOfOneNameDoNotHideOneAnother has several say something of a commit under one name.
func TestChecksOfOneNameDoNotHideOneAnother(t *testing.T) {
	at := func(minute int) string { return fmt.Sprintf("2026-05-16T00:%02d:00Z", minute) }
	run := func(app, suite int, conclusion string, minute int) any {
		r := object("name", "build", "app", object("id", app), "check_suite", object("id", suite), "started_at", at(minute))
		r["status"] = "in_progress"
		if conclusion != "" {
			r["status"], r["conclusion"], r["completed_at"] = "completed", conclusion, at(minute)
		}
		return r
	}
	job := func(ref string, pipeline int, status string, minute int) any {
		return object("name", "build", "ref", ref, "pipeline_id", pipeline, "status", status, "created_at", at(minute))
	}
	green := object("context", "build", "state", "success", "updated_at", at(50))
	for name, tc := range map[string]struct {
		host     string
		runs     []any // GitLab: statuses
		statuses []any
		want     string
	}{
		"a workflow that failed, another that ended later": {giturl.GitHub, []any{run(1, 7, "failure", 1), run(1, 8, "success", 9)}, nil, "Red"},
		"and the other way round":                          {giturl.GitHub, []any{run(1, 8, "success", 9), run(1, 7, "failure", 1)}, nil, "Red"},
		"one that runs":                                    {giturl.GitHub, []any{run(1, 7, "", 1), run(1, 8, "success", 9)}, nil, "Pending"},
		"both well":                                        {giturl.GitHub, []any{run(1, 7, "success", 1), run(1, 8, "success", 9)}, nil, "Green"},
		"two of one suite":                                 {giturl.GitHub, []any{run(1, 7, "failure", 1), run(1, 7, "success", 9)}, nil, "Green"},
		"canceled by a later run of its workflow":          {giturl.GitHub, []any{run(1, 8, "success", 2), run(1, 7, "cancelled", 3)}, nil, "Green"},
		"canceled by one that runs":                        {giturl.GitHub, []any{run(1, 7, "cancelled", 3), run(1, 8, "", 2)}, nil, "Pending"},
		"the later one was canceled":                       {giturl.GitHub, []any{run(1, 7, "success", 1), run(1, 8, "cancelled", 3)}, nil, "Red"},
		"canceled, and one of another app":                 {giturl.GitHub, []any{run(1, 7, "cancelled", 1), run(2, 8, "success", 3)}, nil, "Red"},
		"a check run that failed beside a status":          {giturl.GitHub, []any{run(1, 7, "failure", 1)}, []any{green}, "Red"},
		"a status that failed beside a check run":          {giturl.GitHub, []any{run(1, 7, "success", 9)}, []any{object("context", "build", "state", "failure")}, "Red"},

		"the pipeline of the branch failed":           {giturl.GitLab, []any{job("a", 1, "failed", 1), job("refs/merge-requests/2/head", 2, "success", 9)}, nil, "Red"},
		"that of the merge request runs":              {giturl.GitLab, []any{job("a", 1, "success", 9), job("refs/merge-requests/2/head", 2, "running", 1)}, nil, "Pending"},
		"a later pipeline of the branch":              {giturl.GitLab, []any{job("a", 2, "success", 9), job("a", 1, "failed", 1)}, nil, "Green"},
		"a later one that runs while the first ended": {giturl.GitLab, []any{job("a", 1, "success", 9), job("a", 2, "running", 1)}, nil, "Pending"},
		"again in one pipeline":                       {giturl.GitLab, []any{job("a", 1, "failed", 1), job("a", 1, "success", 9)}, nil, "Green"},
	} {
		m := mergingHosts(t)[tc.host]
		m.checks[0].answer = tc.runs
		if tc.host == giturl.GitHub {
			m.checks[0].answer = object("check_runs", tc.runs)
			m.checks[1].answer = object("statuses", append([]any{}, tc.statuses...))
		}
		checks, err := atHost(t, m, m.checks...).Checks(context.Background(), headSHA)
		var got []string
		for _, c := range checks {
			got = append(got, c.Name+" "+string(c.State))
		}
		if err != nil || strings.Join(got, ", ") != "build "+tc.want {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
