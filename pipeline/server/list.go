// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// pageSize is how many pipelines one page of the list shows.
const pageSize = 100

// order of the states: what needs somebody comes first.
var order = []string{StateInvalid, StateFailing, StateStalled, StateDrifted, StateSuspended, StateNew, StateReady}

// listData is the first page.
type listData struct {
	// Pipelines of this page, of Found that the filters let through, of Total.
	Pipelines    []Pipeline
	Found, Total int
	// First and Last are the positions of the first and last one of this page, from 1.
	First, Last int
	Counts      []stateCount
	Catalog     Catalog
	listQuery
	Pages, Sorts []sortLink
}

// listQuery is what the page was asked for.
type listQuery struct {
	State, Find, Sort string
	Page              int
}

type stateCount struct {
	State string
	N     int
	Link  string
}

// sortLink leads to the same list in another way.
type sortLink struct {
	Name, Link string
	Chosen     bool
}

// The orders of the list.
const (
	sortState = "state"
	sortName  = "name"
	sortTime  = "time"
)

func readQuery(values url.Values) listQuery {
	q := listQuery{State: values.Get("state"), Find: strings.TrimSpace(values.Get("find")), Sort: values.Get("sort")}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	q.Page = max(1, q.Page)
	if q.Sort != sortName && q.Sort != sortTime {
		q.Sort = sortState
	}
	return q
}

// linkWith returns the address of the list with one thing changed.
func (q listQuery) linkWith(change func(*listQuery)) string {
	q.Page = 1
	change(&q)
	values := url.Values{}
	for key, value := range map[string]string{"state": q.State, "find": q.Find} {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.Sort != sortState {
		values.Set("sort", q.Sort)
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	if len(values) == 0 {
		return "/"
	}
	return "/?" + values.Encode()
}

// All is the address of the list without a state.
func (q listQuery) All() string { return q.linkWith(func(q *listQuery) { q.State = "" }) }

// matchesFilters reports whether the filters let a pipeline through, but for its state.
func (q listQuery) matchesFilters(p Pipeline) bool {
	find := strings.ToLower(q.Find)
	return strings.Contains(strings.ToLower(p.Name), find) || strings.Contains(strings.ToLower(p.Source), find)
}

func (s *Server) listPage(w http.ResponseWriter, r *http.Request) {
	who := principal(r)
	data := listData{listQuery: readQuery(r.URL.Query()), Catalog: s.catalogView(who)}
	counts := map[string]int{}
	for _, e := range s.visibleEntries(who) {
		p := s.viewPipeline(e)
		data.Total++
		if !data.matchesFilters(p) {
			continue
		}
		counts[p.State]++
		if data.State == "" || data.State == p.State {
			data.Pipelines = append(data.Pipelines, p)
		}
	}
	for _, state := range order {
		if counts[state] > 0 || state == data.State {
			data.Counts = append(data.Counts, stateCount{state, counts[state], data.linkWith(func(q *listQuery) { q.State = state })})
		}
	}
	sortPipelines(data.Pipelines, data.Sort)
	data.cutToPage()
	for _, by := range []sortLink{{Name: "state"}, {Name: "name"}, {Name: "last run"}} {
		key := map[string]string{"state": sortState, "name": sortName, "last run": sortTime}[by.Name]
		by.Link, by.Chosen = data.linkWith(func(q *listQuery) { q.Sort = key }), key == data.Sort
		data.Sorts = append(data.Sorts, by)
	}
	title := "Pipelines"
	if bad := counts[StateInvalid] + counts[StateFailing] + counts[StateStalled] + counts[StateDrifted]; bad > 0 {
		title = strconv.Itoa(bad) + " failing"
	}
	s.writePage(w, r, s.pages.list, title, data)
}

// cutToPage leaves the pipelines of the page that is asked for, the last one where it lies behind.
func (d *listData) cutToPage() {
	d.Found = len(d.Pipelines)
	pages := max(1, (d.Found+pageSize-1)/pageSize)
	d.Page = min(d.Page, pages)
	from := (d.Page - 1) * pageSize
	d.Pipelines = d.Pipelines[from:min(d.Found, from+pageSize)]
	d.First, d.Last = from+1, from+len(d.Pipelines)
	for n := 1; n <= pages && pages > 1; n++ {
		d.Pages = append(d.Pages, sortLink{Name: strconv.Itoa(n), Link: d.linkWith(func(q *listQuery) { q.Page = n }), Chosen: n == d.Page})
	}
}

// sortPipelines sorts; they come sorted by name.
func sortPipelines(list []Pipeline, by string) {
	switch by {
	case sortState:
		slices.SortStableFunc(list, func(a, b Pipeline) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
	case sortTime:
		slices.SortStableFunc(list, func(a, b Pipeline) int { return endOfRun(b).Compare(endOfRun(a)) })
	}
}

func endOfRun(p Pipeline) time.Time {
	if p.Status.LastRun == nil {
		return time.Time{}
	}
	return p.Status.LastRun.Finished.Time
}
