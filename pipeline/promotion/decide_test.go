// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

func minutes(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Minute}
}

// TestWhatAMergeWaitsFor changes one thing of a pull request that would be merged.
func TestWhatAMergeWaitsFor(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 30, 0, 0, time.UTC) // a Friday
	for name, tc := range map[string]struct {
		change func(s *Stage)
		want   string // part of the message, "" where it is merged
	}{
		"nothing":           {func(*Stage) {}, ""},
		"people merge":      {func(s *Stage) { s.Merge = v1alpha1.MergeManual }, "waits for people"},
		"a red status":      {func(s *Stage) { s.Checks[0].State = pullrequest.CheckRed }, "the status ci is red"},
		"a pending status":  {func(s *Stage) { s.Checks[0].State = pullrequest.CheckPending }, "waits for the status ci"},
		"a missing status":  {func(s *Stage) { s.When.Statuses = []string{"argocd/*"} }, "waits for the status argocd/*"},
		"a status that is":  {func(s *Stage) { s.When.Statuses = []string{"c*"} }, ""},
		"green for a while": {func(s *Stage) { s.When.GreenFor = minutes(60) }, "green; must stay green"},
		"of another commit": {func(s *Stage) { s.Known.Green.Commit = "other"; s.When.GreenFor = minutes(1) }, "green; must stay green"},
		"approvals":         {func(s *Stage) { s.When.Approvals = 2 }, "1 of 2 approvals"},
		"approvals of readers": {func(s *Stage) { s.When.Approvals, s.Opinions.Ignored = 2, []string{"sam (may not write)"} },
			"1 of 2 approvals, those not counted of sam (may not write)"},
		"changes wanted": {func(s *Stage) { s.Opinions.Declined = []string{"bob"} }, "asked for by bob"},
		"a freeze": {func(s *Stage) {
			s.When.Freeze = []v1alpha1.Freeze{{Days: []string{"Fri"}, From: "18:00", TimeZone: "Europe/Berlin"}}
		}, "its freeze Fri 18:00 to 24:00 Europe/Berlin"},
		"not yet a freeze":      {func(s *Stage) { s.When.Freeze = []v1alpha1.Freeze{{Days: []string{"Fri"}, From: "18:00"}} }, ""},
		"pipelines that differ": {func(s *Stage) { s.When.Approvals, s.Differ = 2, "its pipelines differ" }, "1 of 2 approvals; its pipelines differ"},
		"pipelines that differ in who merges": {func(s *Stage) { s.Merge, s.Differ = v1alpha1.MergeManual, "its pipelines differ" },
			"waits for people to merge it; its pipelines differ"},
		"a draft":            {func(s *Stage) { s.Request.Draft = true }, "draft"},
		"a person's commits": {func(s *Stage) { s.Edited = true }, "commits of a person"},
		"on hold":            {func(s *Stage) { s.OnHold = "team/shop" }, "team/shop is on hold"},
		"runs":               {func(s *Stage) { s.Busy = "1 run under way" }, "1 run under way"},
		"after another":      {func(s *Stage) { s.When.After = []v1alpha1.After{{Group: "other"}} }, "waits for staging to be merged"},
		"after a merge":      {func(s *Stage) { s.When.After = []v1alpha1.After{{Group: "merged", Delay: minutes(90)}} }, "waits after the merge of dev"},
		"long after a merge": {func(s *Stage) { s.When.After = []v1alpha1.After{{Group: "merged", Delay: minutes(60)}} }, ""},
		"after nobody":       {func(s *Stage) { s.When.After = []v1alpha1.After{{Group: "gone"}} }, "no pipelines"},
		"promoted": {func(s *Stage) {
			s.Known.Promoted = &status.Decision{Commit: "c1"}
			s.Merge, s.Checks[0].State = v1alpha1.MergeManual, pullrequest.CheckRed
		}, ""},
		"a commit that nobody knows": {func(s *Stage) { s.HeadCommits = []string{"c0"} }, "which none of its pipelines knows"},
		"promoted, with a commit that nobody knows": {func(s *Stage) {
			s.Known.Promoted, s.HeadCommits = &status.Decision{Commit: "c0"}, []string{"c0"}
		}, "which none of its pipelines knows"},
		"what some of them know": {func(s *Stage) { s.HeadCommits = []string{"c1", "c0"} }, ""},
		"promoted as it was":     {func(s *Stage) { s.Known.Promoted, s.Merge = &status.Decision{Commit: "c0"}, v1alpha1.MergeManual }, "waits for people"},
		"promoted and on hold":   {func(s *Stage) { s.Known.Promoted, s.OnHold = &status.Decision{Commit: "c1"}, "x" }, "x is on hold"},
	} {
		s := Stage{
			Name: "prod", Head: "own", Merge: v1alpha1.MergeWhenGreen, Waits: 1, HeadCommits: []string{"c0", "c1"},
			Request:  &pullrequest.Request{Number: 1, State: pullrequest.StateOpen, HeadCommit: "c1"},
			Checks:   []pullrequest.Check{{Name: "ci", State: pullrequest.CheckGreen}},
			Opinions: pullrequest.Opinions{Approved: []string{"ann"}},
			Known:    status.Group{Green: &status.Decision{Commit: "c1", At: now.Add(-30 * time.Minute)}},
		}
		tc.change(&s)
		others := map[string]Stage{
			"other":  {Name: "staging", Waits: 1},
			"merged": {Name: "dev", Known: status.Group{Landed: &status.Landed{At: now.Add(-time.Hour)}}},
		}
		v := Decide(Input{Now: now, Stages: []Stage{s}, Others: others})[0]
		if v.Merge != (tc.want == "") || !strings.Contains(v.Message, tc.want) {
			t.Errorf("%s: merged %v, %q; want %q", name, v.Merge, v.Message, tc.want)
		}
		// A message about something that passes by itself has its end beside it, and no other has.
		until := map[string]time.Time{
			"green for a while": now.Add(30 * time.Minute), "of another commit": now.Add(time.Minute),
			"after a merge": now.Add(30 * time.Minute),
		}[name]
		if !v.Until.Equal(until) {
			t.Errorf("%s: %q until %s, not %s", name, v.Message, v.Until, until)
		}
	}
}

