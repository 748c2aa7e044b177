// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/fn/workload"
)

// home is the namespace that a workload will live in, as far as it is known.
type home struct {
	inject.Namespace
	// source describes where its labels come from, for people.
	source string
	// declared reports whether they are those of a Namespace among the items, which may be incomplete: the
	// cluster's own may have been labelled by another party.
	declared bool
}

// namespaceCandidates returns what is known about the namespace of a name: one home for each Namespace among the items
// with content of its own, or what the policy lists, or a home of which only the name is known. It returns at least
// one.
func (pl *compiledPolicy) namespaceCandidates(name string, s *cluster) []home {
	spec := &pl.policy.Spec
	switch {
	case spec.TargetNamespace != "":
		name = spec.TargetNamespace
	case name == "":
		name = spec.DefaultNamespace
	}
	var listed home
	n, isListed := pl.listedNamespace(name)
	if isListed {
		ns := inject.Namespace{Name: name, Labels: n.Labels, Annotations: n.Annotations, Known: true}
		listed = home{Namespace: ns, source: "policy " + pl.policy.Metadata.Name}
	}
	var out []home
	for _, f := range s.namespaces[name] {
		out = append(out, pl.declaredHome(f, name, listed, isListed))
	}
	switch {
	case len(out) > 0:
		return out
	case isListed:
		return []home{listed}
	}
	return []home{{Namespace: inject.Namespace{Name: name}, source: decide.SourceUnknown}}
}

// declaredHome reads a Namespace among the items. What it leaves out is taken from the policy's list, so that the
// decision for a pod is the same whether or not the file with its Namespace is among the input.
func (pl *compiledPolicy) declaredHome(f clusterObject, name string, listed home, isListed bool) home {
	ns := inject.Namespace{Name: name, Labels: f.metadataStringMap("labels"), Annotations: f.metadataStringMap("annotations"), Known: true}
	if !isListed {
		return home{Namespace: ns, source: f.describeSource(), declared: true}
	}
	ns.Annotations = mergeStringMaps(listed.Annotations, ns.Annotations)
	if pl.decider != nil && pl.decider.Says(ns.Labels) {
		return home{Namespace: ns, source: f.describeSource()}
	}
	ns.Labels = mergeStringMaps(listed.Labels, ns.Labels)
	return home{Namespace: ns, source: listed.source}
}

// mergeStringMaps returns the texts of a map with those of another one put over them.
func mergeStringMaps(m, more map[string]string) map[string]string {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, more)
	return out
}

// decideInjection decides for a pod in the namespace that it will live in, with every step if trace is set. It fails
// where Namespaces of that name do not agree about the pod.
func (pl *compiledPolicy) decideInjection(
	pod map[string]any, owner workload.Owner, homes []home, trace bool,
) (decide.Pod, decide.Decision, error) {
	ask := pl.decider.Decide
	if trace {
		ask = pl.decider.Explain
	}
	var asked decide.Pod
	var first decide.Decision
	for i, h := range homes {
		ns := pl.decider.Settle(decide.Namespace{Name: h.Name, Labels: h.Labels, Known: h.Known, Source: h.source}, h.declared)
		p, err := decide.PodOf(pod, owner, ns)
		if err != nil {
			return p, first, err
		}
		decision := ask(p)
		if i == 0 {
			asked, first = p, decision
			continue
		}
		otherRevision := decision.Revision != first.Revision && decision.Revision != "" && first.Revision != ""
		if decision.Inject != first.Inject || decision.Failed != first.Failed || otherRevision {
			return asked, first, namespacesDisagree(homes[0], h, pl.decider.Said(homes[0].Labels), pl.decider.Said(h.Labels))
		}
		if key, differ := openShiftDiffers(homes[0], h); differ && decision.Inject {
			return asked, first, namespacesDisagree(homes[0], h, describeMapEntry(homes[0].Annotations, key), describeMapEntry(h.Annotations, key))
		}
	}
	return asked, first, nil
}

