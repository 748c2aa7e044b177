// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/pipeline/server/access"
)

// listQuery is what the list was asked for.
type listQuery struct {
	State, Find, Sort string
	// Group is how pipelines are grouped, "" for not; Inside restricts the list to those of the group In.
	Group, In string
	Inside    bool
	// Says is the ID of a message, or "" for all.
	Says string
	// Policy is the key of a policy, "" for all pipelines; Wave is that of a wave.
	Policy, Wave string
	Page         int
}

// The orders of the list.
const (
	sortState = "state"
	sortName  = "name"
	sortTime  = "time"
)

func readQuery(values url.Values) listQuery {
	q := listQuery{State: values.Get("state"), Find: strings.TrimSpace(values.Get("find")), Sort: values.Get("sort"), Says: values.Get("says"), Policy: values.Get("policy"),
		Wave: values.Get("wave"),
	}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	q.Page = max(1, q.Page)
	if q.Sort != sortName && q.Sort != sortTime {
		q.Sort = sortState
	}
	if q.Group = values.Get("group"); !slices.ContainsFunc(groupings, func(g grouping) bool { return g.name == q.Group }) {
		q.Group = ""
	}
	q.Inside = q.Group != "" && values.Has("in")
	if q.Inside {
		q.In = values.Get("in")
	}
	return q
}

// linkWith returns the address of the list with one thing changed.
func (q listQuery) linkWith(change func(*listQuery)) string {
	q.Page = 1
	change(&q)
	if query := q.encode(); query != "" {
		return "/?" + query
	}
	return "/"
}

func (q listQuery) encode() string {
	values := url.Values{}
	for key, value := range map[string]string{"state": q.State, "find": q.Find, "group": q.Group, "says": q.Says, "policy": q.Policy, "wave": q.Wave} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.Inside {
		values.Set("in", q.In)
	}
	if q.Sort != sortState {
		values.Set("sort", q.Sort)
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	return values.Encode()
}

// All is the address of the list without a state.
func (q listQuery) All() string { return q.linkWith(func(q *listQuery) { q.State = "" }) }

// Everyone is the address of the list without a saying.
func (q listQuery) Everyone() string { return q.linkWith(func(q *listQuery) { q.Says = "" }) }

// Scope names the pipelines that the filters let through, for a form about all of them.
func (q listQuery) Scope() string {
	q.Page, q.Sort = 1, sortState
	if query := q.encode(); query != "" {
		return query
	}
	return "page=1"
}

// matchesFilters reports whether the filters let a pipeline through, but for its state.
func (q listQuery) matchesFilters(p row) bool {
	if q.Find != "" {
		find := strings.ToLower(q.Find)
		if !strings.Contains(strings.ToLower(p.Name), find) && !strings.Contains(strings.ToLower(p.Source), find) {
			return false
		}
	}
	if q.Inside && !slices.Contains(groupsOf(q.Group, p), q.In) {
		return false
	}
	if q.Policy != "" && !slices.Contains(policiesOf(p), q.Policy) {
		return false
	}
	if q.Wave != "" && !slices.Contains(waveKeys(p), q.Wave) {
		return false
	}
	return q.Says == "" || comparableMessageID(p) == q.Says
}

// namesInList returns the names of the pipelines of a list for which the user may perform the action, and that it is
// offered for.
func (v *pipelineViews) namesInList(who access.Principal, q listQuery, a action) (out []string) {
	if a.Subject != ofPipeline {
		return nil
	}
	for _, p := range v.visibleRows(who, true) {
		if p.entry.Err == nil && q.matchesFilters(p) && (q.State == "" || q.State == p.State) &&
			who.May(a.Role, p.entry.Pipeline.Metadata.Namespace) && (a.IsOffered == nil || a.IsOffered(p.Pipeline, p.entry.Pipeline)) {
			out = append(out, p.Name)
		}
	}
	return out
}
