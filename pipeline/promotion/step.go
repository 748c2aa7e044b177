// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// Look decides once about everything that is due.
func (p *Promoter) Look(ctx context.Context) {
	units, _ := p.unitsAndGroups()
	if !slices.ContainsFunc(units, func(u *unit) bool { return u.isActive(p.Store) }) {
		return
	}
	pending, err := p.Queue.Pending(ctx)
	if err == nil {
		err = p.Store.Sync(ctx) // a run that is not pending any more has saved its state
	}
	if err != nil {
		p.Log.Warn("what waits for a merge cannot be looked at", "error", err)
		return
	}
	units, groups := p.unitsAndGroups()
	for _, u := range units {
		if !u.isActive(p.Store) {
			continue
		}
		s := &step{p: p, u: u, train: p.Store.Train(u.key), groups: groups, pending: pending}
		s.readKnownState()
		if !s.hasWork() || !p.retries.isDueFor(u.key, s.stagesSignature(), p.now()) {
			continue
		}
		err := s.observeDecideAct(ctx)
		p.retries.record(u.key, p.now(), err)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("what waits for a merge is looked at again later", "url", u.url, "branch", u.branch, "error", err)
		}
	}
}

// step is one look at a unit, and what follows.
type step struct {
	p       *Promoter
	u       *unit
	groups  map[string]*group
	pending map[string]bool
	train   status.Train
	stages  []Stage
	others  map[string]Stage
}

// readKnownState reads what this process knows.
func (s *step) readKnownState() {
	now := s.p.now()
	s.stages, s.others = nil, map[string]Stage{}
	for _, g := range s.u.groups {
		stage := g.knownStage(s.p.Store.Group(g.key), s.pending, now)
		landed := stage.Known.Landed
		stage.InTrain = landed != nil && !landed.Train.IsZero() && landed.Train.Equal(s.train.Started)
		s.stages = append(s.stages, stage)
		for _, after := range stage.When.After {
			if other := s.groups[groupKey(g.to.Git, after.Group)]; other != nil {
				s.others[after.Group] = other.knownStage(s.p.Store.Group(other.key), s.pending, now)
			}
		}
	}
}

func (s *step) stagesSignature() string {
	parts := []string{fmt.Sprint(s.train)}
	for i := range s.stages {
		parts = append(parts, s.stages[i].stageSignature())
	}
	return strings.Join(parts, "\n")
}

// hasWork reports whether anything waits, is to be verified, or has to be shown as done.
func (s *step) hasWork() bool {
	if s.train.Revision != "" || s.train.Held {
		return true
	}
	return slices.ContainsFunc(s.stages, func(one Stage) bool {
		k := one.Known
		return one.Waits+one.Declined > 0 || one.Busy != "" || k.State == StageOpen || k.State == StageWaiting || k.Promoted != nil
	})
}

