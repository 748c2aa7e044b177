// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
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
	// DryRun reports that the changes were not made, only determined.
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

// promotionHandler shows promotions, and promotes, holds and rolls back pipelines.
type promotionHandler struct {
	promoter *promotion.Promoter // nil for none
	views    *pipelineViews
	runs     *runControl
	audit    *access.Audit
	log      *slog.Logger
}

// listPromotions returns the promotions in progress, restricted to the pipelines that the user may see.
func (h *promotionHandler) listPromotions(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, h.promotionsFor(requestPrincipal(r)))
}

// promotionsFor returns the merges, waves and rollbacks that the user may see. A rollback of several namespaces is
// visible to those who may read all of them, and of a waiting group only one's own pipelines are shown.
func (h *promotionHandler) promotionsFor(who access.Principal) Promotions {
	out := Promotions{Promotions: []promotion.Promotion{}, Rollbacks: []status.Rollback{}}
	if h.promoter == nil {
		return out
	}
	mayRead := func(name string) bool { return mayReadName(who, name) }
	out.Promotions = append(out.Promotions, h.promoter.Promotions(mayRead)...)
	for _, one := range h.views.store.Rollbacks() {
		if mayRead(one.Pipeline) && !slices.ContainsFunc(one.Pipelines, func(name string) bool { return !mayRead(name) }) {
			out.Rollbacks = append(out.Rollbacks, one)
		}
	}
	return out
}

// promotePipelines ends the hold of pipelines, and lets what waits of them go on.
func (h *promotionHandler) promotePipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := h.readPromotion(w, r, "promote")
	if !ok {
		return
	}
	who := requestPrincipal(r)
	if request.DryRun {
		plan, err := h.promoter.PlanPromote(keys, mayOperate(who))
		if err != nil {
			writeError(w, codeOfError(err), shownToOthers(err))
			return
		}
		writeJSON(w, PromoteAnswer{Answer: Answer{Pipelines: keys}, Released: plan.Released, Groups: plan.Groups, DryRun: true})
		return
	}
	now := time.Now().UTC()
	token := newToken(now)
	// Who hangs up has still asked for it, and half of it would be done.
	ctx := context.WithoutCancel(r.Context())
	done, err := h.promoter.Promote(ctx, keys, who.Name, token, mayOperate(who))
	answer := PromoteAnswer{Answer: Answer{Pipelines: keys}, Released: done.Released, Groups: done.Groups}
	if len(done.Released) > 0 { // also where the rest failed: they are not on hold any more
		answer.Token = token
		err = errors.Join(err, h.runs.queueRuns(ctx, done.Released, true, token, now))
	}
	if !h.answerPromotion(w, r, "promote", keys, err) {
		return
	}
	h.log.Info("pipelines were promoted", "pipelines", keys, "released", done.Released, "groups", done.Groups, "by", who.Name)
	writeJSON(w, answer)
}

// holdPipelines puts pipelines on hold.
func (h *promotionHandler) holdPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := h.readPromotion(w, r, "hold")
	if !ok || refusesDryRun(w, request) {
		return
	}
	if !h.answerPromotion(w, r, "hold", keys, h.promoter.Hold(r.Context(), keys, requestPrincipal(r).Name, request.Reason)) {
		return
	}
	h.log.Info("pipelines were put on hold", "pipelines", keys, "by", requestPrincipal(r).Name, "reason", request.Reason)
	writeJSON(w, Answer{Pipelines: keys})
}

// rollBackPipelines reverts the last publication of pipelines.
func (h *promotionHandler) rollBackPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := h.readPromotion(w, r, "rollback")
	if !ok {
		return
	}
	who := requestPrincipal(r)
	if request.DryRun {
		plans, err := h.promoter.PlanRollback(r.Context(), keys, request.Commit, mayOperate(who))
		if err != nil {
			writeError(w, codeOfError(err), shownToOthers(err))
			return
		}
		writeJSON(w, RollbackAnswer{Answer: Answer{Pipelines: keys}, Rollbacks: []status.Rollback{}, Plans: plans})
		return
	}
	// Who hangs up has still asked for it, and half of it would be done.
	done, err := h.promoter.Rollback(context.WithoutCancel(r.Context()), keys, request.Commit, who.Name, mayOperate(who))
	if !h.answerPromotion(w, r, "rollback", keys, err) {
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
func (h *promotionHandler) readPromotion(w http.ResponseWriter, r *http.Request, action string) (Request, []string, bool) {
	if h.promoter == nil {
		writeError(w, http.StatusServiceUnavailable, errNoPromoter)
		return Request{}, nil, false
	}
	return h.views.readRequest(h.audit, w, r, func(Request) string { return action })
}

// mayOperate returns a function that returns why the user may not change a pipeline, or nil if they may. It does
// not name a pipeline that they may not see.
func mayOperate(who access.Principal) func(pipeline string) error {
	return func(pipeline string) error {
		if who.May(access.Operate, v1alpha1.NamespaceOf(pipeline)) { // even if it was deleted or is no longer valid
			return nil
		}
		return errNotYours
	}
}

// answerPromotion is recordChange for what would change pipelines of others, too, which the answer does not name.
func (h *promotionHandler) answerPromotion(w http.ResponseWriter, r *http.Request, action string, keys []string, err error) bool {
	if errors.Is(err, errNotYours) {
		recordAuditLine(h.audit, r, action, keys, access.Refused, err.Error())
		writeError(w, http.StatusForbidden, errOthersToo)
		return false
	}
	return recordChange(h.audit, w, r, action, keys, err)
}

// codeOfError is the status of an answer to what failed.
func codeOfError(err error) int {
	switch {
	case errors.Is(err, errNotYours):
		return http.StatusForbidden
	case errors.Is(err, prune.ErrNotGone):
		return http.StatusNotFound
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
