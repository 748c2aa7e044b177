// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/server/access"
)

// PromoteAnswer is the answer to a request to promote.
type PromoteAnswer struct {
	Answer
	// Released are those of the pipelines that were on hold and run again now, Groups the branches of the pull requests that are merged
	// or opened next, whatever the policies wait for.
	Released []string `json:"released,omitempty"`
	Groups   []string `json:"groups,omitempty"`
	// DryRun reports that nothing was changed, and that this is what would be.
	DryRun bool `json:"dryRun,omitempty"`
}

// RollbackAnswer is the answer to a request to roll back: Pipelines are all that are on hold because of it.
type RollbackAnswer struct {
	Answer
	Rollbacks []status.Rollback `json:"rollbacks"`
	// Plans are what a dry run would do.
	Plans []promotion.RollbackPlan `json:"plans,omitempty"`
}

// Promotions are the merges, waves and rollbacks in progress.
type Promotions struct {
	Promotions []promotion.Promotion `json:"promotions"`
	// Rollbacks, newest first.
	Rollbacks []status.Rollback `json:"rollbacks"`
}

// errNoPromoter is returned by the server of a process that makes no decisions.
var errNoPromoter = errors.New("this process neither merges nor rolls back")

func (s *Server) routePromotions(mux *http.ServeMux) {
	mux.Handle("GET /api/v1/promotions", s.requireSomeRole(access.Read, s.listPromotions))
	mux.Handle("POST /api/v1/promote", s.requireSomeRole(access.Operate, s.promotePipelines))
	mux.Handle("POST /api/v1/hold", s.requireSomeRole(access.Operate, s.holdPipelines))
	mux.Handle("POST /api/v1/rollback", s.requireSomeRole(access.Operate, s.rollBackPipelines))
}

// listPromotions returns the promotions in progress, restricted to the pipelines that the user may see.
func (s *Server) listPromotions(w http.ResponseWriter, r *http.Request) {
	if err := s.Store.Sync(r.Context()); err != nil {
		writeError(w, http.StatusServiceUnavailable, err)
		return
	}
	writeJSON(w, s.promotionsFor(requestPrincipal(r)))
}

// promotionsFor returns the merges, waves and rollbacks that the user may see. A rollback of several namespaces is
// visible to those who may read all of them, and of a waiting group only one's own pipelines are shown.
func (s *Server) promotionsFor(who access.Principal) Promotions {
	out := Promotions{Promotions: []promotion.Promotion{}, Rollbacks: []status.Rollback{}}
	if s.Promoter == nil {
		return out
	}
	mayRead := func(name string) bool { return mayReadName(who, name) }
	out.Promotions = append(out.Promotions, s.Promoter.Promotions(mayRead)...)
	for _, one := range s.Store.Rollbacks() {
		if mayRead(one.Pipeline) && !slices.ContainsFunc(one.Pipelines, func(name string) bool { return !mayRead(name) }) {
			out.Rollbacks = append(out.Rollbacks, one)
		}
	}
	return out
}

// promotePipelines ends the hold of pipelines, and lets what waits of them go on.
func (s *Server) promotePipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := s.readPromotion(w, r, "promote")
	if !ok {
		return
	}
	who := requestPrincipal(r)
	if request.DryRun {
		plan, err := s.Promoter.PlanPromote(keys, s.mayOperate(who))
		if err != nil {
			writeError(w, codeOfPromotion(err), shownToOthers(err))
			return
		}
		writeJSON(w, PromoteAnswer{Answer: Answer{Pipelines: keys}, Released: plan.Released, Groups: plan.Groups, DryRun: true})
		return
	}
	now := time.Now().UTC()
	token := newToken(now)
	// Who hangs up has still asked for it, and half of it would be done.
	ctx := context.WithoutCancel(r.Context())
	done, err := s.Promoter.Promote(ctx, keys, who.Name, token, s.mayOperate(who))
	answer := PromoteAnswer{Answer: Answer{Pipelines: keys}, Released: done.Released, Groups: done.Groups}
	if len(done.Released) > 0 { // also where the rest failed: they are not on hold any more
		answer.Token = token
		err = errors.Join(err, s.queueRuns(ctx, done.Released, true, token, now))
	}
	if !s.answerPromotion(w, r, "promote", keys, err) {
		return
	}
	s.Log.Info("pipelines were promoted", "pipelines", keys, "released", done.Released, "groups", done.Groups, "by", who.Name)
	writeJSON(w, answer)
}

