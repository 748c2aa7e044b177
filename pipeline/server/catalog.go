// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

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
	// Problem is why the daemon currently stores or renders nothing, such as a full disk, or no workers.
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

// showCatalog reports where the pipelines are from and the state of their sources.
func (s *Server) showCatalog(w http.ResponseWriter, r *http.Request) {
	if err := s.Store.Sync(r.Context()); err != nil {
		writeError(w, http.StatusServiceUnavailable, err)
		return
	}
	writeJSON(w, s.catalogView(requestPrincipal(r)))
}

// removePipelines confirms removals.
func (s *Server) removePipelines(w http.ResponseWriter, r *http.Request) {
	var request RemoveRequest
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&request); err != nil {
		writeError(w, http.StatusBadRequest, fmt.Errorf("reading the request: %w", err))
		return
	}
	who := requestPrincipal(r)
	names := request.Pipelines
	if request.All {
		names = nil
		for _, one := range s.removals() {
			if who.May(access.Administer, v1alpha1.NamespaceOf(one.Pipeline)) {
				names = append(names, one.Pipeline)
			}
		}
	}
	if s.Keeper == nil || len(names) == 0 {
		writeError(w, http.StatusBadRequest, errors.New("the request names no pipeline that is gone"))
		return
	}
	err := checkRemovable(who, names)
	if err == nil && request.DryRun {
		s.planRemovals(w, request, names)
		return
	}
	if err == nil {
		err = s.Keeper.Confirm(r.Context(), names, request.Orphan)
	}
	switch {
	case errors.Is(err, prune.ErrNotGone):
		s.recordAuditLine(r, "remove", names, access.Refused, err.Error())
		writeError(w, http.StatusNotFound, err)
	case errors.Is(err, errNotYours):
		s.recordAuditLine(r, "remove", names, access.Refused, err.Error())
		writeError(w, http.StatusForbidden, err)
	case err != nil:
		s.recordAuditLine(r, "remove", names, access.Failed, err.Error())
		writeError(w, http.StatusServiceUnavailable, err)
	default:
		s.Log.Info("removals were confirmed", "pipelines", names, "orphan", request.Orphan)
		s.recordAuditLine(r, "remove", names, access.Done, "")
		writeJSON(w, RemoveAnswer{Answer: Answer{Pipelines: names}})
	}
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
