// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// lintingPlan returns the policy whose rules check the pods, and how severe they are: the first that asks for it. Without one, the policy
// that injects Istio's proxy, or the first, checks by the rules that every injection checks.
func lintingPlan(plans []*compiledPolicy) (pl *compiledPolicy, severities lint.Severities, all bool) {
	if i := slices.IndexFunc(plans, func(pl *compiledPolicy) bool { return pl.lints }); i >= 0 {
		return plans[i], plans[i].severities, true
	}
	if len(plans) == 0 {
		return nil, lint.Off(), false
	}
	pl = plans[max(0, slices.IndexFunc(plans, func(pl *compiledPolicy) bool { return pl.istio != nil }))]
	return pl, lint.Always(pl.policy.Spec.Lint != nil), false
}

// lintPod checks the pod by the rules of the first policy that asks for it, and an injected one in any case by those that every injection checks.
func (a *attempt) lintPod() {
	pl, severities, all := lintingPlan(a.of.plans)
	if pl == nil || !all && a.of.in.mode == v1alpha1.ModeRemove {
		return
	}
	input := a.lintInput(a.after, pl)
	if all || a.outcome.Action == Injected {
		found, suppressed := lint.Check(input, severities)
		a.of.locateFindings(found)
		a.of.locateFindings(suppressed)
		a.results = append(a.results, found...)
		a.unit.suppressed = append(a.unit.suppressed, suppressed...)
	}
	if !all && !a.of.cluster.decides {
		return
	}
	if summary, ok := lint.Summarize(input); ok {
		a.unit.summaries = append(a.unit.summaries, summary)
	}
}

// summarizeRejected keeps what the rules about all workloads read of a pod that is an error, so that a reference to it is not reported as well.
func (a *attempt) summarizeRejected(pod map[string]any) {
	pl, _, all := lintingPlan(a.of.plans)
	if !all {
		return
	}
	if summary, ok := lint.Summarize(a.lintInput(pod, pl)); ok {
		a.unit.summaries = append(a.unit.summaries, summary)
	}
}

// locateFindings adds the lines of what results are about. The file may have a container elsewhere than the injected
// pod has it. A finding has its line at any severity.
func (w *podInjection) locateFindings(list result.Results) {
	for i := range list {
		list[i].File = w.unit.fileLocationOfField(list[i].File, lint.PathIn(w.template.Pod, w.template.Field, list[i]))
	}
}

// lintInput is what rules read of the pod.
func (a *attempt) lintInput(pod map[string]any, pl *compiledPolicy) lint.Input {
	w, m, ns := a.of, a.unit.meta, a.of.homesFor(pl)[0]
	input := lint.Input{
		APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Name,
		Namespace: ns.Name, NamespaceLabels: ns.Labels, NamespaceKnown: ns.Known,
		Field: a.field, Before: a.original, After: pod, Injected: addedContainers(a.original, pod),
		File: a.unit.fileLocation(), Unquoted: a.unquoted,
	}
	if pl.lints {
		input.Misplaced = a.findMisplacedMetadata()
	}
	if a.field != "" {
		input.Replicas = lint.Replicas(w.obj)
		meta, _ := w.obj["metadata"].(map[string]any)
		input.ObjectLabels, input.ObjectAnnotations = stringMap(meta["labels"]), stringMap(meta["annotations"])
	}
	if pl.istio != nil {
		d := pl.istio.Detection()
		input.Facts = lint.Facts{
			IstioVersion: d.Version.String(), IstioVersionFrom: d.From, ControlPlanes: w.cluster.planes,
			KubernetesVersion: pl.policy.Spec.Istio.KubernetesVersion, CNI: lint.No,
		}
		if pl.istio.Values().CNI() {
			input.Facts.CNI = lint.Yes
		}
	}
	return input
}

// findMisplacedMetadata returns what the workload's own metadata has in vain for the sidecars of the policies.
func (a *attempt) findMisplacedMetadata() (out []lint.Misplaced) {
	for _, pl := range a.of.plans {
		for _, s := range pl.sidecars {
			for _, m := range s.Misplaced(a.sidecarRequest(pl, a.of.homesFor(pl)[0])) {
				out = append(out, lint.Misplaced{Key: m.Key, Label: m.Label, Sidecar: s.Name()})
			}
		}
	}
	return out
}

