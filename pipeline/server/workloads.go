// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/pipeline/daemon/status"
)

// workloadQuery is what the list of workloads was asked for.
type workloadQuery struct {
	// Show is one of the filters, "" for all; Version and Reason restrict it further.
	Show, Version, Reason, Find string
	// Namespace restricts it, too; "" for all.
	Namespace string
	// Cluster is the cluster whose workloads are listed if InCluster is set.
	Cluster   string
	InCluster bool
	Page      int
}

// The filters of the list of workloads.
const (
	showInjected  = "injected"
	showSkipped   = "skipped"
	showRisky     = "risky"
	showRejected  = "rejected"
	showDifferent = "different"
)

// anyCluster is the value of the choice of all clusters in a form: "" is no cluster.
const anyCluster = "*"

var workloadFilters = []string{showInjected, showSkipped, showRisky, showRejected, showDifferent}

func readWorkloadQuery(values url.Values) workloadQuery {
	q := workloadQuery{
		Show: values.Get("show"), Version: values.Get("version"), Reason: values.Get("reason"),
		Find: strings.TrimSpace(values.Get("find")), Namespace: values.Get("namespace"),
		Cluster: values.Get("cluster"), InCluster: values.Has("cluster") && values.Get("cluster") != anyCluster,
	}
	if !slices.Contains(workloadFilters, q.Show) {
		q.Show = ""
	}
	q.Page, _ = strconv.Atoi(values.Get("page"))
	q.Page = max(1, q.Page)
	return q
}

// link returns the address of the list.
func (q workloadQuery) link() string {
	values := url.Values{}
	given := map[string]string{
		"show": q.Show, "version": q.Version, "reason": q.Reason, "find": q.Find, "namespace": q.Namespace,
	}
	for key, value := range given {
		if value != "" {
			values.Set(key, value)
		}
	}
	if q.InCluster {
		values.Set("cluster", q.Cluster)
	}
	if q.Page > 1 {
		values.Set("page", strconv.Itoa(q.Page))
	}
	if len(values) == 0 {
		return "/workloads"
	}
	return "/workloads?" + values.Encode()
}

// linkWith returns the address of the list with one thing changed.
func (q workloadQuery) linkWith(change func(*workloadQuery)) string {
	q.Page = 1
	change(&q)
	return q.link()
}

// Everything is the address of the list without the filters but the search.
func (q workloadQuery) Everything() string { return workloadQuery{Find: q.Find}.link() }

// matches reports whether the filters let a workload through, but for Show.
func (q workloadQuery) matches(w workloadRow) bool {
	find := strings.ToLower(q.Find)
	names := strings.ToLower(w.Name + "\n" + w.Pipeline)
	return (!q.InCluster || w.Cluster == q.Cluster) && (q.Version == "" || w.Version == q.Version) &&
		(q.Reason == "" || w.Short == q.Reason) && (q.Namespace == "" || w.namespace() == q.Namespace) &&
		strings.Contains(names, find)
}

// workloadRow is a workload as the last render of its pipeline left it.
type workloadRow struct {
	// Name is its kind, namespace and name.
	Name, Pipeline, Cluster string
	// State is injected or skipped; Reason is why, Short the same in a few words where it is skipped.
	State, Reason, Short string
	// Version of Istio's proxy that the cluster is to have now, with the class of its colour.
	Version, Class string
	// Next is the version of the last render where that is another one and waits, "" otherwise; Drops reports that
	// it has no sidecar. Note describes why the cluster does not have the last render, with the class NoteClass.
	Next, NextClass string
	Drops           bool
	Note, NoteClass string
	// Codes of the rules that have found something, with how often; Rejected reports whether one of them closed a gate, Different
	// whether its pods differ in the cluster.
	Codes               []codeCount
	Rejected, Different bool

	order string // by which workloads are sorted: the name without the kind comes first
}

// codeCount is how often a rule has found something about a workload. The code is "" for findings without a rule.
type codeCount struct {
	Code, Title string
	N           int
}

