// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/server"
)

// many are pipelines in all states.
func many(n int) (out []server.Pipeline) {
	for i := range n {
		p := server.Pipeline{Name: fmt.Sprintf("team/app-%04d", i), State: server.StateReady, Message: "1 object"}
		p.Status.LastRun = &v1alpha1.Run{ID: "r", Revision: "main@sha1:" + strings.Repeat("ab", 20), Finished: metav1.NewTime(time.Now().Add(-3 * time.Hour))}
		switch i {
		case 3:
			p.State, p.Message = server.StateFailing, "it failed:\n\x1b[31m"+strings.Repeat("word ", 100)
		case 5:
			p.State, p.Message = server.StateStalled, "stalled"
		case 6: // its source could not be read, and is as it was before
			p.Status.LastRun.Revision = ""
			p.Status.Published = []v1alpha1.Published{{SourceRevision: "main@sha1:" + strings.Repeat("cd", 20)}}
		case 7:
			p.State, p.Status.LastRun = server.StateNew, nil
		}
		out = append(out, p)
	}
	return out
}

func TestStatusTable(t *testing.T) {
	var out bytes.Buffer
	if err := statusTable(&out, many(8), 100); err != nil {
		t.Fatal(err)
	}
	want := `PIPELINE       STATE    LAST RUN  REVISION                MESSAGE
team/app-0000  Ready    3h ago    main@sha1:abababababab  1 object
team/app-0001  Ready    3h ago    main@sha1:abababababab  1 object
team/app-0002  Ready    3h ago    main@sha1:abababababab  1 object
team/app-0004  Ready    3h ago    main@sha1:abababababab  1 object
team/app-0006  Ready    3h ago    main@sha1:cdcdcdcdcdcd  1 object
team/app-0007  New      -         -                       1 object
team/app-0005  Stalled  3h ago    main@sha1:abababababab  stalled
team/app-0003  Failing  3h ago    main@sha1:abababababab  it failed: [31mword word word word word w…
`
	if got := out.String(); got != want {
		t.Error(cmp.Diff(want, got))
	}
	for l := range strings.Lines(out.String()) {
		if n := len([]rune(strings.TrimSuffix(l, "\n"))); n > 100 {
			t.Errorf("a line has %d characters: %s", n, l)
		}
	}
}

func TestStatusFilters(t *testing.T) {
	for name, tc := range map[string]struct {
		o    statusOptions
		rows int
		last string
		code string
	}{
		"all":              {statusOptions{output: "text"}, 1001, "1000 pipelines: 1 Failing, 1 Stalled, 1 New, 997 Ready", ""},
		"failing":          {statusOptions{output: "text", failing: true}, 3, "1000 pipelines, 2 shown: 1 Failing, 1 Stalled, 1 New, 997 Ready", ""},
		"checked":          {statusOptions{output: "text", check: true}, 1001, "1000 pipelines: 1 Failing, 1 Stalled, 1 New, 997 Ready", "2 pipelines of 1000 failing"},
		"one state":        {statusOptions{output: "text", states: []string{"new"}, check: true}, 2, "1000 pipelines, 1 shown: 1 Failing, 1 Stalled, 1 New, 997 Ready", ""},
		"states and check": {statusOptions{output: "text", states: []string{"READY", "stalled"}, check: true}, 999, "1000 pipelines, 998 shown: 1 Failing, 1 Stalled, 1 New, 997 Ready", "1 pipeline of 1000 failing"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := tc.o.checkValues(); err != nil {
				t.Fatal(err)
			}
			err := tc.o.printStatus(Streams{Out: &out}, many(1000), false)
			if fmt.Sprint(err) != tc.code && (err != nil || tc.code != "") {
				t.Errorf("got %v", err)
			}
			lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
			if len(lines) != tc.rows+1 || lines[len(lines)-1] != tc.last {
				t.Errorf("%d lines, the last one %q", len(lines), lines[len(lines)-1])
			}
		})
	}
}

func TestWatchShowsWhatIsNew(t *testing.T) {
	shown := map[string]string{}
	list := many(10)
	if got := changedSince(shown, list); len(got) != 10 {
		t.Errorf("at first %d", len(got))
	}
	if got := changedSince(shown, list); len(got) != 0 {
		t.Errorf("then %d", len(got))
	}
	list[4].State = server.StateFailing
	if got := changedSince(shown, list); len(got) != 1 || got[0].Name != "team/app-0004" {
		t.Errorf("then %v", got)
	}
}

