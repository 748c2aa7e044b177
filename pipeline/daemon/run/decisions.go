// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// Bounds of what a state keeps about workloads: how many it names, groups of decisions, workloads with findings,
// codes of one, and bytes of a name and of a reason.
const (
	maxWorkloads    = 500
	maxDecided      = 50
	maxWithFindings = 100
	maxCodes        = 10
	maxWorkloadName = 300
	maxReason       = 300
)

// meshOf returns what a render decided about workloads, and what was found about them; refused reports whether a
// gate refused the result.
func meshOf(response *render.Response, gates v1alpha1.Gates, refused bool) *status.Mesh {
	final, order := finalDecisions(response.Decisions)
	versions := map[result.ResourceRef]string{}
	for _, o := range response.Objects {
		ref := o.Ref()
		if _, isWorkload := final[ref]; isWorkload {
			versions[ref] = publish.IstioVersion(o)
		}
	}
	out := &status.Mesh{Findings: workloadFindings(response.Results, final, gates, refused)}
	for i, ref := range order {
		d := final[ref]
		one := status.Decided{
			Action:  d.Action,
			Code:    d.Code,
			Reason:  foreign.Line(d.Reason, maxReason),
			Version: versions[ref],
		}
		if one.Version == "" && d.Action == string(fn.Injected) {
			one.Version = d.Version // its image has a digest, or a tag of the user's own
		}
		out.Decided = addDecided(out.Decided, one, foreign.Line(ref.String(), maxWorkloadName), i < maxWorkloads)
	}
	return out
}

// finalDecisions returns the decision about each workload, and the workloads in their order. A kustomization and the
// pipeline may both decide about one: the last that did something counts.
func finalDecisions(all []render.Decision) (final map[result.ResourceRef]render.Decision, order []result.ResourceRef) {
	final = map[result.ResourceRef]render.Decision{}
	for _, d := range all {
		before, known := final[d.Object]
		if !known {
			order = append(order, d.Object)
		}
		if !known || d.Action != string(fn.Skipped) || before.Action == string(fn.Skipped) {
			final[d.Object] = d
		}
	}
	return final, order
}

// addDecided adds a workload to those about which the same was decided. Of too many different reasons the last ones
// have none.
func addDecided(all []status.Decided, one status.Decided, workload string, named bool) []status.Decided {
	same := func(d status.Decided) bool {
		return d.Action == one.Action && d.Code == one.Code && d.Reason == one.Reason && d.Version == one.Version
	}
	i := slices.IndexFunc(all, same)
	if i < 0 && len(all) >= maxDecided {
		one.Code, one.Reason = "", ""
		i = slices.IndexFunc(all, same)
	}
	if i < 0 {
		i, all = len(all), append(all, one)
	}
	if named {
		all[i].Workloads = append(all[i].Workloads, workload)
	} else {
		all[i].More++
	}
	return all
}

// workloadFindings returns the workloads with warnings and errors, those with a finding that closed a gate first.
func workloadFindings(
	results result.Results, workloads map[result.ResourceRef]render.Decision, gates v1alpha1.Gates, refused bool,
) (out []status.WorkloadFinding) {
	at := map[result.ResourceRef]int{}
	add := func(ref *result.ResourceRef, one result.Result) {
		if ref == nil {
			return
		}
		if _, isWorkload := workloads[*ref]; !isWorkload {
			return
		}
		i, known := at[*ref]
		if !known {
			i = len(out)
			at[*ref], out = i, append(
				out,
				status.WorkloadFinding{Workload: foreign.Line(ref.String(), maxWorkloadName)},
			)
		}
		out[i].Rejected = out[i].Rejected || refused && publish.CheckFindings(gates, result.Results{one}) != nil
		code := cmp.Or(one.Tags[result.TagCode], string(one.Severity))
		found := &out[i]
		switch {
		case slices.Contains(found.Codes, code):
			if found.Counts == nil {
				found.Counts = map[string]int{}
			}
			found.Counts[code] = max(1, found.Counts[code]) + 1
		case len(found.Codes) < maxCodes:
			found.Codes = append(found.Codes, code)
		}
	}
	for _, one := range results {
		if one.Severity == result.Info {
			continue
		}
		add(one.ResourceRef, one)
		for i := range one.Places {
			add(&one.Places[i].ResourceRef, one)
		}
	}
	for i := range out {
		slices.Sort(out[i].Codes)
	}
	slices.SortStableFunc(out, func(a, b status.WorkloadFinding) int {
		return cmp.Or(rankOfRejected(a)-rankOfRejected(b), cmp.Compare(a.Workload, b.Workload))
	})
	return out[:min(len(out), maxWithFindings)]
}

func rankOfRejected(f status.WorkloadFinding) int {
	if f.Rejected {
		return 0
	}
	return 1
}