// countCodes returns the rules that have found something about a workload.
func countCodes(f status.WorkloadFinding) (out []codeCount) {
	for _, code := range f.Codes {
		out = append(out, codeCount{code, explainRule(code).Title, max(1, f.Counts[code])})
	}
	return out
}

// namespace is that of the workload, "" where its name has none.
func (w workloadRow) namespace() string {
	_, name, _ := strings.Cut(w.Name, " ")
	namespace, _, found := strings.Cut(name, "/")
	if !found {
		return ""
	}
	return namespace
}

// Link is the address of the page of the workload.
func (w workloadRow) Link() string {
	return "/workload?" + url.Values{"pipeline": {w.Pipeline}, "workload": {w.Name}}.Encode()
}

// is reports whether a filter lets the workload through.
func (w workloadRow) is(show string) bool {
	switch show {
	case "":
		return true
	case showRisky:
		return len(w.Codes) > 0
	case showRejected:
		return w.Rejected
	case showDifferent:
		return w.Different
	}
	return w.State == show
}

// workloadsOf returns the workloads of a pipeline, and how many are not named.
func (v *pipelineViews) workloadsOf(p row, different map[string]bool) (out []workloadRow, more int) {
	state := v.store.Get(p.Name)
	if p.entry.Err != nil || state.Mesh == nil {
		return nil, 0
	}
	findings := map[string]status.WorkloadFinding{}
	for _, f := range state.Mesh.Findings {
		findings[f.Workload] = f
	}
	cluster, note := clusterOf(p), noteOf(state, v.store.Control(p.Name))
	merged, unnamed := map[string]string{}, ""
	for _, proxies := range state.Merged() {
		if proxies.More > 0 {
			unnamed = proxies.Version
		}
		for _, name := range proxies.Workloads {
			merged[name] = proxies.Version
		}
	}
	for _, d := range state.Mesh.Decided {
		more += d.More
		one := workloadRow{
			Pipeline:  p.Name,
			Cluster:   cluster,
			State:     showSkipped,
			Reason:    d.Reason,
			Note:      note.text,
			NoteClass: note.class,
		}
		if isInjected(d) {
			one.State = showInjected
		} else {
			one.Short = shortReason(d.Action, d.Code)
		}
		for _, name := range d.Workloads {
			kind, short, _ := strings.Cut(name, " ")
			one.Name, one.Different, one.order = name, different[name], short+" "+kind
			one.Codes, one.Rejected = countCodes(findings[name]), findings[name].Rejected
			one.Version = cmp.Or(merged[name], unnamed)
			one.Next, one.Drops = "", false
			if note.isPending && one.Version != d.Version {
				one.Next, one.Drops = d.Version, d.Version == ""
			}
			out = append(out, one)
		}
	}
	return out, more
}

// workloadsData is the page with the list of workloads.
type workloadsData struct {
	workloadQuery
	Workloads []workloadRow
	// Found are those that the filters let through, of Total; First and Last are the positions on this page. More
	// are not named.
	Found, Total, First, Last, More int
	// Shows are the filters with how many workloads each lets through.
	Shows []showLink
	Pages []sortLink
	// Compared reports whether any cluster is compared with what is committed.
	Compared bool
	// Clusters, Versions and Namespaces are the choices of the form.
	Clusters, Versions, Namespaces []choice
}

// choice is a value that a form offers.
type choice struct {
	Value, Text string
	Chosen      bool
}

// maxChoices is how many values one field of a form offers.
const maxChoices = 500

