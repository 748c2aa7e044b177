// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/server/access"
)

// pageSize is how many pipelines one page of the list shows.
const pageSize = 100

// order is the order of the states: those that need attention come first.
var order = []string{StateInvalid, StateFailing, StateStalled, StateDrifted, StateSuspended, StateNew, StateReady}

// listData is the first page.
type listData struct {
	// Pipelines of this page, of Found that the filters let through, of Total.
	Pipelines    []row
	Found, Total int
	// First and Last are the positions of the first and last one of this page, from 1.
	First, Last int
	Counts      []stateCount
	Catalog     Catalog
	listQuery
	Pages, Sorts, Groupings []sortLink
	// Mesh is shown above the whole list, nil above a part of it.
	Mesh *meshData
	// Groups are shown instead of Pipelines if grouping is requested.
	Groups []groupData
	// Sayings are messages that several pipelines have.
	Sayings []*saying
	// Removals are deleted pipelines, grouped by what they wait for.
	Removals []removalData
	// Buttons are for chosen pipelines, RemovalButtons for chosen removals; none for who may not.
	Buttons, RemovalButtons []button
	Form                    formData
}

// eventStreamPath implements livePage.
func (listData) eventStreamPath() string { return "/events" }

// formData is what every form of a page sends along: its token, and where to go on.
type formData struct{ CSRF, To string }

func (k formKey) formData(r *http.Request) formData {
	return formData{k.formToken(r), withoutNotice(r)}
}

// row is a pipeline in a list.
type row struct {
	Pipeline
	// Operable reports whether the viewer may change it.
	Operable bool
	// Says is the message that it shares with others, or nil if it is unique.
	Says *saying

	entry catalog.Entry
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

// visibleRows returns the pipelines that the user may see, sorted by name.
func (v *pipelineViews) visibleRows(who access.Principal, mayAct bool) []row {
	entries := v.visibleEntries(who)
	out := make([]row, 0, len(entries))
	for _, e := range entries {
		one := row{Pipeline: v.viewPipeline(e), entry: e}
		one.Operable = mayAct && e.Err == nil && who.May(access.Operate, e.Pipeline.Metadata.Namespace)
		out = append(out, one)
	}
	return out
}

func (h *pageHandler) listPage(w http.ResponseWriter, r *http.Request) {
	who := requestPrincipal(r)
	data := listData{listQuery: readQuery(r.URL.Query()), Catalog: h.catalogs.catalogView(who), Form: h.pages.forms.formData(r)}
	all := h.views.visibleRows(who, data.Form.CSRF != "")
	sayings := groupEqualMessages(all)
	counts := map[string]int{}
	data.Total = len(all)
	for _, p := range all {
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
	data.Sayings = data.messagesOfList(sayings)
	data.Removals = groupRemovals(data.Catalog.Removals, func(name string) bool {
		return data.Form.CSRF != "" && who.May(access.Administer, v1alpha1.NamespaceOf(name))
	})
	data.RemovalButtons = buttonsForAll(r, ofRemoval)
	if data.encode() == "" {
		mesh := h.meshOfRows(r, all, clustersOnList)
		data.Mesh = &mesh
	}
	data.addLinks()
	sortPipelines(data.Pipelines, data.Sort)
	if data.Group != "" && !data.Inside {
		data.cutGroups()
	} else {
		data.Buttons = buttonsForAll(r, ofPipeline)
		data.cutToPage()
	}
	title := "Pipelines"
	if bad := counts[StateInvalid] + counts[StateFailing] + counts[StateStalled] + counts[StateDrifted]; bad > 0 {
		title = strconv.Itoa(bad) + " failing"
	}
	h.pages.writePage(w, r, "list", title, data)
}

// addLinks adds the links to other orders and groups.
func (d *listData) addLinks() {
	for _, by := range []struct{ name, key string }{{"state", sortState}, {"name", sortName}, {"last run", sortTime}} {
		d.Sorts = append(d.Sorts, sortLink{by.name, d.linkWith(func(q *listQuery) { q.Sort = by.key }), by.key == d.Sort})
	}
	d.Groupings = append(d.Groupings, sortLink{"none", d.linkWith(func(q *listQuery) { q.Group, q.In, q.Inside = "", "", false }), d.Group == ""})
	for _, by := range groupings {
		d.Groupings = append(d.Groupings, sortLink{by.name, d.linkWith(func(q *listQuery) { q.Group, q.In, q.Inside = by.name, "", false }), d.Group == by.name})
	}
}

// cutToPage leaves the pipelines of the page that is asked for, the last one where it lies behind.
func (d *listData) cutToPage() {
	d.Found = len(d.Pipelines)
	from, to := d.paginateAndLink(d.Found, pageSize)
	d.Pipelines = d.Pipelines[from:to]
}

// paginateAndLink returns which of n things the page that is asked for shows, and adds the links to the others.
func (d *listData) paginateAndLink(n, size int) (from, to int) {
	paged := paginate(d.Page, n, size, func(page int) string { return d.linkWith(func(q *listQuery) { q.Page = page }) })
	d.Page, d.First, d.Last, d.Pages = paged.page, paged.from+1, paged.to, paged.links
	return paged.from, paged.to
}

// pagination is a page of a list: the elements from and before to.
type pagination struct {
	page, from, to int
	links          []sortLink
}

// paginate returns a page of a list of n elements, the last one where it lies behind, with links to all of them.
func paginate(page, n, size int, link func(page int) string) (p pagination) {
	pages := max(1, (n+size-1)/size)
	p.page = min(page, pages)
	p.from = (p.page - 1) * size
	p.to = min(n, p.from+size)
	for i := 1; i <= pages && pages > 1; i++ {
		if i > edgePages && i <= pages-edgePages && (i < p.page-edgePages || i > p.page+edgePages) {
			continue
		}
		p.links = append(p.links, sortLink{Name: strconv.Itoa(i), Link: link(i), Chosen: i == p.page})
	}
	return p
}

// edgePages is how many pages at each end of a list, and beside the current one, have a link.
const edgePages = 5

// sortPipelines sorts; they come sorted by name.
func sortPipelines(list []row, by string) {
	switch by {
	case sortState:
		slices.SortStableFunc(list, func(a, b row) int { return slices.Index(order, a.State) - slices.Index(order, b.State) })
	case sortTime:
		slices.SortStableFunc(list, func(a, b row) int { return endOfRun(b).Compare(endOfRun(a)) })
	}
}

func endOfRun(p row) time.Time {
	if p.Status.LastRun == nil {
		return time.Time{}
	}
	return p.Status.LastRun.Finished.Time
}
