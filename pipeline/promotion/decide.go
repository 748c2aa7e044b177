// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// Stage is what is known of a group of results that share a pull request.
type Stage struct {
	Name, Head string
	// Merge and When are its policy. Differ describes in what its pipelines disagree about it.
	Merge  v1alpha1.MergePolicy
	When   v1alpha1.MergeWhen
	Differ string
	// Waits counts the pipelines whose results wait on the head, Declined those whose results a person has closed.
	Waits, Declined int
	// Busy is the reason why the waiting results may be incomplete, or "" if no run is under way. Failing names one
	// of its pipelines that fails.
	Busy, Failing string
	// Unsettled reports whether merged results still seem to wait, and none of its pipelines is about to look.
	Unsettled bool
	// OnHold names a pipeline of it that is on hold or suspended and waits. Held names one that is on hold, whether it
	// waits or not.
	OnHold, Held string
	// HeadCommits are what waits, as its pipelines know it: those that were not asked for a while know an older head than others.
	HeadCommits []string
	// Request is the newest pull request from its head, or nil if none exists. Edited reports whether others have
	// pushed to the head.
	Request *pullrequest.Request
	Edited  bool
	// Checks and Opinions are of the head as it is.
	Checks   []pullrequest.Check
	Opinions pullrequest.Opinions
	// LandedChecks are the checks of the last merge, InTrain reports whether it was in this train.
	LandedChecks []pullrequest.Check
	InTrain      bool
	// Runs are the versions of Istio that its clusters run, Proposed those that they would run.
	Runs, Proposed Versions
	// Known is what is remembered of it.
	Known status.Group
}

// Input is what is decided about: the groups of a branch, waves in their order.
type Input struct {
	Now time.Time
	// Waves is nil where the stages are in no order.
	Waves  *v1alpha1.Waves
	Stages []Stage
	// Others are the groups that stages come after, by their heads, where they are not among the stages.
	Others map[string]Stage
}

// Verdict is what is decided of a stage.
type Verdict struct {
	// State and Message are displayed. The third field is the message in pieces, as it may name pipelines of
	// others.
	State, Message string
	Told           status.Text
	// Until is when what it waits for is over, zero where only others know.
	Until time.Time
	// Open reports whether it should have a pull request, Merge whether this one should be merged now.
	Open, Merge bool
	// Green is since when all statuses of the head are green, nil where they are not.
	Green *status.Decision
	// Landed is what is known now of what was merged last.
	Landed *status.Landed
}

// Decide returns the verdict for each stage. It depends only on its input.
func Decide(in Input) []Verdict {
	d := decision{in: in}
	busy := d.incompleteWavesReason()
	var blocked status.Text
	stopped := false
	out := make([]Verdict, len(in.Stages))
	for i := range in.Stages {
		s, v := &in.Stages[i], &out[i]
		settled, why := true, status.Text(nil)
		if in.Waves != nil {
			settled, why = d.verifyMergedWave(s, v)
		} else {
			v.Landed = s.Known.Landed
		}
		if s.Waits > 0 {
			d.decideWaiting(i, v, blocked, busy)
		} else if v.State == "" {
			if v.setStateAndMessage(stateOfNoResults(s), status.Plain(s.Busy)); !settled && s.Known.Landed != nil {
				v.setStateAndMessage(StageVerifying, why)
			}
		}
		if in.Waves == nil {
			continue
		}
		switch {
		case stopped:
		case s.Declined > 0 && !s.isPromoted():
			v.setStateAndMessage(StageStopped, status.Plain("a person has closed its pull request; prerig daemon promote goes on without it"))
			blocked, stopped = s.quoteStageMessage(s.Name+" is stopped", v.Told), true
		case v.State == StageStopped:
			blocked, stopped = s.quoteStageMessage(s.Name+" is stopped", v.Told), true
		case blocked == nil && s.Waits > 0:
			blocked = status.Plain("waits for " + s.Name + " to be merged")
		case blocked == nil && !settled:
			blocked = s.quoteStageMessage("waits for "+s.Name, why)
		}
	}
	return out
}

// textGreen is about what is green, and not for long enough; the verdict has the time when it is.
const textGreen = "green; must stay green"

type decision struct{ in Input }

// incompleteWavesReason returns why the waves are not complete yet.
func (d decision) incompleteWavesReason() status.Text {
	if d.in.Waves == nil {
		return nil
	}
	for _, s := range d.in.Stages {
		if s.Busy != "" {
			return status.Text{{Text: s.Name + ": "}, {Text: s.Busy, Head: s.Head, Else: "runs are under way"}}
		}
	}
	return nil
}

// stateOfNoResults returns the state of a stage of which no result waits. One with an open pull request, which its runs have yet to
// store, stays under observation, however soon it is merged.
func stateOfNoResults(s *Stage) string {
	switch {
	case s.Busy != "" && s.Request != nil && s.Request.State == pullrequest.StateOpen:
		return StageOpen
	case s.Known.Landed != nil:
		return StageDone
	}
	return StageIdle
}