// addChoices adds the choices of the form.
func (d *workloadsData) addChoices(clusters, versions, namespaces map[string]int) {
	d.Clusters = []choice{{anyCluster, "all clusters", !d.InCluster}}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		d.Clusters = append(d.Clusters, choice{name, cmp.Or(name, "no cluster"), d.InCluster && d.Cluster == name})
	}
	d.Versions = []choice{{"", "all versions", d.Version == ""}}
	for _, name := range slices.SortedFunc(maps.Keys(versions), status.NewestFirst) {
		d.Versions = append(d.Versions, choice{name, "Istio " + name, d.Version == name})
	}
	d.Namespaces = []choice{{"", "all namespaces", d.Namespace == ""}}
	for _, name := range slices.Sorted(maps.Keys(namespaces)) {
		d.Namespaces = append(d.Namespaces, choice{name, name, d.Namespace == name})
	}
	for _, list := range []*[]choice{&d.Clusters, &d.Versions, &d.Namespaces} {
		*list = (*list)[:min(len(*list), maxChoices)]
	}
}

type showLink struct {
	Name, Link string
	N          int
	Chosen     bool
}

// eventStreamPath implements livePage.
func (workloadsData) eventStreamPath() string { return "/events" }

func (h *pageHandler) workloadsPage(w http.ResponseWriter, r *http.Request) {
	who := requestPrincipal(r)
	data := workloadsData{
		workloadQuery: readWorkloadQuery(r.URL.Query()),
		Compared:      h.clusters != nil && len(h.clusters()) > 0,
	}
	rows := h.views.visibleRows(who, false)
	different := h.differences(who, rows)
	counts, versions := map[string]int{}, map[string]int{}
	clusters, namespaces := map[string]int{}, map[string]int{}
	for _, p := range rows {
		all, more := h.views.workloadsOf(p, different[p.Name])
		data.Total += len(all) + more
		data.More += more
		for _, one := range all {
			versions[one.Version]++
			clusters[one.Cluster]++
			namespaces[one.namespace()]++
			if !data.matches(one) {
				continue
			}
			for _, show := range workloadFilters {
				if one.is(show) {
					counts[show]++
				}
			}
			counts[""]++
			if one.is(data.Show) {
				data.Workloads = append(data.Workloads, one)
			}
		}
	}
	delete(versions, "")
	delete(namespaces, "")
	data.addChoices(clusters, versions, namespaces)
	data.cutToPage()
	colourVersions(data.Workloads, versions)
	for _, show := range append([]string{""}, workloadFilters...) {
		link := data.linkWith(func(q *workloadQuery) { q.Show = show })
		data.Shows = append(
			data.Shows,
			showLink{Name: cmp.Or(show, "all"), Link: link, N: counts[show], Chosen: data.Show == show},
		)
	}
	h.pages.writePage(w, r, "workloads", "Workloads", data)
}

// colourVersions sets the classes of the versions of workloads; versions are all that a page may show.
func colourVersions(workloads []workloadRow, versions map[string]int) {
	all := map[string]int{}
	maps.Copy(all, versions)
	for _, one := range workloads {
		all[one.Version]++
		all[one.Next]++
	}
	delete(all, "")
	classes := versionClasses(all)
	for i := range workloads {
		workloads[i].Class, workloads[i].NextClass = classes[workloads[i].Version], classes[workloads[i].Next]
	}
}

// cutToPage leaves the workloads of the page that is asked for, those that need attention first.
func (d *workloadsData) cutToPage() {
	slices.SortStableFunc(d.Workloads, func(a, b workloadRow) int {
		return cmp.Or(
			cmp.Compare(rankOfWorkload(a), rankOfWorkload(b)),
			cmp.Compare(a.order, b.order),
			cmp.Compare(a.Cluster, b.Cluster),
		)
	})
	d.Found = len(d.Workloads)
	paged := paginate(
		d.Page,
		d.Found,
		pageSize,
		func(page int) string { return d.linkWith(func(q *workloadQuery) { q.Page = page }) },
	)
	d.Page, d.First, d.Last, d.Pages = paged.page, paged.from+1, paged.to, paged.links
	d.Workloads = d.Workloads[paged.from:paged.to]
}

func rankOfWorkload(w workloadRow) int {
	switch {
	case w.Rejected:
		return 0
	case w.Different:
		return 1
	case len(w.Codes) > 0:
		return 2
	}
	return 3
}
