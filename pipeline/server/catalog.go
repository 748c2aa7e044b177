// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// Catalog describes where the pipelines are from, as the API shows it, and what happens to deleted ones.
type Catalog struct {
	catalog.Status
	// Catalogs are the individual directories and repositories, if more than one is configured.
	Catalogs []catalog.Status `json:"catalogs,omitempty"`
	// Problem is why the daemon currently cannot store or render, such as a full disk, or no workers.
	Problem string `json:"problem,omitempty"`
	// Removals are deleted pipelines that are not removed yet.
	Removals []prune.Removal `json:"removals,omitempty"`
	// Removed are the last ones that were removed, the newest first.
	Removed []status.Removed `json:"removed,omitempty"`
}

// RemoveRequest confirms that pipelines are removed that are held back.
type RemoveRequest struct {
	// Pipelines by name; All means every one that waits.
	Pipelines []string `json:"pipelines,omitempty"`
	All       bool     `json:"all,omitempty"`
	// Orphan leaves their files in place, whatever their deletion policies.
	Orphan bool `json:"orphan,omitempty"`
	// DryRun makes the daemon report what it would remove, without removing it.
	DryRun bool `json:"dryRun,omitempty"`
}

// RemoveAnswer is the answer to a RemoveRequest.
type RemoveAnswer struct {
	Answer
	// Plans are what a dry run would remove.
	Plans []prune.Removal `json:"plans,omitempty"`
}

// catalogHandler shows where pipelines are from, and confirms the removal of deleted ones.
type catalogHandler struct {
	views  *pipelineViews
	keeper *prune.Keeper // nil for none
	// problem returns why storing or rendering is currently impossible, or nil.
	problem func() error
	audit   *access.Audit
	log     *slog.Logger
}

// showCatalog reports where the pipelines are from and the state of their sources.
func (h *catalogHandler) showCatalog(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, h.catalogView(requestPrincipal(r)))
}

// removePipelines confirms removals.
func (h *catalogHandler) removePipelines(w http.ResponseWriter, r *http.Request) {
	var request RemoveRequest
	if !decodeRequest(w, r, &request) {
		return
	}
	who := requestPrincipal(r)
	names := request.Pipelines
	if request.All {
		names = nil
		for _, one := range h.removals() {
			if who.May(access.Administer, v1alpha1.NamespaceOf(one.Pipeline)) {
				names = append(names, one.Pipeline)
			}
		}
	}
	if h.keeper == nil || len(names) == 0 {
		writeError(w, http.StatusBadRequest, errors.New("the request names no deleted pipeline"))
		return
	}
	err := checkRemovable(who, names)
	if err == nil && request.DryRun {
		h.planRemovals(w, request, names)
		return
	}
	if err == nil {
		err = h.keeper.Confirm(r.Context(), names, request.Orphan)
	}
	if recordChange(h.audit, w, r, "remove", names, err) {
		h.log.Info("removals were confirmed", "pipelines", names, "orphan", request.Orphan)
		writeJSON(w, RemoveAnswer{Answer: Answer{Pipelines: names}})
	}
}

// planRemovals answers with what the confirmation of removals would remove.
func (h *catalogHandler) planRemovals(w http.ResponseWriter, request RemoveRequest, names []string) {
	answer := RemoveAnswer{Answer: Answer{Pipelines: names}}
	for _, one := range h.keeper.Removals() {
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

// errNotYours is the cause of an error about a pipeline that the user may see but not change.
var errNotYours = errors.New("you may look at it only")

// checkRemovable returns an error for the first pipeline whose removal the user may not confirm. One that they may
// not see is treated as if it never existed.
func checkRemovable(who access.Principal, names []string) error {
	for _, name := range names {
		switch {
		case who.May(access.Administer, v1alpha1.NamespaceOf(name)):
		case mayReadName(who, name):
			return fmt.Errorf("removing pipeline %s: %w", name, errNotYours)
		default:
			return fmt.Errorf("removing pipeline %s: %w", name, prune.ErrNotGone)
		}
	}
	return nil
}
