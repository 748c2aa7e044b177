// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Mesh is what the last render of a pipeline decided about its workloads. It is bounded: what a manifest looks like is
// in Git.
type Mesh struct {
	// Decided are the workloads, grouped by what was decided.
	Decided []Decided `json:"decided,omitempty"`
	// Findings are the workloads that a rule has found something about.
	Findings []WorkloadFinding `json:"findings,omitempty"`
	// Merged counts the proxies of what is merged by version, as long as the last result waits for a merge.
	Merged map[string]int `json:"merged,omitempty"`
}

// Decided are workloads about which the same was decided.
type Decided struct {
	// Action is that of render.Decision; Code and Reason explain it.
	Action string `json:"action"`
	Code   string `json:"code,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Version is that of their Istio proxy, "" for none.
	Version string `json:"version,omitempty"`
	// Workloads are named as result.ResourceRef prints them; More is how many are not listed.
	Workloads []string `json:"workloads,omitempty"`
	More      int      `json:"more,omitempty"`
}

// N is how many workloads it is about.
func (d Decided) N() int { return len(d.Workloads) + d.More }

// WorkloadFinding is what rules have found about a workload.
type WorkloadFinding struct {
	Workload string `json:"workload"`
	// Codes of the rules, sorted. Rejected reports whether one of their findings closed a gate.
	Codes    []string `json:"codes"`
	Rejected bool     `json:"rejected,omitempty"`
}

// Versions counts the proxies of the last render by version.
func (m *Mesh) Versions() map[string]int {
	out := map[string]int{}
	if m == nil {
		return out
	}
	for _, d := range m.Decided {
		if d.Version != "" {
			out[d.Version] += d.N()
		}
	}
	return out
}

// IsUnmerged reports whether the last render is not what a cluster is to have: it waits in a pull request, or was not published.
func (s *State) IsUnmerged() bool {
	waits := slices.ContainsFunc(s.Status.Published, func(p v1alpha1.Published) bool { return p.PullRequest != nil })
	return waits || s.Seen.Outcome == Refused || s.Seen.Outcome == Failed
}

// MergedVersions counts the proxies of what a cluster is to have by version.
func (s *State) MergedVersions() map[string]int {
	if s.Mesh != nil && s.IsUnmerged() {
		return s.Mesh.Merged
	}
	return s.Mesh.Versions()
}