// observeDecideAct asks the host, decides, and does it.
func (s *step) observeDecideAct(ctx context.Context) error {
	if s.isUnseen() {
		return s.showRevision(ctx)
	}
	landed := false
	for i := range s.stages {
		found, err := s.observeStage(ctx, i)
		if err != nil {
			return err
		}
		landed = landed || found
	}
	if landed {
		// What was merged is settled first: until then its results seem to wait.
		return nil
	}
	for i, g := range s.u.groups {
		if !s.stages[i].Unsettled {
			continue
		}
		// The process that found the merge died before it asked the pipelines to look.
		if err := s.p.settleWaitingPipelines(ctx, g, "its pull request was merged"); err != nil {
			return err
		}
	}
	if err := s.lookAtMoved(ctx); err != nil {
		return err
	}
	verdicts := Decide(Input{Now: s.p.now(), Waves: s.u.waves, Stages: s.stages, Others: s.others})
	if err := s.storeVerdicts(ctx, verdicts); err != nil {
		return err
	}
	if s.u.waves != nil {
		if err := s.moveTrain(ctx, verdicts); err != nil {
			return err
		}
	}
	for i, v := range verdicts {
		if v.Merge {
			if err := s.mergeStage(ctx, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// lookAtMoved has pipelines look at branches with a commit that none of them knows, less and less often for one commit: a pipeline that
// fails may never come to look.
func (s *step) lookAtMoved(ctx context.Context) error {
	for i, g := range s.u.groups {
		stage := &s.stages[i]
		if !stage.hasMoved() || stage.Busy != "" {
			continue
		}
		what := "moved " + g.key + " " + stage.Request.HeadCommit
		if !s.p.retries.isDue(what, s.p.now()) {
			continue
		}
		s.p.retries.record(what, s.p.now(), errMoved)
		if err := s.p.settleWaitingPipelines(ctx, g, errMoved.Error()); err != nil {
			return err
		}
	}
	return nil
}

// errMoved is why pipelines look at the branch of a pull request.
var errMoved = errors.New("its branch has moved")

// observeStage asks the host about a stage. It reports whether something was merged that was not known, and stores
// that.
func (s *step) observeStage(ctx context.Context, i int) (landed bool, err error) {
	if landed, err = s.askHostAboutStage(ctx, i); landed && err == nil {
		err = s.recordLanded(ctx, i)
	}
	return landed, err
}

// askHostAboutStage is observe without storing anything.
func (s *step) askHostAboutStage(ctx context.Context, i int) (landed bool, err error) {
	stage, g := &s.stages[i], s.u.groups[i]
	known := stage.Known.Landed
	verifies := s.u.waves != nil && known != nil && (!known.Settled || stage.InTrain)
	// A pull request that is merged within seconds may have ended before any step has seen it: the runs of its pipelines have.
	isBusy := s.u.waves != nil && stage.Busy != ""
	if stage.Waits+stage.Declined == 0 && stage.Known.State != StageOpen && !verifies && !isBusy && s.train.Revision == "" {
		return false, nil
	}
	err = s.p.withMemberCredentials(ctx, g, func(a asker) error {
		landed, err = s.askHostWithCredentials(ctx, i, a, verifies)
		return err
	})
	if pullrequest.IsNotFound(err) && stage.Waits == 0 && stage.Request == nil {
		return false, nil
	}
	return landed, err
}

// askHostWithCredentials is ask with the credentials of one of the pipelines.
func (s *step) askHostWithCredentials(ctx context.Context, i int, a asker, verifies bool) (landed bool, err error) {
	stage, g := &s.stages[i], s.u.groups[i]
	known := stage.Known.Landed
	stage.Request = nil
	host, err := s.p.Targets.Merger(ctx, a.namespace, a.to)
	if err != nil {
		return false, err
	}
	if stage.Request, err = host.Find(ctx, g.head, a.to.Git.Branch); err != nil {
		return false, err
	}
	r := stage.Request
	if r != nil && r.State == pullrequest.StateMerged && (known == nil || r.Number > known.Number) {
		return true, nil
	}
	if r != nil && r.State == pullrequest.StateOpen && stage.Waits > 0 {
		if stage.Checks, err = host.Checks(ctx, r.HeadCommit); err != nil {
			return false, err
		}
		if stage.Merge == v1alpha1.MergeWhenGreen {
			if stage.Opinions, err = host.Opinions(ctx, r.Number); err != nil {
				return false, err
			}
		}
	}
	if !verifies {
		return false, nil
	}
	if known.Commit != "" {
		stage.LandedChecks, err = s.landedChecks(ctx, host, a, known.Commit)
	}
	stage.LandedChecks = append(stage.LandedChecks, s.p.clusterChecks(g, known)...)
	return false, err
}

// clusterChecks returns what the comparisons of clusters report about a group since it was merged.
func (p *Promoter) clusterChecks(g *group, landed *status.Landed) []pullrequest.Check {
	if p.Clusters == nil {
		return nil
	}
	var entries []v1alpha1.Publish
	for _, m := range g.members {
		entries = append(entries, m.entry)
	}
	since := landed.Seen
	if now := p.now(); since.After(now) {
		since = now // the clock was set back since
	}
	return p.Clusters(entries, since)
}

// landedChecks returns the checks of the merged commit, and of the newest commit of the branch, which contains it:
// a deployer of a branch reports on the commit that it has seen, which may be a later one.
func (s *step) landedChecks(ctx context.Context, host pullrequest.Merger, a asker, commit string) ([]pullrequest.Check, error) {
	all, err := host.Checks(ctx, commit)
	if err != nil {
		return nil, err
	}
	tip, err := s.p.Targets.BaseTip(ctx, a.namespace, a.to)
	if err != nil || tip == commit || tip == "" {
		return all, err
	}
	more, err := host.Checks(ctx, tip)
	if err != nil {
		return nil, err
	}
	for _, one := range more {
		at := slices.IndexFunc(all, func(old pullrequest.Check) bool { return old.Name == one.Name })
		switch {
		case at < 0:
			all = append(all, one)
		case one.At.After(all[at].At):
			all[at] = one
		}
	}
	return all, nil
}

// longAgo distinguishes a merge that was never looked at from a recent one.
const longAgo = 10 * time.Minute

// recordLanded stores a merge that was found, and has the results that it holds be settled.
func (s *step) recordLanded(ctx context.Context, i int) error {
	stage, g := &s.stages[i], s.u.groups[i]
	r, now := stage.Request, s.p.now().UTC()
	landed := &status.Landed{Number: r.Number, Head: r.HeadCommit, Commit: r.MergeCommit, URL: r.URL, At: r.ClosedAt.UTC(), Seen: now, Train: s.train.Started}
	if m := stage.Known.Merging; m != nil && m.Commit == r.HeadCommit {
		landed.By = m.By
	}
	// The clock of the host may be wrong: what was open at the last look was merged since.
	wasOpen := landed.By != "" || stage.Known.State == StageOpen
	old := !wasOpen && landed.At.Before(now.Add(-longAgo))
	if wasOpen && now.Sub(landed.At).Abs() > longAgo || landed.At.After(now) {
		landed.At = now
	}
	if s.train.Revision == "" || old && landed.At.Before(s.train.Started) {
		landed.Settled, landed.Train = s.u.waves != nil && old, time.Time{}
	}
	// The train is closed first: once the merge is stored, it is not found again.
	if !landed.Train.IsZero() {
		if err := s.p.Store.ChangeTrain(ctx, s.u.key, func(t *status.Train) bool { t.Closed = true; return true }); err != nil {
			return err
		}
	}
	err := s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool {
		k.Head, k.Landed, k.Promoted, k.Green = g.head, landed, nil, nil
		return true
	})
	if err != nil {
		return err
	}
	who := "somebody"
	if landed.By != "" {
		who = landed.By
	}
	s.p.Log.Info("a pull request was merged", "head", g.head, "number", r.Number, "commit", r.MergeCommit, "by", who)
	return s.p.settleWaitingPipelines(ctx, g, "its pull request was merged")
}

// storeVerdicts stores what was decided, before it is shown or done.
func (s *step) storeVerdicts(ctx context.Context, verdicts []Verdict) error {
	for i, v := range verdicts {
		g := s.u.groups[i]
		before := s.stages[i].Known
		err := s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool {
			old := *k
			k.Head, k.Green = g.head, v.Green
			if v.Landed != nil && k.Landed != nil && v.Landed.Number == k.Landed.Number {
				k.Landed = v.Landed
			}
			if k.State != v.State {
				k.Since = s.p.now().UTC()
			}
			k.State, k.Until = v.State, v.Until.UTC()
			k.Say(v.Told)
			return !reflect.DeepEqual(old, *k)
		})
		if err != nil {
			return err
		}
		if before.State != v.State {
			s.p.Log.Info("a group has another state", "head", g.head, "state", v.State, "message", v.Message)
		}
	}
	return nil
}
