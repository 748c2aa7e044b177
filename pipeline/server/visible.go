// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/server/access"
)

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
func (s *Server) visibleEntries(who access.Principal) []catalog.Entry {
	var out []catalog.Entry
	for _, e := range s.Catalog.All() {
		if mayRead(who, e) {
			out = append(out, e)
		}
	}
	return out
}

// visibleEntry returns a pipeline by name. One that is not to be known of is like one that does not exist.
func (s *Server) visibleEntry(who access.Principal, name string) (catalog.Entry, bool) {
	e, ok := s.Catalog.Get(name)
	if !ok || !mayRead(who, e) {
		return catalog.Entry{}, false
	}
	return e, true
}

// heldMessage replaces a message that reveals how many pipelines of others were deleted, or which file of theirs
// cannot be read.
const heldMessage = "It waits until who runs the daemon has looked at it."

// catalogView returns where the pipelines are from and what became of deleted ones, as far as the user may see
// them. Where they are from, and how that changes, reveals information about all pipelines.
func (s *Server) catalogView(who access.Principal) Catalog {
	all := who.MayEverywhere(access.Read)
	c := Catalog{Status: s.Catalog.Status()}
	if each := s.Catalog.Statuses(); all && len(each) > 1 {
		c.Catalogs = each
	}
	if !all {
		c.Status = catalog.Status{}
		if !s.Catalog.IsReadable(func(namespace string) bool { return who.May(access.Read, namespace) }) {
			c.Error = "Who runs the daemon sees why."
		}
		for _, e := range s.visibleEntries(who) {
			if e.Err == nil {
				c.Pipelines++
			} else {
				c.Invalid++
			}
		}
	}
	if err := s.readinessProblem(); err != nil {
		c.Problem = err.Error()
	}
	for _, one := range s.removals() {
		if mayReadName(who, one.Pipeline) {
			if !all && one.State == prune.Held {
				one.Message = heldMessage
			}
			c.Removals = append(c.Removals, one)
		}
	}
	for _, one := range s.Store.Removed() {
		if mayReadName(who, one.Pipeline) {
			c.Removed = append(c.Removed, one)
		}
	}
	return c
}

// removals lists the deleted pipelines.
func (s *Server) removals() []prune.Removal {
	if s.Keeper == nil {
		return nil
	}
	return s.Keeper.Removals()
}
