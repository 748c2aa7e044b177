// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"github.com/prerig/prerig/fn/result"
)

// TagScope is the tag of findings that a setting of the mesh leads to, with the value ScopeMesh.
const (
	TagScope  = "prerig.dev/scope"
	ScopeMesh = "mesh"
)

// JoinMesh reports the consequences of a mesh setting in many workloads once: findings of scope mesh with the same
// rule, severity and message are merged into one, at the position of the first, whose Places are all of them in
// their order. Other results are unchanged.
func JoinMesh(rs result.Results) result.Results {
	type sort struct {
		code, message string
		severity      result.Severity
	}
	sortOf := func(r result.Result) sort { return sort{r.Tags[result.TagCode], r.Message, r.Severity} }
	count := map[sort]int{}
	for _, r := range rs {
		if r.Tags[TagScope] == ScopeMesh {
			count[sortOf(r)]++
		}
	}
	joined := map[sort]int{} // index in out
	out := make(result.Results, 0, len(rs))
	for _, r := range rs {
		key := sortOf(r)
		if r.Tags[TagScope] != ScopeMesh || count[key] < 2 || r.ResourceRef == nil {
			out = append(out, r)
			continue
		}
		place := result.Place{ResourceRef: *r.ResourceRef, Field: r.Field, File: r.File}
		if i, ok := joined[key]; ok {
			out[i].Places = append(out[i].Places, place)
			continue
		}
		r.ResourceRef, r.Field, r.File, r.Places = nil, nil, nil, []result.Place{place}
		joined[key] = len(out)
		out = append(out, r)
	}
	return out
}
