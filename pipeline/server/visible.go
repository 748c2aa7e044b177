// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// pipelineViews shows users the pipelines that they may see.
type pipelineViews struct {
	catalog *catalog.Catalog
	store   *status.Store
	// isWaiting reports whether a pipeline has a job that no worker accepts. It may be nil.
	isWaiting func(pipeline string) bool
}

// withCurrentState answers requests after the store has read what other processes have saved.
func (v *pipelineViews) withCurrentState(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := v.store.Sync(r.Context()); err != nil {
			writeError(w, http.StatusServiceUnavailable, err)
			return
		}
		next(w, r)
	}
}

// mayRead reports whether a principal may see an entry. An invalid pipeline belongs to the namespaces of its tenant
// or, if its name could be read, to the namespace in that; otherwise only those who see all pipelines see it.
func mayRead(who access.Principal, e catalog.Entry) bool {
	switch {
	case who.MayEverywhere(access.Read):
		return true
	case e.Pipeline != nil:
		return who.May(access.Read, e.Pipeline.Metadata.Namespace)
	case len(e.Tenant) > 0:
		for _, namespace := range e.Tenant {
			if !who.May(access.Read, namespace) {
				return false
			}
		}
		return true
	}
	return !e.Opaque && !strings.Contains(e.Key, "#") && mayReadName(who, e.Key)
}

// mayReadName is mayRead for a deleted pipeline.
func mayReadName(who access.Principal, name string) bool {
	return who.May(access.Read, v1alpha1.NamespaceOf(name))
}

// visibleEntries returns the pipelines that the user may see, sorted by name.
func (v *pipelineViews) visibleEntries(who access.Principal) []catalog.Entry {
	var out []catalog.Entry
	for _, e := range v.catalog.All() {
		if mayRead(who, e) {
			out = append(out, e)
		}
	}
	return out
}

// visibleEntry returns a pipeline by name. One that is not to be known of is like one that does not exist.
func (v *pipelineViews) visibleEntry(who access.Principal, name string) (catalog.Entry, bool) {
	e, ok := v.catalog.Get(name)
	if !ok || !mayRead(who, e) {
		return catalog.Entry{}, false
	}
	return e, true
}

// checkRole returns the status code of the answer and why the user does not have a role for a pipeline.
func (v *pipelineViews) checkRole(who access.Principal, needed access.Role, name string) (code int, err error) {
	e, ok := v.visibleEntry(who, name)
	switch {
	case !ok:
		return http.StatusNotFound, fmt.Errorf("there is no pipeline %s", name)
	case e.Err != nil:
		return http.StatusNotFound, e.Err
	case !who.May(needed, e.Pipeline.Metadata.Namespace):
		return http.StatusForbidden, fmt.Errorf("changing pipeline %s: %w", name, errNotYours)
	}
	return 0, nil
}

// heldMessage replaces a message that reveals how many pipelines of others were deleted, or which file of theirs
// cannot be read.
const heldMessage = "Waiting for the operator of the daemon to confirm it."

// catalogView returns where the pipelines are from and what became of deleted ones, as far as the user may see
// them. Where they are from, and how that changes, reveals information about all pipelines.
func (h *catalogHandler) catalogView(who access.Principal) Catalog {
	all := who.MayEverywhere(access.Read)
	c := Catalog{Status: h.views.catalog.Status()}
	if each := h.views.catalog.Statuses(); all && len(each) > 1 {
		c.Catalogs = each
	}
	if !all {
		c.Status = catalog.Status{}
		if !h.views.catalog.IsReadable(func(namespace string) bool { return who.May(access.Read, namespace) }) {
			c.Error = "The operator of the daemon sees the reason."
		}
		for _, e := range h.views.visibleEntries(who) {
			if e.Err == nil {
				c.Pipelines++
			} else {
				c.Invalid++
			}
		}
	}
	if err := h.problem(); err != nil {
		c.Problem = err.Error()
	}
	for _, one := range h.removals() {
		if mayReadName(who, one.Pipeline) {
			if !all && one.State == prune.Held {
				one.Message = heldMessage
			}
			c.Removals = append(c.Removals, one)
		}
	}
	for _, one := range h.views.store.Removed() {
		if mayReadName(who, one.Pipeline) {
			c.Removed = append(c.Removed, one)
		}
	}
	return c
}

// removals lists the deleted pipelines.
func (h *catalogHandler) removals() []prune.Removal {
	if h.keeper == nil {
		return nil
	}
	return h.keeper.Removals()
}