// isPromoted reports whether a person has let the stage go on as it is.
func (s *Stage) isPromoted() bool {
	p, r := s.Known.Promoted, s.Request
	switch {
	case p == nil:
		return false
	case r != nil && r.State == pullrequest.StateOpen: // its branch may have moved beyond what its pipelines know
		return p.IsOf(r.HeadCommit)
	case len(s.HeadCommits) > 0 && !slices.ContainsFunc(s.HeadCommits, func(head string) bool { return !p.IsOf(head) }):
		return true
	case r == nil:
		return false
	case s.Waits > 0:
		return false // that differs from what was closed
	case p.Commit != "" && r.HeadCommit != "":
		return isCommit(r.HeadCommit, p.Commit)
	}
	// Who has closed it may have deleted its branch, too. What is opened again may get other content before it is closed once more.
	since := p.Closed.Truncate(time.Second)
	return p.Number > 0 && s.Declined > 0 && r.State == pullrequest.StateClosed && r.Number == p.Number &&
		(since.IsZero() || !r.ClosedAt.Truncate(time.Second).After(since))
}

// shortHash is the length of the commit hash that Bitbucket Cloud returns once its branch is deleted.
const shortHash = 12

// isCommit reports whether the commit returned by a host is this one.
func isCommit(told, commit string) bool {
	return told == commit || len(told) >= shortHash && strings.HasPrefix(commit, told)
}

// verifyMergedWave looks at what was merged last of a wave: the next one waits until that is green for long enough.
func (d decision) verifyMergedWave(s *Stage, v *Verdict) (settled bool, why status.Text) {
	if s.Held != "" {
		return false, textAboutPipeline(s.Held, " is on hold")
	}
	if s.Failing != "" {
		return false, textAboutPipeline(s.Failing, " fails")
	}
	if s.Busy != "" {
		return false, status.Plain(s.Busy)
	}
	if s.Known.Landed == nil {
		return true, nil
	}
	landed := *s.Known.Landed
	v.Landed = &landed
	if landed.At.After(d.in.Now) {
		landed.At = d.in.Now // the clock was set back since
	}
	if landed.Settled && !s.InTrain {
		return true, nil
	}
	state, text, newest := evaluateRequiredChecks(s.LandedChecks, d.in.Waves.Statuses)
	landed.Red = ""
	switch state {
	case pullrequest.CheckRed:
		landed.Red, landed.GreenSince, landed.Settled = text, time.Time{}, false
		v.setStateAndMessage(StageStopped, status.Plain("after the merge "+text))
		return false, v.Told
	case pullrequest.CheckPending:
		landed.GreenSince = time.Time{}
		v.setStateAndMessage(StageVerifying, status.Plain("after the merge "+text))
		return landed.Settled, v.Told
	}
	if landed.GreenSince.IsZero() {
		landed.GreenSince = d.in.Now
	}
	landed.GreenSince = laterReportedTime(landed.GreenSince, newest, d.in.Now)
	if left := lengthOf(d.in.Waves.GreenFor) - d.in.Now.Sub(landed.GreenSince); left > 0 && !landed.Settled {
		v.setStateAndMessage(StageVerifying, status.Plain(textGreen))
		v.Until = d.in.Now.Add(left)
		return false, v.Told
	}
	landed.Settled = true
	return true, nil
}

// decideWaiting decides about what waits.
func (d decision) decideWaiting(i int, v *Verdict, blocked, busy status.Text) {
	s := &d.in.Stages[i]
	promoted := s.isPromoted()
	open := s.Request != nil && s.Request.State == pullrequest.StateOpen
	if blocked != nil && !promoted {
		v.setStateAndMessage(StageWaiting, blocked)
		return
	}
	if d.in.Waves != nil {
		if text := d.versionSkewReason(i); text != "" {
			v.setStateAndMessage(StageStopped, status.Plain(text))
			return
		}
	}
	v.Open = true
	if !open {
		if v.setStateAndMessage(StageWaiting, status.Plain("its pull request is being opened")); d.in.Waves == nil {
			v.setStateAndMessage(StageOpen, status.Plain("its pull request is being merged or opened"))
		}
		return
	}
	v.Merge = d.mayMerge(s, v, promoted, busy)
}

// mayMerge reports whether an open pull request should be merged now, and otherwise records in the verdict what it
// waits for.
func (d decision) mayMerge(s *Stage, v *Verdict, promoted bool, busy status.Text) bool {
	state, text, newest := evaluateRequiredChecks(s.Checks, s.When.Statuses)
	if state == pullrequest.CheckGreen {
		v.Green = &status.Decision{Commit: s.Request.HeadCommit, At: d.in.Now}
		if known := s.Known.Green; known != nil && known.Commit == s.Request.HeadCommit {
			v.Green.At = known.At
		}
		v.Green.At = laterReportedTime(v.Green.At, newest, d.in.Now)
	}
	for _, reason := range []status.Text{s.reasonNeverMerged(), busy, status.Plain(s.Busy)} {
		if reason != nil {
			v.setStateAndMessage(StageOpen, reason)
			return false
		}
	}
	if promoted {
		v.setStateAndMessage(StageOpen, status.Plain("was promoted"))
		return true
	}
	if state == pullrequest.CheckRed {
		if v.setStateAndMessage(StageOpen, status.Plain(text)); d.in.Waves != nil {
			v.State = StageStopped
		}
		return false
	}
	if s.Merge != v1alpha1.MergeWhenGreen {
		v.setStateAndMessage(StageOpen, s.addPolicyMismatch(status.Plain("waits for people to merge it")))
		return false
	}
	if reason, left := d.reasonNotMergeable(s, v, state, text); reason != nil {
		v.setStateAndMessage(StageOpen, s.addPolicyMismatch(reason))
		if left > 0 {
			v.Until = d.in.Now.Add(left)
		}
		return false
	}
	v.setStateAndMessage(StageOpen, status.Plain("is green"))
	return true
}

