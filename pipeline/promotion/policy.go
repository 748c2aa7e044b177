// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// policy is how the pipelines that share a head want it to be merged. They may be of teams that do not know of each other, so that what
// each of them asks for holds, and only what all of them leave to Prerig is merged by it.
type policy struct {
	merge v1alpha1.MergePolicy
	// when has groups by their heads.
	when v1alpha1.MergeWhen
	// asked reports whether Prerig should merge for at least one of them.
	asked bool
	// differ describes in what they disagree, or is "" if they agree.
	differ string
}

// effectivePolicy returns the policy of those who share the head of a group of a unit.
func effectivePolicy(unit string, sharing []member) policy {
	var all policy
	merges, whens, others := false, false, false
	for i := range sharing {
		one := sharing[i].memberPolicy()
		others = others || sharing[i].unit != unit
		if i == 0 {
			all = one
			continue
		}
		merges = merges || one.merge != all.merge
		whens = whens || !reflect.DeepEqual(one.when, all.when)
		if one.merge != v1alpha1.MergeWhenGreen {
			all.merge = one.merge
		}
		all.asked = all.asked || one.asked
		all.when = combineMergeConditions(all.when, one.when)
	}
	switch {
	case others:
		// Two orders of waves, or one and none, are decided about apart.
		all.merge, all.differ = v1alpha1.MergeManual, "its branch is also that of pipelines with other waves, or without"
	case merges:
		all.differ = "its pipelines differ in merge, and Manual holds"
	case whens:
		all.differ = "its pipelines differ in mergeWhen, and what each asks for holds"
	}
	return all
}

// memberPolicy is that of one pipeline alone.
func (m *member) memberPolicy() policy {
	r := m.to.PullRequest
	p := policy{merge: r.Merge, asked: r.Merge == v1alpha1.MergeWhenGreen}
	if r.MergeWhen != nil {
		p.when = *r.MergeWhen
		p.when.After = nil
		for _, after := range r.MergeWhen.After {
			after.Group = r.HeadOf(m.to, after.Group)
			p.when.After = append(p.when.After, after)
		}
	}
	p.when.Method = cmp.Or(p.when.Method, "Merge")
	return p
}

// combineMergeConditions asks for all that one of two asks for. Where they want other methods, it is the one that keeps
// the commit that was reviewed.
func combineMergeConditions(a, b v1alpha1.MergeWhen) v1alpha1.MergeWhen {
	if a.Method != b.Method {
		a.Method = "Merge"
	}
	a.Statuses = unionOfLists(a.Statuses, b.Statuses)
	a.GreenFor = longerDuration(a.GreenFor, b.GreenFor)
	a.Approvals = max(a.Approvals, b.Approvals)
	a.After, a.Freeze = unionOfLists(a.After, b.After), unionOfLists(a.Freeze, b.Freeze)
	return a
}

// combineWaves are waves of one order that ask for all that one of two asks for.
func combineWaves(a, b *v1alpha1.Waves) *v1alpha1.Waves {
	return &v1alpha1.Waves{Order: a.Order, Statuses: unionOfLists(a.Statuses, b.Statuses), GreenFor: longerDuration(a.GreenFor, b.GreenFor)}
}

func unionOfLists[T any](a, b []T) []T {
	out := slices.Clone(a)
	for _, one := range b {
		if !slices.ContainsFunc(out, func(other T) bool { return reflect.DeepEqual(one, other) }) {
			out = append(out, one)
		}
	}
	return out
}

func longerDuration(a, b *metav1.Duration) *metav1.Duration {
	if lengthOf(b) > lengthOf(a) {
		return b
	}
	return a
}
