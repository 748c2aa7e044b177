// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
)

// meshData is what the pipelines that a person may see make of their workloads.
type meshData struct {
	Clusters []*clusterData
	// Total is of all clusters.
	Total *clusterData
	// Unlabelled reports whether pipelines do not name their cluster, Compared whether a cluster is compared with
	// what is committed.
	Unlabelled, Compared bool
	// Foreign counts pods that are not from Git, by the name of the compared cluster; nil for those who may not see
	// all pipelines.
	Foreign []countedReason
	// More is how many clusters are left out.
	More int
}

// clusterData is the workloads of a cluster.
type clusterData struct {
	// Name is the value of the label cluster, "" without it.
	Name      string
	Pipelines int
	Workloads int
	// Injected, Skipped, Risky, Rejected and Different count workloads: the last are those whose pods differ in the
	// cluster.
	Injected, Skipped, Risky, Rejected, Different int
	// Versions of Istio that the workloads are to have now, the newest first; Bar draws them.
	Versions []versionPart
	Bar      barChart
	// Next are the versions that wait, by their pull requests.
	Next []*nextVersion
	// Reasons are why workloads are skipped, the most frequent first.
	Reasons []countedReason
	// Link leads to the pipelines, and with a filter to workloads.
	Link string

	versions, reasons map[string]int
	next              map[string]*nextVersion
}

// versionPart is a share of the workloads.
type versionPart struct {
	Version string
	N       int
	// Class is the class of its colour.
	Class, Link string
}

// nextVersion is a version that waits in a pull request.
type nextVersion struct {
	Version string
	N       int
	// Wave is the stage with the pull request, nil where it is in no wave.
	Wave *waveStage
	// Pull is the pull request.
	Pull v1alpha1.PullRequestStatus
}

type countedReason struct {
	Reason string
	N      int
	Link   string
}

// Workload is the address of the list of its workloads that a filter lets through.
func (c *clusterData) Workload(show string) string { return c.query(workloadQuery{Show: show}).link() }

// Bare is how many of its workloads have no sidecar now.
func (c *clusterData) Bare() int {
	n := c.Workloads
	for _, one := range c.Versions {
		n -= one.N
	}
	return max(0, n)
}

// query restricts a query to the cluster; the total has none.
func (c *clusterData) query(q workloadQuery) workloadQuery {
	q.Page = 1
	if c.Link != "" {
		q.Cluster, q.InCluster = c.Name, true
	}
	return q
}

// meshOf adds up what the last renders decided.
func (v *pipelineViews) meshOf(
	rows []row,
	promotions []promotion.Promotion,
	different map[string]map[string]bool,
) meshData {
	out := meshData{}
	byName := map[string]*clusterData{}
	stages := stagesByHead(promotions)
	for _, p := range rows {
		state := v.store.Get(p.Name)
		if p.entry.Err != nil || state.Mesh == nil {
			continue
		}
		name := clusterOf(p)
		c := byName[name]
		if c == nil {
			c = newCluster(name)
			byName[name] = c
		}
		c.Pipelines++
		c.addMesh(state.Mesh)
		c.Different += len(different[p.Name])
		merged := state.Merged()
		for version, n := range status.Versions(merged) {
			c.versions[version] += n
		}
		if state.WaitsForMerge() {
			c.addNext(p, newVersions(state.Mesh.Rendered(), merged), stages)
		}
	}
	for _, c := range byName {
		out.Clusters = append(out.Clusters, c)
	}
	waves := waveOrder(promotions)
	slices.SortFunc(out.Clusters, func(a, b *clusterData) int {
		unnamed := cmp.Compare(min(1, len(b.Name)), min(1, len(a.Name)))
		return cmp.Or(unnamed, cmp.Compare(waves[a.Name], waves[b.Name]), cmp.Compare(a.Name, b.Name))
	})
	out.Unlabelled = byName[""] != nil
	out.Total = sumOfClusters(out.Clusters)
	classes := versionClasses(out.Total.versions)
	for _, c := range append(slices.Clone(out.Clusters), out.Total) {
		c.finish(classes)
	}
	return out
}

func newCluster(name string) *clusterData {
	link := listQuery{Group: "cluster", In: name, Inside: true, Sort: sortState}
	return &clusterData{
		Name: name, Link: link.linkWith(func(*listQuery) {}),
		versions: map[string]int{}, reasons: map[string]int{}, next: map[string]*nextVersion{},
	}
}

// addMesh adds the workloads of a pipeline.
func (c *clusterData) addMesh(m *status.Mesh) {
	for _, d := range m.Decided {
		n := d.N()
		c.Workloads += n
		if isInjected(d) {
			c.Injected += n
			continue
		}
		c.Skipped += n
		c.reasons[shortReason(d.Action, d.Code)] += n
	}
	c.Risky += len(m.Findings)
	for _, f := range m.Findings {
		if f.Rejected {
			c.Rejected++
		}
	}
}

// isInjected reports whether workloads have a sidecar. One that is kept as published has it if its version is known.
func isInjected(d status.Decided) bool {
	return d.Action == string(fn.Injected) || d.Action == string(fn.Kept) && d.Version != ""
}