// holdPipelines puts pipelines on hold.
func (s *Server) holdPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := s.readPromotion(w, r, "hold")
	if !ok || refusesDryRun(w, request) {
		return
	}
	if !s.answerPromotion(w, r, "hold", keys, s.Promoter.Hold(r.Context(), keys, requestPrincipal(r).Name, request.Reason)) {
		return
	}
	s.Log.Info("pipelines were put on hold", "pipelines", keys, "by", requestPrincipal(r).Name, "reason", request.Reason)
	writeJSON(w, Answer{Pipelines: keys})
}

// rollBackPipelines reverts the last publication of pipelines.
func (s *Server) rollBackPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := s.readPromotion(w, r, "rollback")
	if !ok {
		return
	}
	who := requestPrincipal(r)
	if request.DryRun {
		plans, err := s.Promoter.PlanRollback(r.Context(), keys, request.Commit, s.mayOperate(who))
		if err != nil {
			writeError(w, codeOfPromotion(err), shownToOthers(err))
			return
		}
		writeJSON(w, RollbackAnswer{Answer: Answer{Pipelines: keys}, Rollbacks: []status.Rollback{}, Plans: plans})
		return
	}
	// Who hangs up has still asked for it, and half of it would be done.
	done, err := s.Promoter.Rollback(context.WithoutCancel(r.Context()), keys, request.Commit, who.Name, s.mayOperate(who))
	if !s.answerPromotion(w, r, "rollback", keys, err) {
		return
	}
	answer := RollbackAnswer{Rollbacks: done}
	for _, one := range done {
		answer.Pipelines = append(answer.Pipelines, one.Pipelines...)
	}
	slices.Sort(answer.Pipelines)
	answer.Pipelines = slices.Compact(answer.Pipelines)
	writeJSON(w, answer)
}

// readPromotion is readRequest for what needs the promoter.
func (s *Server) readPromotion(w http.ResponseWriter, r *http.Request, action string) (Request, []string, bool) {
	if s.Promoter == nil {
		writeError(w, http.StatusServiceUnavailable, errNoPromoter)
		return Request{}, nil, false
	}
	return s.readRequest(w, r, func(Request) string { return action })
}

// mayOperate returns a function that returns why the user may not change a pipeline, or nil if they may. It does
// not name a pipeline that they may not see.
func (s *Server) mayOperate(who access.Principal) func(pipeline string) error {
	return func(pipeline string) error {
		if who.May(access.Operate, v1alpha1.NamespaceOf(pipeline)) { // even if it was deleted or is no longer valid
			return nil
		}
		return errNotYours
	}
}

// answerPromotion records a change and answers where it failed; then it returns false.
func (s *Server) answerPromotion(w http.ResponseWriter, r *http.Request, action string, keys []string, err error) bool {
	if errors.Is(err, errNotYours) {
		s.recordAuditLine(r, action, keys, access.Refused, err.Error())
		writeError(w, http.StatusForbidden, errOthersToo)
		return false
	}
	if err != nil {
		s.recordAuditLine(r, action, keys, access.Failed, err.Error())
		writeError(w, codeOfPromotion(err), err)
		return false
	}
	return s.recordChange(w, r, action, keys, nil)
}

// codeOfPromotion is the status of an answer to what failed.
func codeOfPromotion(err error) int {
	if errors.Is(err, errNotYours) {
		return http.StatusForbidden
	}
	refusals := []error{
		publish.ErrNothingPublished, publish.ErrNoRollback, promotion.ErrRolledBack, publish.ErrNotInHistory, publish.ErrNotPublished, publish.ErrEditedSince,
		publish.ErrChangedSince,
	}
	if slices.ContainsFunc(refusals, func(one error) bool { return errors.Is(err, one) }) {
		return http.StatusConflict
	}
	return http.StatusServiceUnavailable
}

// shownToOthers is an error without the names of pipelines of others.
func shownToOthers(err error) error {
	if errors.Is(err, errNotYours) {
		return errOthersToo
	}
	return err
}

// errOthersToo does not name the pipelines of others.
var errOthersToo = fmt.Errorf("it would change pipelines that are not yours, too: %w", errNotYours)
