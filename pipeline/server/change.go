// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// reconcilePipelines asks for runs now.
func (s *Server) reconcilePipelines(w http.ResponseWriter, r *http.Request) {
	s.Catalog.Wake() // who asks may also have changed the pipelines a moment ago
	request, keys, ok := s.readRequest(w, r, func(Request) string { return "reconcile" })
	if !ok {
		return
	}
	if request.DryRun {
		s.planReconcile(w, r, request, keys)
		return
	}
	token, err := s.requestRuns(r.Context(), keys, request.Force)
	if !s.recordChange(w, r, "reconcile", keys, err) {
		return
	}
	s.Log.Info("reconcile was requested", "id", token, "pipelines", len(keys))
	writeJSON(w, Answer{Token: token, Pipelines: keys})
}

// requestRuns asks for runs and returns the token by which it is known when they are done.
func (s *Server) requestRuns(ctx context.Context, keys []string, force bool) (token string, err error) {
	now := time.Now().UTC()
	token = newToken(now)
	for _, key := range keys {
		err := s.Store.SetControl(ctx, key, func(c *status.Control) { c.RequestedAt, c.Force = token, force })
		if err == nil {
			err = s.queueRun(ctx, key, force, token, now, len(keys))
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
func (s *Server) queueRuns(ctx context.Context, keys []string, force bool, token string, now time.Time) error {
	for _, key := range keys {
		if err := s.queueRun(ctx, key, force, token, now, len(keys)); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) queueRun(ctx context.Context, key string, force bool, token string, now time.Time, batch int) error {
	return s.Queue.Request(ctx, queue.Job{Pipeline: key, Cause: token, Reason: "reconcile request", Since: now, NotBefore: now, Force: force, Batch: batch})
}

// suspendPipelines stops pipelines or lets them run again, which looks at them at once.
func (s *Server) suspendPipelines(w http.ResponseWriter, r *http.Request) {
	request, keys, ok := s.readRequest(w, r, suspendAction)
	if !ok || refusesDryRun(w, request) {
		return
	}
	change := s.setSuspended
	if request.Held {
		everywhere := request.All && requestPrincipal(r).MayEverywhere(access.Operate)
		change = func(ctx context.Context, keys []string, _ bool) error {
			return s.resumeHeldPipelines(ctx, keys, everywhere)
		}
		request.Suspended = false
	}
	if !s.recordChange(w, r, suspendAction(request), keys, change(r.Context(), keys, request.Suspended)) {
		return
	}
	s.Log.Info("pipelines were suspended or resumed", "pipelines", keys, "suspended", request.Suspended)
	writeJSON(w, Answer{Pipelines: keys})
}

// suspendAction names in the record what a request asks for.
func suspendAction(request Request) string {
	if request.Suspended {
		return "suspend"
	}
	return "resume"
}

func (s *Server) setSuspended(ctx context.Context, keys []string, suspended bool) error {
	var released []string
	now := time.Now().UTC()
	token := newToken(now)
	for _, key := range keys {
		err := s.Store.SetControl(ctx, key, func(c *status.Control) {
			if !suspended && c.OnHold != nil { // a rollback has left what is published behind what was rendered last
				released = append(released, key)
				c.OnHold, c.RequestedAt, c.Force = nil, token, true
			}
			c.Suspended = suspended
			s.Store.Confirm(c)
		})
		if err != nil {
			return err
		}
	}
	if suspended {
		return nil
	}
	if err := s.queueRuns(ctx, released, true, token, now); err != nil {
		return err
	}
	return s.Planner.Consider(ctx, keys, plan.Cause{ID: "resume-" + rand.Text(), Reason: "resumed", Since: time.Now(), Now: true})
}

// resumeHeldPipelines lets pipelines run that are held because state was lost. Suspensions that are known stay. With
// everywhere, no other one is held any more.
func (s *Server) resumeHeldPipelines(ctx context.Context, keys []string, everywhere bool) error {
	for _, key := range keys {
		if !s.Store.Control(key).Held {
			continue
		}
		if err := s.Store.SetControl(ctx, key, s.Store.Confirm); err != nil {
			return err
		}
	}
	if everywhere {
		if err := s.Store.ReleaseHold(ctx); err != nil {
			return err
		}
	}
	if err := s.Store.Sync(ctx); err != nil {
		return err
	}
	return s.Planner.Consider(ctx, keys, plan.Cause{ID: "resume-" + rand.Text(), Reason: "resumed", Since: time.Now(), Now: true})
}

// recordChange records what came of a change and answers where it failed; then it returns false.
func (s *Server) recordChange(w http.ResponseWriter, r *http.Request, action string, keys []string, err error) bool {
	if err != nil {
		s.recordAuditLine(r, action, keys, access.Failed, err.Error())
		writeError(w, http.StatusServiceUnavailable, err)
		return false
	}
	s.recordAuditLine(r, action, keys, access.Done, "")
	return true
}

// readRequest reads a request and finds its pipelines, those that who asks may operate. action names in the record what
// is refused.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request, action func(Request) string) (Request, []string, bool) {
	var request Request
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		writeError(w, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err))
		return request, nil, false
	}
	keys, code, err := s.findOperable(requestPrincipal(r), request)
	if err != nil {
		if code != http.StatusBadRequest {
			s.recordAuditLine(r, action(request), request.Pipelines, access.Refused, err.Error())
		}
		writeError(w, code, err)
		return request, nil, false
	}
	return request, keys, true
}

// findOperable returns the names of the valid pipelines that a request is about, or the status code of the answer
// and why it found none. A pipeline that the requester may not see is treated as non-existent.
func (s *Server) findOperable(who access.Principal, request Request) (keys []string, code int, err error) {
	for _, e := range s.Catalog.All() {
		if e.Err == nil && (request.All || slices.Contains(request.Pipelines, e.Key)) && who.May(access.Operate, e.Pipeline.Metadata.Namespace) {
			keys = append(keys, e.Key)
		}
	}
	for _, name := range request.Pipelines {
		if slices.Contains(keys, name) {
			continue
		}
		e, ok := s.visibleEntry(who, name)
		switch {
		case !ok:
			return nil, http.StatusNotFound, fmt.Errorf("there is no pipeline %s", name)
		case e.Err != nil:
			return nil, http.StatusNotFound, e.Err
		default:
			return nil, http.StatusForbidden, fmt.Errorf("changing pipeline %s: %w", name, errNotYours)
		}
	}
	if len(keys) == 0 {
		return nil, http.StatusBadRequest, errors.New("the request names no pipeline")
	}
	return keys, 0, nil
}
