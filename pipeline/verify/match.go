// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// verifyPod compares one pod with the commits.
func (v *verifier) verifyPod(pod map[string]any) result {
	ref := refOf(pod)
	out := result{pod: Pod{Namespace: ref.Namespace, Name: ref.Name, State: Foreign, created: creationTime(pod), ready: isPodReady(pod)}}
	o := v.snapshot.resolveOwnerChain(pod, v.options.Registry)
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
	m.searchMatchingVersion()
	m.recordPodResult(&out)
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

// differingFieldCount is in how many fields the pod differs, apart from those that a resize has set.
func (a *attempt) differingFieldCount() int { return len(a.changes) + len(a.unknown) + len(a.owner) }

// searchMatchingVersion compares the pod with the versions of its workload until one equals it.
func (m *matching) searchMatchingVersion() {
	for _, ref := range m.origin.workloads {
		if w := m.newestWorkloadWithTemplate(ref); w != nil {
			m.head = w
			break
		}
	}
	if m.head != nil {
		if m.ofHead = m.tryAllTemplates(m.head); !m.bestVersionEquals() && m.ofHead != nil {
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

// newestWorkloadWithTemplate returns the workload of the newest commit that has the template of a reference.
func (m *matching) newestWorkloadWithTemplate(ref Ref) *Workload {
	w := m.heads[ref]
	for _, one := range m.generated {
		if w == nil && one.Ref.canBeNamedBy(ref) {
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
		if m.tryAllTemplates(version); m.bestVersionEquals() {
			return
		}
	}
}

// tryAllTemplates compares the pod with the templates of a version, and returns the one that fits best so far, or nil.
func (m *matching) tryAllTemplates(version *Workload) map[string]any {
	for _, template := range version.Templates {
		if m.tryTemplate(version, template); m.bestVersionEquals() {
			break
		}
	}
	if m.best == nil {
		return nil
	}
	return m.best.template
}

// tryTemplate compares the pod with a template. A template that cannot be read is no match.
func (m *matching) tryTemplate(version *Workload, template map[string]any) {
	want, err := m.expectedPodFromTemplate(template, m.origin, version.Object, m.pod)
	if err != nil {
		m.problem = fmt.Sprintf("reading %s in %s: %v", version.Ref, version.File, err)
		return
	}
	found, _ := podmap.WithLast(want, m.found) // the rule podmap.KeepLastRule
	a := &attempt{version: version, template: template, compared: m.newComparison(version, want, found)}
	a.resized, a.changes = splitResized(m.pod, m.unexplainedChanges(a.compared, differencesBetweenPods(want, found)))
	a.unknown = m.differingUnknownFields(template)
	if len(a.resized) > 0 && m.origin.template != nil {
		a.owner = m.ownerTemplateChanges(a) // the pod no longer has the values of its template
	}
	if m.best == nil || a.differingFieldCount() < m.best.differingFieldCount() {
		m.best = a
	}
	// The owner's template is irrelevant for a version that the pod equals.
	if a.differingFieldCount() > 0 && m.atOwner == nil && m.origin.template != nil && len(m.ownerTemplateChanges(a)) == 0 {
		m.atOwner = a
	}
}

func (m *matching) newComparison(version *Workload, want, found map[string]any) *compared {
	return &compared{v: m.verifier, pod: m.pod, origin: m.origin, version: version, want: want, found: found}
}

// bestVersionEquals reports whether the pod equals the version that fits best.
func (m *matching) bestVersionEquals() bool {
	return m.best != nil && m.best.differingFieldCount() == 0
}

// unexplainedChanges returns the changes that neither Kubernetes nor the user explains.
func (m *matching) unexplainedChanges(p *compared, changes []change) []change {
	return slices.DeleteFunc(changes, func(c change) bool {
		return p.isAllowedChange(c) || m.ignoresField(c.fieldPathWithIdentities())
	})
}

// CheckIgnored refuses a pattern of fields that can match none.
func CheckIgnored(pattern string) error {
	open, quoted := 0, false
	for _, r := range pattern {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == '[':
			open++
		case r == ']':
			open--
		}
		if open < 0 || open > 1 {
			break
		}
	}
	switch {
	case strings.TrimSpace(pattern) == "":
		return errors.New("it is empty; name a field, such as spec.nodeName")
	case quoted:
		return errors.New("a quote is not closed")
	case open > 0:
		return errors.New("[ is not closed")
	case open < 0:
		return errors.New("] has no [")
	}
	return nil
}

// ignoresField reports whether a field may differ.
func (v *verifier) ignoresField(field string) bool {
	return slices.ContainsFunc(v.options.Ignore, func(pattern string) bool { return matchesFieldPattern(pattern, field) })
}

// matchesFieldPattern reports whether a field matches a pattern, in which * matches any text and all other characters
// match literally.
func matchesFieldPattern(pattern, field string) bool {
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

// ownerTemplateChanges returns the changes of the template of the pod's owner.
func (m *matching) ownerTemplateChanges(a *attempt) []change {
	owners, err := m.expectedPodFromTemplate(m.origin.template, m.origin, a.version.Object, m.pod)
	if err != nil {
		return nil
	}
	p := m.newComparison(a.version, a.compared.want, owners)
	return m.unexplainedChanges(p, differencesBetweenPods(a.compared.want, owners))
}

// recordPodResult writes down what was found.
func (m *matching) recordPodResult(out *result) {
	out.head, out.template = m.head, m.ofHead
	a := m.best
	if a == nil {
		out.pod.Message = m.describeForeignPod()
		if problem := cmp.Or(m.problem, m.unread); problem != "" {
			out.pod.State, out.pod.Message = Unreadable, problem
		}
		return
	}
	equal := m.bestVersionEquals()
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
		m.explainDifferences(a, &out.pod)
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
	m.explainDifferences(a, &out.pod)
}

// describeForeignPod describes what is known of a pod that no commit has.
func (m *matching) describeForeignPod() string {
	by := ""
	if first := creatingManagerEntry(managersByTime(m.pod), m.pod); first != nil && first.name != "" {
		by = "; it was created by " + first.name
	}
	if m.origin.direct.Kind == "Pod" {
		return "no commit has this pod, and nothing controls it" + by
	}
	if first := creatingManagerEntry(managersByTime(m.origin.top), m.origin.top); first != nil && first.name != "" {
		by = "; it was created by " + first.name
	}
	return fmt.Sprintf("no commit has %s%s", m.origin.workloads[0], by)
}

// explainDifferences lists what differs, and who did it.
func (m *matching) explainDifferences(a *attempt, pod *Pod) {
	inOwner := map[string]change{}
	if a.differingFieldCount() > 0 && m.origin.template != nil {
		for _, c := range m.ownerTemplateChanges(a) {
			inOwner[c.fieldPathWithIdentities()] = c
		}
	}
	for _, c := range slices.Concat(a.changes, a.resized) {
		shown := c.redactCredentials()
		of, ok := inOwner[c.fieldPathWithIdentities()]
		pod.Differences = append(pod.Differences, Difference{
			Field: c.fieldPathWithIdentities(), Committed: shown.want, Found: shown.found, Order: c.order, summary: summarizeChange(shown),
			Cause: m.findCause(a.compared, c, ok && sameJSON(of.found, c.found)),
		})
	}
	for _, f := range a.unknown {
		pod.Differences = append(pod.Differences, f.toDifference())
	}
}
