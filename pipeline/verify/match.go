// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// verifyPod compares one pod with the commits.
func (v *verifier) verifyPod(pod map[string]any) result {
	ref := refOf(pod)
	out := result{pod: Pod{Namespace: ref.Namespace, Name: ref.Name, State: Foreign}}
	o := v.snapshot.originOf(pod, v.options.Registry)
	out.pod.Workload = o.workloads[0].String()
	found, unknown, err := normalPod(pod)
	if err != nil {
		out.pod.State, out.pod.Message = Unreadable, err.Error()
		return out
	}
	v.server.Default(found)
	if o.forged {
		out.pod.Message = fmt.Sprintf("its owner reference has another uid than %s", o.direct)
		return out
	}
	m := &matching{verifier: v, pod: pod, found: found, origin: o, unknown: unknown}
	m.search()
	m.finish(&out)
	return out
}

// matching is the search for the commit that a pod is of.
type matching struct {
	*verifier
	pod, found map[string]any
	origin     origin
	unknown    []unknownField // compared as they are written
	problem    string         // why a template could not be read
	unread     string         // why an older version could not be read

	head    *Workload
	ofHead  map[string]any // the head's template that fits best
	best    *attempt
	atOwner *attempt // the newest version that the owner's template equals
}

// attempt is a comparison of the pod with one version of its workload.
type attempt struct {
	version  *Workload
	template map[string]any
	compared *compared
	changes  []change
	unknown  []unknownField // that differ
	resized  []change       // made by a resize in place, which no version has
	owner    []change       // of the owner's template, if the pod was resized
}

// off is in how many fields the pod differs, apart from those that a resize has set.
func (a *attempt) off() int { return len(a.changes) + len(a.unknown) + len(a.owner) }

// search compares the pod with the versions of its workload until one equals it.
func (m *matching) search() {
	for _, ref := range m.origin.workloads {
		if w := m.resolve(ref); w != nil {
			m.head = w
			break
		}
	}
	if m.head != nil {
		if m.ofHead = m.tryAll(m.head); !m.equal() && m.ofHead != nil {
			m.searchVersions(m.head.Ref)
		}
		return
	}
	for _, ref := range m.origin.workloads {
		if m.searchVersions(ref); m.best != nil {
			return
		}
	}
}

// resolve returns the workload of the newest commit that has the template of a reference.
func (m *matching) resolve(ref Ref) *Workload {
	w := m.heads[ref]
	for _, one := range m.generated {
		if w == nil && one.Ref.named(ref) {
			w = one
		}
	}
	for i := 0; w != nil && w.elsewhere != nil && i < maxOwners; i++ {
		w = m.heads[*w.elsewhere]
	}
	return w
}

// searchVersions continues if a version cannot be read: a problem with an old commit must not keep a pod from being
// reported.
func (m *matching) searchVersions(ref Ref) {
	for version, err := range m.history.Versions(ref) {
		if err != nil {
			m.unread = cmp.Or(m.unread, err.Error())
			continue
		}
		if m.tryAll(version); m.equal() {
			return
		}
	}
}

// tryAll compares the pod with the templates of a version, and returns the one that fits best so far, or nil.
func (m *matching) tryAll(version *Workload) map[string]any {
	for _, template := range version.Templates {
		if m.try(version, template); m.equal() {
			break
		}
	}
	if m.best == nil {
		return nil
	}
	return m.best.template
}

// try compares the pod with a template. A template that cannot be read is no match.
func (m *matching) try(version *Workload, template map[string]any) {
	want, err := m.expect(template, m.origin, version.Object, m.pod)
	if err != nil {
		m.problem = fmt.Sprintf("reading %s in %s: %v", version.Ref, version.File, err)
		return
	}
	found, _ := podmap.WithLast(want, m.found) // the rule podmap.KeepLastRule
	a := &attempt{version: version, template: template, compared: m.compare(version, want, found)}
	a.resized, a.changes = splitResized(m.pod, m.kept(a.compared, differences(want, found)))
	a.unknown = m.differing(template)
	if len(a.resized) > 0 && m.origin.template != nil {
		a.owner = m.ofOwner(a) // the pod no longer has the values of its template
	}
	if m.best == nil || a.off() < m.best.off() {
		m.best = a
	}
	// The owner's template is irrelevant for a version that the pod equals.
	if a.off() > 0 && m.atOwner == nil && m.origin.template != nil && len(m.ofOwner(a)) == 0 {
		m.atOwner = a
	}
}

