// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// errNotNow is about a pull request that is not to be merged any more.
var errNotNow = errors.New("what it waits for has changed")

// recheckBeforeMerge decides again about a stage that is about to be merged, based on the current stored state and the
// current pull request, its statuses and reviews. For other stages it uses the previous answers of the host.
func (s *step) recheckBeforeMerge(ctx context.Context, i int) error {
	pending, err := s.p.Queue.Pending(ctx)
	if err == nil {
		err = s.p.Store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("deciding once more about a merge: %w", err)
	}
	units, groups := s.p.unitsAndGroups()
	at := slices.IndexFunc(units, func(u *unit) bool { return u.key == s.u.key })
	if at < 0 || len(units[at].groups) != len(s.u.groups) {
		return errNotNow
	}
	now := &step{p: s.p, u: units[at], train: s.p.Store.Train(s.u.key), groups: groups, pending: pending}
	if now.readKnownState(); now.isUnseen() {
		return errNotNow
	}
	for j := range now.stages {
		now.stages[j].Request, now.stages[j].LandedChecks = s.stages[j].Request, s.stages[j].LandedChecks
	}
	landed, err := now.askHostAboutStage(ctx, i)
	if err != nil {
		return fmt.Errorf("deciding once more about a merge: %w", err)
	}
	request := now.stages[i].Request
	if landed || request == nil || request.HeadCommit != s.stages[i].Request.HeadCommit || request.Number != s.stages[i].Request.Number {
		return errNotNow
	}
	if !Decide(Input{Now: s.p.now(), Waves: now.u.waves, Stages: now.stages, Others: now.others})[i].Merge {
		return errNotNow
	}
	return nil
}

// mergedBy is the recorded author of a merge that no person has promoted.
const mergedBy = "Prerig"

// mergeStage merges the pull request of a stage. That it does is stored first, so that a merge whose answer is lost is
// known for its own.
func (s *step) mergeStage(ctx context.Context, i int) error {
	stage, g := &s.stages[i], s.u.groups[i]
	r := stage.Request
	decided := &status.Decision{Commit: r.HeadCommit, At: s.p.now().UTC(), By: mergedBy}
	if stage.isPromoted() {
		decided.By = stage.Known.Promoted.By
	}
	err := s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool { k.Merging = decided; return true })
	if err != nil {
		return err
	}
	method := pullrequest.MergeMethod(stage.When.Method)
	if method == "" {
		method = pullrequest.MergeCommit
	}
	var merged *pullrequest.Request
	err = s.p.withMemberCredentials(ctx, g, func(a asker) error {
		recheck := func(ctx context.Context) error { return s.recheckBeforeMerge(ctx, i) }
		merged, err = s.p.Targets.MergeUnderLock(ctx, a.namespace, a.to, r, method, recheck)
		return err
	})
	switch {
	case errors.Is(err, errNotNow): // the next look reports why
		return s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool { k.Merging = nil; return true })
	case errors.Is(err, pullrequest.ErrNotOpen):
		return nil // another process was faster
	case errors.Is(err, publish.ErrEdited):
		told := g.resultTextForMember(err, status.OneLine(err.Error()), editedText)
		saved := s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool { k.Merging = nil; k.Say(told); return true })
		return errors.Join(err, saved, s.p.settleWaitingPipelines(ctx, g, errMoved.Error()))
	case err != nil:
		told := append(status.Plain("the host does not merge it"), g.resultTextForMember(err, ": "+status.OneLine(err.Error()), "")...)
		saved := s.p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool { k.Say(told); return true })
		return errors.Join(err, saved)
	}
	s.p.Log.Info("merged", "head", g.head, "number", r.Number, "commit", merged.MergeCommit, "by", decided.By)
	s.p.Wake()
	return nil
}