// addPolicyMismatch adds to what a pull request waits for that not all of its pipelines ask for it.
func (s *Stage) addPolicyMismatch(reason status.Text) status.Text {
	if s.Differ == "" {
		return reason
	}
	return append(reason, status.Part{Text: "; " + s.Differ})
}

// hasMoved reports whether the branch of an open pull request has a commit that none of its pipelines knows. It may
// be a person's: only reading the branch reveals that.
func (s *Stage) hasMoved() bool {
	return s.Waits > 0 && s.Request != nil && s.Request.State == pullrequest.StateOpen && !slices.Contains(s.HeadCommits, s.Request.HeadCommit)
}

// reasonNeverMerged returns why Prerig does not merge a pull request regardless of who wants it.
func (s *Stage) reasonNeverMerged() status.Text {
	switch {
	case s.Edited:
		return status.Plain(editedText)
	case s.hasMoved():
		return status.Plain(fmt.Sprintf("has the commit %.12s on its branch, which none of its pipelines knows; they are asked to look at it", s.Request.HeadCommit))
	case s.Request.Draft:
		return status.Plain("is a draft")
	case s.OnHold != "":
		return textAboutPipeline(s.OnHold, " is on hold")
	}
	return nil
}

// reasonNotMergeable returns what a pull request waits for that is merged when it is green, and for how long where that is
// known.
func (d decision) reasonNotMergeable(s *Stage, v *Verdict, state pullrequest.CheckState, text string) (reason status.Text, left time.Duration) {
	for _, freeze := range s.When.Freeze {
		if freeze.Contains(d.in.Now) {
			return status.Plain("nothing is merged now, by its freeze " + freeze.String()), 0
		}
	}
	for _, after := range s.When.After {
		if text, left := d.reasonPredecessorUnmerged(after); text != nil {
			return text, left
		}
	}
	if len(s.Opinions.Declined) > 0 {
		return status.Plain("changes were asked for by " + quoteNames(s.Opinions.Declined)), 0
	}
	if state != pullrequest.CheckGreen {
		return status.Plain(text), 0
	}
	if left := lengthOf(s.When.GreenFor) - d.in.Now.Sub(v.Green.At); left > 0 {
		return status.Plain(textGreen), left
	}
	if missing := s.When.Approvals - len(s.Opinions.Approved); missing > 0 {
		text := fmt.Sprintf("has %d of %d approvals", len(s.Opinions.Approved), s.When.Approvals)
		if len(s.Opinions.Ignored) > 0 {
			text += ", those not counted of " + quoteNames(s.Opinions.Ignored)
		}
		return status.Plain(text), 0
	}
	return nil, 0
}

// reasonPredecessorUnmerged returns why another group is not merged, or not for long enough, and then for how long.
// After.Group is a head here.
func (d decision) reasonPredecessorUnmerged(after v1alpha1.After) (reason status.Text, left time.Duration) {
	other, ok := d.in.Others[after.Group]
	for _, s := range d.in.Stages {
		if s.Head == after.Group {
			other, ok = s, true
		}
	}
	// Of those who share the pull request, some may not know what it waits for on behalf of others.
	name := status.Part{Text: other.Name, Head: after.Group, Else: "another group"}
	switch {
	case !ok:
		name.Text = "the group " + after.Group
		return status.Text{{Text: "waits for "}, name, {Text: ", of which there are no pipelines"}}, 0
	case other.Waits > 0:
		return status.Text{{Text: "waits for "}, name, {Text: " to be merged"}}, 0
	case other.Declined > 0:
		return status.Text{{Text: "waits for "}, name, {Text: ", whose pull request a person has closed"}}, 0
	case other.Busy != "" && other.Failing != "":
		return append(status.Text{{Text: "waits for "}, name, {Text: ": " + other.Busy + " "}}, textAboutPipeline(other.Failing, "")...), 0
	case other.Failing != "":
		return append(status.Text{{Text: "waits for "}, name, {Text: ": "}}, textAboutPipeline(other.Failing, "")...), 0
	case other.Busy != "":
		return status.Text{{Text: "waits for "}, name, {Text: ": " + other.Busy}}, 0
	case other.Known.Landed == nil:
		return nil, 0
	}
	if left := lengthOf(after.Delay) - d.in.Now.Sub(other.Known.Landed.At); left > 0 {
		return status.Text{{Text: "waits after the merge of "}, name}, left
	}
	return nil, 0
}