func (m *matching) compare(version *Workload, want, found map[string]any) *compared {
	return &compared{v: m.verifier, pod: m.pod, origin: m.origin, version: version, want: want, found: found}
}

// equal reports whether the pod equals the version that fits best.
func (m *matching) equal() bool { return m.best != nil && m.best.off() == 0 }

// kept are the changes that neither Kubernetes nor the user explains.
func (m *matching) kept(p *compared, changes []change) []change {
	return slices.DeleteFunc(changes, func(c change) bool {
		return p.allowed(c) || m.ignores(c.field())
	})
}

// ignores reports whether a field may differ.
func (v *verifier) ignores(field string) bool {
	return slices.ContainsFunc(v.options.Ignore, func(pattern string) bool { return matches(pattern, field) })
}

// matches reports whether a field matches a pattern, in which * matches any text and all other characters match
// literally.
func matches(pattern, field string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == field
	}
	rest, ok := strings.CutPrefix(field, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}

// ofOwner returns the changes of the template of the pod's owner.
func (m *matching) ofOwner(a *attempt) []change {
	owners, err := m.expect(m.origin.template, m.origin, a.version.Object, m.pod)
	if err != nil {
		return nil
	}
	p := m.compare(a.version, a.compared.want, owners)
	return m.kept(p, differences(a.compared.want, owners))
}

// finish writes down what was found.
func (m *matching) finish(out *result) {
	out.head, out.template = m.head, m.ofHead
	a := m.best
	if a == nil {
		out.pod.Message = m.foreign()
		if problem := cmp.Or(m.problem, m.unread); problem != "" {
			out.pod.State, out.pod.Message = Unreadable, problem
		}
		return
	}
	equal := m.equal()
	if !equal && m.atOwner != nil {
		a = m.atOwner
	}
	out.pod.Workload, out.pod.File = a.version.Ref.String(), a.version.File
	commit := a.version.Commit
	out.pod.Commit = &commit
	switch {
	case !equal:
		out.pod.State = Changed
		out.pod.Message = cmp.Or(m.unread, m.ownerDiffers(a.owner), maybeResized(m.pod, a.changes))
		m.explain(a, &out.pod)
		return
	case m.head == nil:
		out.pod.State, out.pod.Message = Removed, "the newest commit does not have its workload any more"
	case a.version == m.head && len(a.resized) > 0:
		out.pod.State = Resized
	case a.version == m.head:
		out.pod.State = Current
	default:
		out.pod.State = Older
	}
	m.explain(a, &out.pod)
}

// foreign describes what is known of a pod that no commit has.
func (m *matching) foreign() string {
	by := ""
	if first := creator(managers(m.pod), m.pod); first != nil && first.name != "" {
		by = "; it was created by " + first.name
	}
	if m.origin.direct.Kind == "Pod" {
		return "no commit has this pod, and nothing controls it" + by
	}
	if first := creator(managers(m.origin.top), m.origin.top); first != nil && first.name != "" {
		by = "; it was created by " + first.name
	}
	return fmt.Sprintf("no commit has %s%s", m.origin.workloads[0], by)
}

// explain lists what differs, and who did it.
func (m *matching) explain(a *attempt, pod *Pod) {
	inOwner := map[string]change{}
	if a.off() > 0 && m.origin.template != nil {
		for _, c := range m.ofOwner(a) {
			inOwner[c.field()] = c
		}
	}
	for _, c := range slices.Concat(a.changes, a.resized) {
		shown := c.shown()
		of, ok := inOwner[c.field()]
		pod.Differences = append(pod.Differences, Difference{
			Field: c.field(), Committed: shown.want, Found: shown.found, Order: c.order, summary: summary(shown),
			Cause: m.causeOf(a.compared, c, ok && sameJSON(of.found, c.found)),
		})
	}
	for _, f := range a.unknown {
		pod.Differences = append(pod.Differences, f.difference())
	}
}
