// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
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

// refusesDryRun answers a request to only report what cannot be reported, and would be done instead.
func refusesDryRun(w http.ResponseWriter, request Request) bool {
	if request.DryRun {
		writeError(w, http.StatusBadRequest, errors.New("there is no dry run of this"))
	}
	return request.DryRun
}

// planReconcile answers with what a forced reconcile would put back. What it would render anew is not shown.
func (s *Server) planReconcile(w http.ResponseWriter, r *http.Request, request Request, keys []string) {
	switch {
	case !request.Force:
		err := errors.New("a dry run shows what force puts back; prerig diff shows what a run would change")
		writeError(w, http.StatusBadRequest, err)
		return
	case len(keys) > maxPlans:
		err := fmt.Errorf("a dry run is of at most %d pipelines, and %d are asked for", maxPlans, len(keys))
		writeError(w, http.StatusBadRequest, err)
		return
	case s.Promoter == nil || s.Promoter.Targets == nil:
		writeError(w, http.StatusServiceUnavailable, errNoPromoter)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), planTimeout)
	defer cancel()
	answer := ReconcileAnswer{Answer: Answer{Pipelines: keys}}
	for _, key := range keys {
		e, ok := s.Catalog.Get(key)
		if !ok || e.Err != nil {
			continue
		}
		found, err := publish.PreviewPutBack(ctx, s.Promoter.Targets, e.Pipeline, s.Store.Get(key))
		if err != nil {
			writeError(w, http.StatusServiceUnavailable, fmt.Errorf("comparing what is published of %s: %w", key, err))
			return
		}
		answer.Plans = append(answer.Plans, ReconcilePlan{Pipeline: key, Diff: found})
	}
	writeJSON(w, answer)
}

// planRemovals answers with what the confirmation of removals would remove.
func (s *Server) planRemovals(w http.ResponseWriter, request RemoveRequest, names []string) {
	answer := RemoveAnswer{Answer: Answer{Pipelines: names}}
	for _, one := range s.Keeper.Removals() {
		if !slices.Contains(names, one.Pipeline) {
			continue
		}
		if request.Orphan {
			one.Policy = v1alpha1.DeletionOrphan
		}
		answer.Plans = append(answer.Plans, one)
	}
	for _, name := range names {
		if !slices.ContainsFunc(answer.Plans, func(one prune.Removal) bool { return one.Pipeline == name }) {
			writeError(w, http.StatusNotFound, fmt.Errorf("removing pipeline %s: %w", name, prune.ErrNotGone))
			return
		}
	}
	writeJSON(w, answer)
}