// openShiftAnnotations begin the annotations of a namespace that the injection reads.
const openShiftAnnotations = "openshift.io/sa.scc."

// openShiftDiffers returns an annotation for the injection that two Namespaces have differently.
func openShiftDiffers(a, b home) (key string, differ bool) {
	for _, key := range unionKeys(anyMap(a.Annotations), anyMap(b.Annotations)) {
		if strings.HasPrefix(key, openShiftAnnotations) && a.Annotations[key] != b.Annotations[key] {
			return key, true
		}
	}
	return "", false
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

func describeMapEntry(m map[string]string, key string) string {
	if v, ok := m[key]; ok {
		return key + "=" + v
	}
	return "no " + key
}

// namespacesDisagree is the error of a workload for which two Namespaces of one name mean different things.
func namespacesDisagree(a, b home, one, other string) error {
	return fmt.Errorf("there are two Namespaces %s, which decide differently about the pod: %s has %s, %s has %s; "+
		"give only one of them, or run prerig for one cluster at a time", a.Name, a.source, one, b.source, other)
}

// guessedNamespace warns, once for all, of injected workloads whose namespace is not set: the proxy's environment
// contains a namespace, and default is a guess that a later kustomization or a controller's target can invalidate.
func guessedNamespace(outcomes []Outcome) result.Results {
	var first *Outcome
	n := 0
	for i, o := range outcomes {
		if o.Decision == nil || !o.Decision.Inject || o.Decision.Namespace.Name != "" {
			continue
		}
		if n++; first == nil {
			first = &outcomes[i]
		}
	}
	var who string
	switch n {
	case 0:
		return nil
	case 1:
		who = first.Ref.String() + " names no namespace"
	case 2:
		who = first.Ref.String() + " and 1 other workload name no namespace"
	default:
		who = fmt.Sprintf("%s and %d other workloads name no namespace", first.Ref, n-1)
	}
	return result.Results{{Severity: result.Warning, Message: who + ", so default is written for the proxy; " +
		"if it is another one, set it in the manifest or as defaultNamespace in the policy's spec, or with -n NAMESPACE of prerig inject"}}
}

// homesFor returns what is known about the workload's own namespace.
func (w *podInjection) homesFor(pl *compiledPolicy) []home {
	return pl.namespaceCandidates(w.unit.meta.Namespace, w.cluster)
}

// sidecarNamespace returns the namespace in the form that sidecars expect.
func (h home) sidecarNamespace() sidecar.Namespace {
	ns := h.Namespace
	return sidecar.Namespace{
		Name: ns.Name, Labels: ns.Labels, Annotations: ns.Annotations, Known: ns.Known, Declared: h.declared,
	}
}

// decideSidecar decides for a sidecar, whose request is for the first home. It fails where the homes do not agree about
// the pod.
func decideSidecar(s *sidecar.Sidecar, req sidecar.Request, homes []home) (sidecar.Decision, error) {
	first, err := s.Decide(req)
	if err != nil {
		return first, err
	}
	for _, h := range homes[1:] {
		req.Namespace = h.sidecarNamespace()
		decision, err := s.Decide(req)
		if err != nil {
			return first, err
		}
		if decision.Inject != first.Inject || decision.Fail != first.Fail {
			one, other := describeDecision(first), describeDecision(decision)
			return first, namespacesDisagree(homes[0], h, "what "+one+" the sidecar "+s.Name(), "what "+other+" it")
		}
	}
	return first, nil
}

// describeDecision describes a sidecar's decision in one word.
func describeDecision(d sidecar.Decision) string {
	switch {
	case d.Inject:
		return "injects"
	case d.Fail:
		return "refuses"
	}
	return "leaves out"
}

// unknownNamespace returns a policy's setting for unknown namespaces, in the form that sidecars expect.
func unknownNamespace(spec *v1alpha1.InjectionPolicySpec) v1alpha1.UnknownNamespace {
	if spec.UnknownNamespace == "" && len(spec.Namespaces) > 0 {
		return v1alpha1.UnknownNamespaceFail
	}
	return spec.UnknownNamespace
}