// fleet is clusters in waves with a host, people and a clock, in memory.
type fleet struct {
	t      *testing.T
	random *rand.Rand
	now    time.Time
	stages []Stage
	waves  *v1alpha1.Waves
	number int64
	spread int // of the versions at the beginning
}

func newFleet(t *testing.T, seed uint64) *fleet {
	f := &fleet{t: t, random: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	f.waves = &v1alpha1.Waves{Statuses: []string{"deployed"}, GreenFor: minutes(10)}
	old, next := 20+f.random.IntN(3), 20+f.random.IntN(4)
	versions := Versions{}
	for i := range 2 + f.random.IntN(4) {
		s := Stage{Name: fmt.Sprint("wave", i), Head: fmt.Sprint("h", i), Merge: v1alpha1.MergeWhenGreen, Waits: f.random.IntN(3)}
		minor := old + f.random.IntN(2)
		s.Runs, s.Proposed = Versions{minor, minor}, Versions{minor, minor}
		if s.Waits > 0 {
			s.Proposed = Versions{next, next}
		}
		versions = versions.unionOfVersions(s.Runs)
		s.When.Freeze = []v1alpha1.Freeze{{From: "08:00", To: "10:00"}}
		s.HeadCommits = []string{fmt.Sprint("c", i)}
		f.stages, f.waves.Order = append(f.stages, s), append(f.waves.Order, s.Name)
	}
	f.spread = versions.minorVersionSpread()
	return f
}

// happens is what people, checks and pipelines do.
func (f *fleet) happens() {
	i := f.random.IntN(len(f.stages))
	s := &f.stages[i]
	states := []pullrequest.CheckState{pullrequest.CheckGreen, pullrequest.CheckGreen, pullrequest.CheckPending, pullrequest.CheckRed}
	switch f.random.IntN(8) {
	case 0:
		s.Checks = []pullrequest.Check{{Name: "ci", State: states[f.random.IntN(4)]}}
	case 1, 2:
		s.LandedChecks = []pullrequest.Check{{Name: "deployed", State: states[f.random.IntN(4)]}}
	case 3:
		s.Busy = ""
		if f.random.IntN(4) == 0 {
			s.Busy = "a run is under way"
		}
	case 4:
		s.OnHold = ""
		if f.random.IntN(4) == 0 {
			s.OnHold = "x"
		}
	case 5: // a person closes or merges what is open
		if s.Request == nil || s.Request.State != pullrequest.StateOpen {
			return
		}
		if f.random.IntN(3) > 0 {
			f.land(i)
		} else {
			s.Request.State, s.Declined, s.Waits = pullrequest.StateClosed, s.Waits, 0
		}
	case 6:
		s.Failing = ""
		if f.random.IntN(6) == 0 {
			s.Failing = "x"
		}
	}
	f.now = f.now.Add(time.Duration(f.random.IntN(20)) * time.Minute)
}

func (f *fleet) land(i int) {
	s := &f.stages[i]
	s.Request.State, s.Waits, s.Runs, s.InTrain = pullrequest.StateMerged, 0, s.Proposed, true
	s.Known.Landed = &status.Landed{Number: s.Request.Number, At: f.now}
	s.LandedChecks, s.Checks = nil, nil
}

// apply does what was decided, or dies before, or before it is stored.
func (f *fleet) apply(verdicts []Verdict) {
	for i, v := range verdicts {
		s := &f.stages[i]
		if f.random.IntN(10) == 0 {
			return
		}
		s.Known.Green = v.Green
		if v.Landed != nil {
			s.Known.Landed = v.Landed
		}
		if v.Open && (s.Request == nil || s.Request.State != pullrequest.StateOpen) {
			f.check(i, "opened")
			f.number++
			s.Request = &pullrequest.Request{Number: f.number, State: pullrequest.StateOpen, HeadCommit: s.HeadCommits[0]}
		}
		if v.Merge {
			f.check(i, "merged")
			if s.Request.State != pullrequest.StateOpen || s.OnHold != "" || f.now.Hour() >= 8 && f.now.Hour() < 10 {
				f.t.Errorf("%s was merged at %s: %+v, on hold %q", s.Name, f.now, s.Request, s.OnHold)
			}
			if state, text, _ := evaluateRequiredChecks(s.Checks, nil); state != pullrequest.CheckGreen {
				f.t.Errorf("%s was merged and %s", s.Name, text)
			}
			f.land(i)
		}
	}
}

// check says what must hold of all waves when one goes on: those before have nothing open and are green for as long as asked, and the
// versions are no further apart than is supported, or than they were.
func (f *fleet) check(i int, what string) {
	versions := f.stages[i].Proposed
	for j, s := range f.stages {
		if j != i {
			versions = versions.unionOfVersions(s.Runs)
		}
		if j >= i {
			continue
		}
		if s.Waits > 0 || s.Declined > 0 || s.Busy != "" || s.Failing != "" {
			f.t.Errorf("%s was %s with %+v before it", f.stages[i].Name, what, s)
		}
		if landed := s.Known.Landed; landed != nil {
			state, text, _ := evaluateRequiredChecks(s.LandedChecks, f.waves.Statuses)
			if state == pullrequest.CheckRed || !landed.Settled {
				f.t.Errorf("%s was %s and of %s %s, settled %v", f.stages[i].Name, what, s.Name, text, landed.Settled)
			}
		}
	}
	if versions.minorVersionSpread() > max(lint.SupportedSkew, f.spread) {
		f.t.Errorf("%s was %s with the versions %+v", f.stages[i].Name, what, versions)
	}
}

// TestWavesKeepTheirOrder has random people, checks, crashes and clocks.
func TestWavesKeepTheirOrder(t *testing.T) {
	merged := 0
	for seed := range uint64(400) {
		f := newFleet(t, seed)
		for range 200 {
			f.happens()
			f.apply(Decide(Input{Now: f.now, Waves: f.waves, Stages: f.stages}))
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for _, s := range f.stages {
			if s.Known.Landed != nil {
				merged++
			}
		}
	}
	if merged < 300 {
		t.Errorf("only %d waves were merged", merged)
	}
	t.Logf("%d waves were merged", merged)
}

// TestAPullRequestMergedWithinSecondsIsSeen: an open pull request that only runs under way know of keeps its wave under observation, as the
// first steps of a wave may see it neither waiting nor merged.
func TestAPullRequestMergedWithinSecondsIsSeen(t *testing.T) {
	for name, tc := range map[string]struct {
		busy  string
		state pullrequest.State
		want  string
	}{
		"runs under way, open":   {"1 run under way", pullrequest.StateOpen, StageOpen},
		"runs under way, merged": {"1 run under way", pullrequest.StateMerged, StageIdle},
		"no runs":                {"", pullrequest.StateOpen, StageIdle},
	} {
		stage := Stage{Name: "dev", Busy: tc.busy, Request: &pullrequest.Request{Number: 1, State: tc.state}}
		v := Decide(Input{Waves: &v1alpha1.Waves{Order: []string{"dev"}}, Stages: []Stage{stage}})[0]
		if v.State != tc.want {
			t.Errorf("%s: %s, want %s", name, v.State, tc.want)
		}
	}
}

// TestCountdownsAreStoredAsTheirEnd: a message with a duration would be wrong until the next look.
func TestCountdownsAreStoredAsTheirEnd(t *testing.T) {
	now := time.Date(2026, 11, 20, 17, 30, 0, 0, time.UTC)
	s := Stage{
		Name: "prod", Head: "own", Merge: v1alpha1.MergeWhenGreen, Waits: 1, HeadCommits: []string{"c1"},
		When:    v1alpha1.MergeWhen{GreenFor: minutes(60)},
		Request: &pullrequest.Request{Number: 1, State: pullrequest.StateOpen, HeadCommit: "c1"},
		Checks:  []pullrequest.Check{{Name: "ci", State: pullrequest.CheckGreen}},
		Known:   status.Group{Green: &status.Decision{Commit: "c1", At: now.Add(-30 * time.Minute)}},
	}
	v := Decide(Input{Now: now, Stages: []Stage{s}})[0]
	if !v.Until.Equal(now.Add(30*time.Minute)) || v.Message != "green; must stay green" {
		t.Errorf("%q until %s", v.Message, v.Until)
	}
	shown := StageStatus{Until: v.Until}
	if at, later := shown.Remaining(now), shown.Remaining(now.Add(29*time.Minute+40*time.Second)); at != "30 min more" ||
		later != "20 s more" || shown.Remaining(v.Until) != "" {
		t.Errorf("%q, then %q", at, later)
	}
}
