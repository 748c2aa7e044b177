// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestPromotedIsOneContentOfWhatWasClosed closes the pull request of the first of two waves and promotes it, and changes one thing since.
func TestPromotedIsOneContentOfWhatWasClosed(t *testing.T) {
	const a, b = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	closed := now.Add(-time.Hour)
	again := closed.Add(2 * time.Minute) // also where nobody waits for long
	for name, tc := range map[string]struct {
		change func(s *Stage)
		goesOn bool
	}{
		"as it was":                            {func(*Stage) {}, true},
		"its branch was deleted":               {func(s *Stage) { s.Request.HeadCommit = "" }, true},
		"only its first characters are told":   {func(s *Stage) { s.Request.HeadCommit = a[:12] }, true},
		"the commit was not known":             {func(s *Stage) { s.Known.Promoted.Commit = "" }, true},
		"neither is known":                     {func(s *Stage) { s.Known.Promoted.Commit, s.Request.HeadCommit = "", "" }, true},
		"opened and closed again":              {func(s *Stage) { s.Request.ClosedAt = again }, true},
		"closed again with another content":    {func(s *Stage) { s.Request.HeadCommit, s.Request.ClosedAt = b, again }, false},
		"the same, and the branch was deleted": {func(s *Stage) { s.Request.HeadCommit, s.Request.ClosedAt = "", again }, false},
		"the same, and no commit was known":    {func(s *Stage) { s.Known.Promoted.Commit, s.Request.ClosedAt = "", again }, false},
		"opened again with another content":    {func(s *Stage) { s.Request.HeadCommit, s.Request.State = b, pullrequest.StateOpen }, false},
		"another was closed":                   {func(s *Stage) { s.Request.Number, s.Request.HeadCommit = 6, "" }, false},
		"some wait with another content":       {func(s *Stage) { s.Waits, s.HeadCommits = 1, []string{b} }, false},
		"some wait, with what is not known":    {func(s *Stage) { s.Waits = 1 }, false},
	} {
		first := Stage{
			Name: "dev", Head: "h0", Declined: 2,
			Request: &pullrequest.Request{Number: 5, State: pullrequest.StateClosed, HeadCommit: a, ClosedAt: closed.Add(300 * time.Millisecond)},
			Known:   status.Group{Promoted: &status.Decision{Commit: a, Number: 5, Closed: closed, At: closed.Add(time.Minute), By: "ann"}},
		}
		tc.change(&first)
		next := Stage{Name: "prod", Head: "h1", Waits: 1, HeadCommits: []string{"c1"}}
		waves := &v1alpha1.Waves{Order: []string{"dev", "prod"}}
		if got := Decide(Input{Now: now, Waves: waves, Stages: []Stage{first, next}}); got[1].Open != tc.goesOn {
			t.Errorf("%s: the next wave opens: %v, %+v", name, got[1].Open, got)
		}
		// One before it that is not through holds back what is new of it.
		before := Stage{Name: "test", Head: "h2", Waits: 1, HeadCommits: []string{"c2"}}
		waves = &v1alpha1.Waves{Order: []string{"test", "dev"}}
		if got := Decide(Input{Now: now, Waves: waves, Stages: []Stage{before, first}}); got[1].Open {
			t.Errorf("%s: it opens before its turn: %+v", name, got)
		}
	}
}

// TestPromoteRemembersWhenItWasClosed promotes what a person has closed, with its branch gone.
func TestPromoteRemembersWhenItWasClosed(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	g := &group{members: []member{{key: "a", published: &v1alpha1.Published{
		PullRequest: &v1alpha1.PullRequestStatus{Number: 5, State: v1alpha1.PullRequestClosed, Since: metav1.NewTime(at)},
	}}}}
	if got := g.pendingDecisionSubject([]string{"a"}); got == nil || got.Number != 5 || !got.Closed.Equal(at) {
		t.Errorf("got %+v", got)
	}
}
