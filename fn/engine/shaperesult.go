// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"

	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
)

// resultMould is a result about each workload of a shape.
type resultMould struct {
	message  *manifest.Mould
	severity result.Severity
	tags     map[string]string
	field    string
	hasRef   bool
	hasFile  bool
	// lines is how far the line is from the document's.
	lines int
}

// newResultMould returns what a result has in common with those of other workloads; false where it has more.
func newResultMould(c *cutter, u *documentUnit, r *result.Result) (resultMould, bool) {
	m := resultMould{message: c.cut(r.Message), severity: r.Severity, tags: r.Tags, hasRef: r.ResourceRef != nil, hasFile: r.File != nil}
	for _, v := range r.Tags {
		if c.has(v) {
			return m, false
		}
	}
	if f := r.Field; f != nil {
		m.field = f.Path
		if c.has(f.Path) || f.Path == "" || f.CurrentValue != nil || f.ProposedValue != nil {
			return m, false
		}
	}
	if m.hasFile && r.File.Line > 0 {
		m.lines = r.File.Line - u.doc.Line()
	}
	return m, len(r.Places) == 0
}

// result returns the result about a unit, which is at a place.
func (m *resultMould) result(u *documentUnit, place *result.File, values []string) result.Result {
	all := &struct {
		ref   result.ResourceRef
		file  result.File
		field result.Field
	}{}
	r := result.Result{Message: m.message.Text(values), Severity: m.severity}
	if m.tags != nil {
		r.Tags = make(map[string]string, len(m.tags))
		for k, v := range m.tags {
			r.Tags[k] = v
		}
	}
	if m.hasRef {
		all.ref = u.resourceReference()
		r.ResourceRef = &all.ref
	}
	if m.field != "" {
		all.field.Path = m.field
		r.Field = &all.field
	}
	if m.hasFile && place != nil {
		if all.file = *place; all.file.Line > 0 {
			all.file.Line += m.lines
		}
		r.File = &all.file
	}
	return r
}

// outcomeMould is the outcome of each workload of a shape.
type outcomeMould struct {
	of        Outcome
	reason    *manifest.Mould
	decision  *decide.Decision
	why       *manifest.Mould // the decision's reason
	namespace *manifest.Mould // its namespace
	named     bool            // the decision depends on the namespace
}

// newOutcomeMould returns what an outcome has in common with those of other workloads. Whether it is all is seen when it is used.
func newOutcomeMould(c *cutter, o *Outcome) (outcomeMould, bool) {
	m := outcomeMould{of: *o, reason: c.cut(o.Reason), decision: o.Decision}
	if o.Decision != nil {
		m.why, m.namespace = c.cut(o.Decision.Reason), c.cut(o.Decision.Namespace.Name)
		m.named = c.has(o.Decision.Reason) || c.has(o.Decision.Namespace.Name)
	}
	m.of.Decision = nil
	return m, o.Before == nil && o.After == nil && len(o.Sidecars) == 0
}

// outcome returns the outcome of a unit.
func (m *outcomeMould) outcome(u *documentUnit, values []string) Outcome {
	o := m.of
	o.Ref, o.File = u.resourceReference(), result.File{}
	if f := u.fileLocation(); f != nil {
		o.File = *f
	}
	o.Reason, o.Decision = m.reason.Text(values), m.decision
	if m.named {
		d := *m.decision
		d.Reason, d.Namespace.Name = m.why.Text(values), m.namespace.Text(values)
		o.Decision = &d
	}
	return o
}

// resultsDifference describes what differs between the outcomes and results of two ways; "" if nothing does.
func resultsDifference(byShape, full *documentUnit) string {
	switch {
	case !reflect.DeepEqual(byShape.outcomes, full.outcomes):
		return fmt.Sprintf("the outcome is %+v and not %+v", byShape.outcomes, full.outcomes)
	case len(byShape.results) != len(full.results):
		return fmt.Sprintf("there are %d results and not %d", len(byShape.results), len(full.results))
	case len(full.objects)+len(full.summaries)+len(full.suppressed) > 0 || full.kept != nil || full.dropped:
		return "there is more than an outcome and results"
	}
	for i := range full.results {
		if !reflect.DeepEqual(byShape.results[i], full.results[i]) {
			return fmt.Sprintf("result %d is %s and not %s", i, byShape.results[i], full.results[i])
		}
	}
	return ""
}
