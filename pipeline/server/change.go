// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/server/access"
)

// ReconcileAnswer is the answer to a request to reconcile.
type ReconcileAnswer struct {
	Answer
	// Plans are what a dry run would put back, one for each pipeline.
	Plans []ReconcilePlan `json:"plans,omitempty"`
}

// ReconcilePlan is what a forced reconcile would put back of a pipeline.
type ReconcilePlan struct {
	Pipeline string `json:"pipeline"`
	// Diff is what others have changed of the published files, the other way round.
	Diff *status.Diff `json:"diff,omitempty"`
}

// changeHandler has pipelines run, suspended and resumed by the API.
type changeHandler struct {
	views    *pipelineViews
	runs     *runControl
	promoter *promotion.Promoter // nil for none
	audit    *access.Audit
	log      *slog.Logger
}

// reconcilePipelines asks for runs now.
func (h *changeHandler) reconcilePipelines(w http.ResponseWriter, r *http.Request) {
	h.views.catalog.Wake() // who asks may also have changed the pipelines a moment ago
	request, keys, ok := h.views.readRequest(h.audit, w, r, func(Request) string { return "reconcile" })
	if !ok {
		return
	}
	if request.DryRun {
		h.planReconcile(w, r, request, keys)
		return
	}
	token, err := h.runs.requestRuns(r.Context(), keys, request.Force)
	if !recordChange(h.audit, w, r, "reconcile", keys, err) {
		return
	}
	h.log.Info("reconcile was requested", "id", token, "pipelines", len(keys))
	writeJSON(w, Answer{Token: token, Pipelines: keys})
}

// planReconcile answers with what a forced reconcile would put back. What it would render again is not shown.
func (h *changeHandler) planReconcile(w http.ResponseWriter, r *http.Request, request Request, keys []string) {
	switch {
	case !request.Force:
		err := errors.New("a dry run shows what force puts back; prerig diff shows what a run would change")
		writeError(w, http.StatusBadRequest, err)
		return
	case len(keys) > maxPlans:
		err := fmt.Errorf("a dry run is of at most %d pipelines, and %d are asked for", maxPlans, len(keys))
		writeError(w, http.StatusBadRequest, err)
		return
	case h.promoter == nil || h.promoter.Targets == nil:
		writeError(w, http.StatusServiceUnavailable, errNoPromoter)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), planTimeout)
	defer cancel()
	answer := ReconcileAnswer{Answer: Answer{Pipelines: keys}}
	for _, key := range keys {
		e, ok := h.views.catalog.Get(key)
		if !ok || e.Err != nil {
			continue
		}
		found, err := publish.PreviewPutBack(ctx, h.promoter.Targets, e.Pipeline, h.views.store.Get(key))
		if err != nil {
			writeError(w, http.StatusServiceUnavailable, fmt.Errorf("comparing what is published of %s: %w", key, err))
			return
		}
		answer.Plans = append(answer.Plans, ReconcilePlan{Pipeline: key, Diff: found})
	}
	writeJSON(w, answer)
}

// runControl requests runs, and controls which pipelines run.
type runControl struct {
	store   *status.Store
	queue   *queue.Queue
	planner *plan.Planner
}

// requestRuns asks for runs and returns the token by which it is known when they are done.
func (r *runControl) requestRuns(ctx context.Context, keys []string, force bool) (token string, err error) {
	now := time.Now().UTC()
	token = newToken(now)
	for _, key := range keys {
		err := r.store.SetControl(ctx, key, func(c *status.Control) { c.RequestedAt, c.Force = token, force })
		if err == nil {
			err = r.queueRun(ctx, key, force, token, now, len(keys))
		}
		if err != nil {
			return token, err
		}
	}
	return token, nil
}

// newToken names a request for runs.
func newToken(now time.Time) string {
	return now.Format("2006-01-02T15:04:05.000000000Z") + "-" + rand.Text()
}

// queueRuns asks for runs whose request is stored already.
func (r *runControl) queueRuns(ctx context.Context, keys []string, force bool, token string, now time.Time) error {
	for _, key := range keys {
		if err := r.queueRun(ctx, key, force, token, now, len(keys)); err != nil {
			return err
		}
	}
	return nil
}

func (r *runControl) queueRun(ctx context.Context, key string, force bool, token string, now time.Time, batch int) error {
	return r.queue.Request(ctx, queue.Job{Pipeline: key, Cause: token, Reason: "reconcile request", Since: now, NotBefore: now, Force: force, Batch: batch})
}