// lintSet runs the checks that need all workloads together. An object that rules read and that cannot be decoded is
// an error, as its findings are unknown; a removal has no findings and ignores it.
func (in *Injector) lintSet(units []*documentUnit, plans []*compiledPolicy, s *cluster) (found, suppressed result.Results) {
	pl, severities, all := lintingPlan(plans)
	if pl == nil || !all && (in.mode == v1alpha1.ModeRemove || !s.decides) {
		return nil, nil
	}
	var summaries []lint.Summary
	custom := map[string]bool{} // kinds whose definitions are read
	for _, u := range units {
		summaries = append(summaries, u.summaries...)
		for _, one := range u.summaries {
			custom[u.meta.Kind] = custom[u.meta.Kind] || one.NeedsDefinition()
		}
	}
	var unread result.Results
	var around lint.Surroundings
	of := map[*result.File]*documentUnit{} // objects beside the workloads
	for _, u := range units {
		if !all && !u.decides(custom) {
			continue
		}
		o, ok, err := u.lintedObject(pl, s)
		switch {
		case !all && o.Namespace == "" && isConstraint(u.meta):
			// The object may be an alternative for another cluster.
		case err != nil && in.mode != v1alpha1.ModeRemove:
			n := len(u.results)
			u.addError("", err)
			unread = append(unread, u.results[n:]...)
		case ok:
			around.Objects = append(around.Objects, o)
			of[o.File] = u
		}
	}
	if istio := pl.policy.Spec.Istio; istio != nil {
		around.RootNamespace = istio.RootNamespace
	}
	if pl.istio != nil {
		around.IstioVersion = pl.istio.Detection().Version.String()
	}
	for _, name := range s.namespaceNames() {
		f := s.namespaces[name][0]
		around.Namespaces = append(around.Namespaces, lint.Namespace{Name: name, Labels: f.metadataStringMap("labels"), Annotations: f.metadataStringMap("annotations"), File: f.unit.fileLocation()})
	}
	around.Namespaces = append(around.Namespaces, listedNamespaces(units, pl, s)...)
	found, suppressed = lint.CheckSet(summaries, around, severities)
	for _, list := range []result.Results{found, suppressed} {
		for j := range list {
			if u, field := of[list[j].File], list[j].Field; u != nil && field != nil {
				list[j].File = u.fileLocationOfField(list[j].File, field.Path)
			}
		}
	}
	return append(unread, found...), suppressed
}

// decides reports whether rules that every injection checks read the object. Large definitions are read for the kinds of the workloads only.
func (u *documentUnit) decides(custom map[string]bool) bool {
	if !lint.Decides(u.meta.APIVersion, u.meta.Kind) {
		return false
	}
	if u.meta.Kind != "CustomResourceDefinition" {
		return true
	}
	for kind, native := range custom {
		if native && u.doc.Contains(kind) {
			return true
		}
	}
	return false
}

// lintedObject returns the object that a unit is, if rules read its kind.
func (u *documentUnit) lintedObject(pl *compiledPolicy, s *cluster) (_ lint.Object, ok bool, err error) {
	if u.broken || !lint.ReadsKind(u.meta.APIVersion, u.meta.Kind) {
		return lint.Object{}, false, nil
	}
	obj, err := u.doc.Object()
	if err != nil {
		return lint.Object{}, false, err
	}
	u.readOrigin(obj)
	return lint.Object{
		APIVersion: u.meta.APIVersion, Kind: u.meta.Kind, Name: u.meta.Name, Namespace: pl.namespaceCandidates(u.meta.Namespace, s)[0].Name,
		Object: obj, File: u.fileLocation(),
	}, true, nil
}

// listedNamespaces returns the namespaces that a policy lists and that are not among the input. Of a policy that was completed from a
// cluster these are all that the cluster has, and only those that hold objects: others are not what the objects' authors may look at.
func listedNamespaces(units []*documentUnit, plan *compiledPolicy, s *cluster) (out []lint.Namespace) {
	homes := map[string]bool{}
	for _, u := range units {
		homes[plan.namespaceCandidates(u.meta.Namespace, s)[0].Name] = true
	}
	for _, n := range plan.policy.Spec.Namespaces {
		if _, ok := s.namespaces[n.Name]; !ok && (homes[n.Name] || !plan.isCompleted()) {
			out = append(out, lint.Namespace{Name: n.Name, Labels: n.Labels, Annotations: n.Annotations})
		}
	}
	return out
}