// TestAConditionWithoutATime is that of a file that is no pipeline.
func TestAConditionWithoutATime(t *testing.T) {
	p := server.Pipeline{Name: "other", State: server.StateInvalid}
	p.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonInvalid}}
	var out bytes.Buffer
	if err := writePipelineStatus(&out, p); err != nil || !strings.Contains(out.String(), "ready  False, Invalid\n") {
		t.Errorf("error %v, got:\n%s", err, &out)
	}
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 119 * time.Second: "119s", 2 * time.Minute: "2m", 119 * time.Minute: "119m", 47 * time.Hour: "47h", 49 * time.Hour: "2d", -time.Hour: "0s"} {
		if got := shortAge(time.Now().Add(-d)); got != want {
			t.Errorf("%s: got %s", d, got)
		}
	}
}

// TestReport: what a thousand pipelines have in common is told once, what one has is told.
func TestReport(t *testing.T) {
	var results []dryrun.Result
	for i := range 1000 {
		name := fmt.Sprintf("app-%04d", i)
		r := dryrun.Result{Entry: catalog.Entry{Key: "team/" + name}, Built: &build.Built{Response: &render.Response{}}}
		r.Built.Results = result.Results{{Severity: result.Warning, Message: "pod " + name + " is risky", ResourceRef: &result.ResourceRef{Kind: "Deployment", Name: name}}}
		if i == 500 {
			r.Err = errors.New("this one is broken")
		}
		results = append(results, r)
	}
	var out bytes.Buffer
	if !reportProblems(&out, "", results, false) {
		t.Error("it did not fail")
	}
	got := out.String()
	if strings.Count(got, "\n") != 5 || !strings.Contains(got, "error: team/app-0500: this one is broken\n") || !strings.Contains(got, "and 997 more like this (-v prints them): warning: pod <name> is risky\n") {
		t.Errorf("got:\n%s", got)
	}
	out.Reset()
	if reportProblems(&out, "", results, true); strings.Count(out.String(), "\n") != 1001 {
		t.Errorf("%d lines", strings.Count(out.String(), "\n"))
	}
}

// TestStatusTellsOfAFullDisk: pipelines that are Ready are not all that there is to say then.
func TestStatusTellsOfAFullDisk(t *testing.T) {
	var out bytes.Buffer
	if err := catalogNotes(&out, server.Catalog{Problem: "the disk is full"}); err != nil || out.String() != "\nThe daemon is not ready: the disk is full\n" {
		t.Errorf("error %v, got %q", err, &out)
	}
}

func TestStatusSaysWhatWaitsForPeople(t *testing.T) {
	p := server.Pipeline{Name: "team/shop", State: server.StateReady, Message: "1 object"}
	r := &v1alpha1.PullRequestStatus{Number: 12, URL: "https://git.example.com/org/deploy/pulls/12", State: v1alpha1.PullRequestOpen, Since: metav1.NewTime(time.Now().Add(-75 * time.Hour))}
	p.Status.Published = []v1alpha1.Published{{Target: "https://git.example.com/org/deploy prod shop", Revision: "c0", SourceRevision: "main@sha1:ab", PullRequest: r}}
	for state, want := range map[string]string{
		v1alpha1.PullRequestOpen:   "pull request 12 waits for a merge, for 3d: https://git.example.com/org/deploy/pulls/12",
		v1alpha1.PullRequestClosed: "pull request 12 was closed by a person, 3d ago: https://git.example.com/org/deploy/pulls/12",
		v1alpha1.PullRequestEdited: "pull request 12 has commits of a person and waits for a merge, for 3d: https://git.example.com/org/deploy/pulls/12",
	} {
		r.State = state
		var list, detail bytes.Buffer
		if err := errors.Join(statusTable(&list, []server.Pipeline{p}, wide), writePipelineStatus(&detail, p)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(list.String(), want+"; 1 object") || !strings.Contains(detail.String(), want) || !strings.Contains(detail.String(), "  proposed ") {
			t.Errorf("got %s\n%s", list.String(), detail.String())
		}
	}
}