// suspendPipelines stops pipelines or lets them run again, which looks at them at once.
func (h *changeHandler) suspendPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := h.views.readRequest(h.audit, w, r, suspendAction)
	if !ok || refusesDryRun(w, request) {
		return
	}
	change := h.runs.setSuspended
	if request.Held {
		everywhere := request.All && requestPrincipal(r).MayEverywhere(access.Operate)
		change = func(ctx context.Context, keys []string, _ bool) error {
			return h.runs.resumeHeldPipelines(ctx, keys, everywhere)
		}
		request.Suspended = false
	}
	if !recordChange(h.audit, w, r, suspendAction(request), keys, change(r.Context(), keys, request.Suspended)) {
		return
	}
	h.log.Info("pipelines were suspended or resumed", "pipelines", keys, "suspended", request.Suspended)
	writeJSON(w, Answer{Pipelines: keys})
}

// suspendAction names in the record what a request asks for.
func suspendAction(request Request) string {
	if request.Suspended {
		return "suspend"
	}
	return "resume"
}

func (r *runControl) setSuspended(ctx context.Context, keys []string, suspended bool) error {
	var released []string
	now := time.Now().UTC()
	token := newToken(now)
	for _, key := range keys {
		err := r.store.SetControl(ctx, key, func(c *status.Control) {
			if !suspended && c.OnHold != nil { // a rollback has left what is published behind what was rendered last
				released = append(released, key)
				c.OnHold, c.RequestedAt, c.Force = nil, token, true
			}
			c.Suspended = suspended
			r.store.Confirm(c)
		})
		if err != nil {
			return err
		}
	}
	if suspended {
		return nil
	}
	if err := r.queueRuns(ctx, released, true, token, now); err != nil {
		return err
	}
	return r.planner.Consider(ctx, keys, plan.Cause{ID: "resume-" + rand.Text(), Reason: "resumed", Since: time.Now(), Now: true})
}

// resumeHeldPipelines lets pipelines run that are held because state was lost. Suspensions that are known stay. With
// everywhere, no other one is held any more.
func (r *runControl) resumeHeldPipelines(ctx context.Context, keys []string, everywhere bool) error {
	for _, key := range keys {
		if !r.store.Control(key).Held {
			continue
		}
		if err := r.store.SetControl(ctx, key, r.store.Confirm); err != nil {
			return err
		}
	}
	if everywhere {
		if err := r.store.ReleaseHold(ctx); err != nil {
			return err
		}
	}
	if err := r.store.Sync(ctx); err != nil {
		return err
	}
	return r.planner.Consider(ctx, keys, plan.Cause{ID: "resume-" + rand.Text(), Reason: "resumed", Since: time.Now(), Now: true})
}

// recordChange records what came of a change and answers where it failed; then it returns false.
func recordChange(audit *access.Audit, w http.ResponseWriter, r *http.Request, action string, keys []string, err error) bool {
	if err == nil {
		recordAuditLine(audit, r, action, keys, access.Done, "")
		return true
	}
	code, outcome := codeOfError(err), access.Failed
	if code == http.StatusForbidden || code == http.StatusNotFound {
		outcome = access.Refused
	}
	recordAuditLine(audit, r, action, keys, outcome, err.Error())
	writeError(w, code, err)
	return false
}

// refusesDryRun answers a request to only report what cannot be reported, and would be done instead.
func refusesDryRun(w http.ResponseWriter, request Request) bool {
	if request.DryRun {
		writeError(w, http.StatusBadRequest, errors.New("there is no dry run of this"))
	}
	return request.DryRun
}

// decodeRequest reads a request, or answers why it is none.
func decodeRequest(w http.ResponseWriter, r *http.Request, request any) bool {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(request)
	if err != nil {
		writeError(w, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err))
	}
	return err == nil
}

// readRequest reads a request and finds its pipelines, those that who asks may operate. action names in the record what
// is refused.
func (v *pipelineViews) readRequest(audit *access.Audit, w http.ResponseWriter, r *http.Request, action func(Request) string) (Request, []string, bool) {
	var request Request
	if !decodeRequest(w, r, &request) {
		return request, nil, false
	}
	keys, code, err := v.findOperable(requestPrincipal(r), request)
	if err != nil {
		if code != http.StatusBadRequest {
			recordAuditLine(audit, r, action(request), request.Pipelines, access.Refused, err.Error())
		}
		writeError(w, code, err)
		return request, nil, false
	}
	return request, keys, true
}

// findOperable returns the names of the valid pipelines that a request is about, or the status code of the answer
// and why it found none. A pipeline that the requester may not see is treated as non-existent.
func (v *pipelineViews) findOperable(who access.Principal, request Request) (keys []string, code int, err error) {
	for _, e := range v.catalog.All() {
		if e.Err == nil && (request.All || slices.Contains(request.Pipelines, e.Key)) && who.May(access.Operate, e.Pipeline.Metadata.Namespace) {
			keys = append(keys, e.Key)
		}
	}
	for _, name := range request.Pipelines {
		if slices.Contains(keys, name) {
			continue
		}
		if code, err = v.checkRole(who, access.Operate, name); err != nil {
			return nil, code, err
		}
		keys = append(keys, name)
	}
	if len(keys) == 0 {
		return nil, http.StatusBadRequest, errors.New("the request names no pipeline")
	}
	return keys, 0, nil
}