func sumOfClusters(all []*clusterData) *clusterData {
	sum := &clusterData{versions: map[string]int{}, reasons: map[string]int{}}
	for _, c := range all {
		sum.Pipelines += c.Pipelines
		sum.Workloads += c.Workloads
		sum.Injected += c.Injected
		sum.Skipped += c.Skipped
		sum.Risky += c.Risky
		sum.Rejected += c.Rejected
		sum.Different += c.Different
		for version, n := range c.versions {
			sum.versions[version] += n
		}
		for reason, n := range c.reasons {
			sum.reasons[reason] += n
		}
	}
	return sum
}

// finish sorts and draws what was added up.
func (c *clusterData) finish(classes map[string]string) {
	for _, version := range slices.SortedFunc(maps.Keys(c.versions), status.NewestFirst) {
		link := c.query(workloadQuery{Version: version}).link()
		c.Versions = append(
			c.Versions,
			versionPart{Version: version, N: c.versions[version], Class: classes[version], Link: link},
		)
	}
	c.Bar = drawBar(c.Versions, c.Workloads)
	for _, key := range slices.Sorted(maps.Keys(c.next)) {
		c.Next = append(c.Next, c.next[key])
	}
	slices.SortStableFunc(c.Next, func(a, b *nextVersion) int { return cmp.Compare(b.N, a.N) })
	for reason, n := range c.reasons {
		link := c.query(workloadQuery{Show: showSkipped, Reason: reason}).link()
		c.Reasons = append(c.Reasons, countedReason{reason, n, link})
	}
	slices.SortFunc(c.Reasons, func(a, b countedReason) int {
		return cmp.Or(cmp.Compare(b.N, a.N), strings.Compare(a.Reason, b.Reason))
	})
}

// newVersions counts the workloads whose version changes by a merge, by their next version.
func newVersions(rendered, merged []status.Proxies) map[string]int {
	now, unnamed := map[string]string{}, map[string]int{}
	for _, p := range merged {
		unnamed[p.Version] += p.More
		for _, name := range p.Workloads {
			now[name] = p.Version
		}
	}
	out := map[string]int{}
	for _, p := range rendered {
		n := max(0, p.More-unnamed[p.Version])
		for _, name := range p.Workloads {
			if now[name] != p.Version {
				n++
			}
		}
		if n > 0 {
			out[p.Version] += n
		}
	}
	return out
}

// addNext adds the workloads of a pipeline that get another version by the merge of what waits.
func (c *clusterData) addNext(p row, versions map[string]int, stages map[string]*waveStage) {
	for _, to := range p.entry.Pipeline.Spec.Publish {
		published := publishedTo(p.Pipeline, to)
		if to.Git == nil || published == nil || !published.PullRequest.Waits() {
			continue
		}
		head := stageKey(to.Git.URL, to.Git.Branch, published.PullRequest.Head)
		for version, n := range versions {
			one := c.next[version+" "+head]
			if one == nil {
				one = &nextVersion{Version: version, Pull: *published.PullRequest, Wave: stages[head]}
				c.next[version+" "+head] = one
			}
			one.N += n
		}
		return
	}
}

// clusterOf returns the cluster that a pipeline renders for, as its label names it.
func clusterOf(p row) string {
	if p.entry.Pipeline == nil {
		return ""
	}
	return p.entry.Pipeline.Metadata.Labels[clusterLabel]
}

// versionColours is how many colours there are for versions: the oldest share the last.
const versionColours = 6

// versionClasses returns the class of the colour of each version, the newest first.
func versionClasses(versions map[string]int) map[string]string {
	out := map[string]string{}
	for i, version := range slices.SortedFunc(maps.Keys(versions), status.NewestFirst) {
		out[version] = "v" + string(rune('0'+min(i, versionColours-1)))
	}
	return out
}

// reasonTexts are the reasons of decisions for headings; the reason of a workload names what decided.
var reasonTexts = map[decide.Code]string{
	decide.CodeNamespaceLabel:       "namespace label",
	decide.CodePodLabel:             "pod label",
	decide.CodeNoLabel:              "no injection label",
	decide.CodeSelector:             "no webhook matches",
	decide.CodeOtherRevision:        "another revision",
	decide.CodeNamespaceUnknownSkip: "namespace unknown",
	decide.CodeNamespaceNotAsked:    "no namespace",
	decide.CodeHostNetwork:          "host network",
	decide.CodeIgnoredNamespace:     "system namespace",
	decide.CodePodRefuses:           "opted out",
	decide.CodeNeverSelector:        "neverInjectSelector",
	decide.CodePolicyDisabled:       "policy disabled",
}

// shortReason is the reason of a decision in a few words.
func shortReason(action, code string) string {
	if text := reasonTexts[decide.Code(code)]; text != "" {
		return text
	}
	switch action {
	case string(fn.Kept):
		return "kept as published"
	case string(fn.Removed):
		return "sidecar removed"
	}
	return "no policy injects it"
}
