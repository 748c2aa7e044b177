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
	// OnBranch is what the target branches have where that is not the last render; nil where it is.
	OnBranch *OnBranch `json:"onBranch,omitempty"`
}

// OnBranch is what the target branches have of a pipeline, where its last render waits for a merge or was rejected, or
// where a rollback or a person has changed the branch since.
type OnBranch struct {
	// Revisions are the commits that were read, by the names of the targets; nil where the branches were not read.
	Revisions map[string]string `json:"revisions,omitempty"`
	// Drift describes how the branches differ from what the pipeline has published, "" where they do not.
	Drift string `json:"drift,omitempty"`
	// Proxies are the workloads with a proxy of Istio, by version.
	Proxies []Proxies `json:"proxies,omitempty"`
}

// Proxies are the workloads that have a version of Istio's proxy.
type Proxies struct {
	Version string `json:"version"`
	// Workloads are named as result.ResourceRef prints them; More is how many are not listed.
	Workloads []string `json:"workloads,omitempty"`
	More      int      `json:"more,omitempty"`
}

// N is how many workloads have the version.
func (p Proxies) N() int { return len(p.Workloads) + p.More }

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
	// Codes of the rules, sorted, or the severity of findings without one; Counts are how often each has found
	// something, where that is more than once. Rejected reports whether one of their findings closed a gate.
	Codes    []string       `json:"codes"`
	Counts   map[string]int `json:"counts,omitempty"`
	Rejected bool           `json:"rejected,omitempty"`
}

// Rendered returns the proxies of the last render.
func (m *Mesh) Rendered() []Proxies {
	if m == nil {
		return nil
	}
	var out []Proxies
	for _, d := range m.Decided {
		if d.Version == "" {
			continue
		}
		i := slices.IndexFunc(out, func(p Proxies) bool { return p.Version == d.Version })
		if i < 0 {
			i, out = len(out), append(out, Proxies{Version: d.Version})
		}
		out[i].Workloads = append(out[i].Workloads, d.Workloads...)
		out[i].More += d.More
	}
	return out
}

// WaitsForMerge reports whether a result of the pipeline is not merged, as far as its state knows.
func (s *State) WaitsForMerge() bool {
	return slices.ContainsFunc(s.Status.Published, func(p v1alpha1.Published) bool { return p.PullRequest != nil })
}

// Merged returns the proxies that a cluster is to have now: those on the target branches.
func (s *State) Merged() []Proxies {
	switch {
	case s.Mesh == nil:
		return nil
	case s.Mesh.OnBranch != nil:
		return s.Mesh.OnBranch.Proxies
	case s.WaitsForMerge(): // as stored by a version that did not keep it
		return nil
	}
	return s.Mesh.Rendered()
}

// BranchDrift returns how the target branches were found to differ from what the pipeline has published, "" for not at
// all.
func (s *State) BranchDrift() string {
	if s.Mesh == nil || s.Mesh.OnBranch == nil {
		return ""
	}
	return s.Mesh.OnBranch.Drift
}

// Versions counts proxies by version.
func Versions(proxies []Proxies) map[string]int {
	out := map[string]int{}
	for _, p := range proxies {
		out[p.Version] += p.N()
	}
	return out
}
