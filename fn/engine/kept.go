// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// HowToReplace names the annotations by which Flux and Argo CD replace an object.
const HowToReplace = "kustomize.toolkit.fluxcd.io/force: enabled (Flux) or argocd.argoproj.io/sync-options: Force=true,Replace=true (Argo CD)"

// keptPod is what is decided about a Job or bare Pod that is published.
type keptPod struct {
	*publishedPod
	// becomes is the pod, with the images that its own containers had before they were pinned.
	becomes map[string]any
}

// followsPolicy reports whether a Job or bare Pod is injected by the policies as they are now, whatever is published.
func followsPolicy(plans []*compiledPolicy) bool {
	return slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return pl.policy.Spec.Jobs == v1alpha1.JobsFollow })
}

// keepPublishedWorkload decides whether a Job or bare Pod stays as it was published. pod is the result of the policies,
// and before is the state before they were applied: their messages are retracted for a pod that is kept. It returns the
// pod that the object gets.
func (w *podInjection) keepPublishedWorkload(plans []*compiledPolicy, record workloadRecord, written workload.Template, pod map[string]any, before unitState) map[string]any {
	if w.in.mode == v1alpha1.ModeRemove || !isKeptTemplate(w.unit, w.template) || MayBeReplaced(w.obj) {
		return pod
	}
	published := w.publishedOf(plans, record, written)
	names := containerNamePredicate(plans)
	i := slices.IndexFunc(published, func(p *publishedPod) bool { return w.isUnchanged(p, pod, names) })
	switch {
	case len(published) == 0:
		return pod
	case i < 0:
		w.reportReplacement(published[0])
		return pod
	}
	kept := &keptPod{published[i], w.keptPod(published[i], pod)}
	same := podmap.Equal(kept.becomes, pod) && w.wouldPinSame(kept, pod, plans)
	if followsPolicy(plans) {
		if !same && !w.sameForServer(kept.publishedPod, pod, kept.unpinned) {
			w.unit.addResult(result.Warning, w.template.Field, w.describeImmutableFields()+", and spec.jobs is Follow: the API server rejects this change of the "+w.unit.meta.Kind+
				" that is published; let it be replaced by the annotation "+HowToReplace+", or set spec.jobs to KeepPublished")
		}
		return pod
	}
	w.unit.kept = kept
	if same {
		return kept.becomes
	}
	needed := slices.DeleteFunc(slices.Clone(w.unit.objects), func(o wantedObject) bool { return !w.unit.keptPodReferences(metaOf(o.obj)) })
	w.unit.results, w.unit.objects = before.results, append(slices.Clip(before.objects), needed...)
	o := w.outcome
	o.Action, o.Templates, o.Sidecars = Kept, nil, nil
	o.Reason = w.keptReason(kept)
	return kept.becomes
}

// unitState is a snapshot of an object's messages and findings.
type unitState struct {
	results result.Results
	objects []wantedObject
}

func (u *documentUnit) snapshotState() unitState { return unitState{u.results, u.objects} }

// describeImmutableFields describes what cannot change.
func (w *podInjection) describeImmutableFields() string {
	if w.isBarePod() {
		return "a Pod's spec is immutable but for images"
	}
	return "a Job's template is immutable"
}

// keptReason describes why a pod is kept.
func (w *podInjection) keptReason(kept *keptPod) string {
	reason := w.describeImmutableFields()
	switch {
	case !kept.restored.injected:
		reason += ", and the " + w.unit.meta.Kind + " is published without an injection"
	case kept.inPlace && w.isBarePod():
		reason += "; to inject the Pod again, take the injection out first (mode: Remove)"
	default:
		reason += ", and its own part has not changed since it was injected"
	}
	image, _ := containersByName(kept.pod)[proxyContainer]["image"].(string)
	if now := w.outcome.Image; now != "" && image != "" && now != image {
		reason += " (it has " + image + ", where the policy has " + now + ")"
	}
	w.outcome.EarlierImage, w.outcome.Image = "", image
	return reason
}

// isUnchanged reports whether an object's own spec is the published one, as far as the API server treats it as
// immutable. pod is the result of the policies, whose templates name containers. If the published pod does not reveal
// its own part exactly, it is enough that both lose the same by the injection, or that what may have been its own makes
// them equal.
func (w *podInjection) isUnchanged(p *publishedPod, pod map[string]any, names func(string) bool) bool {
	if p.inPlace {
		if p.record.own == "" {
			return true // no evidence
		}
		own, err := jobDigest(w.obj, w.original)
		return err == nil && own == p.record.own
	}
	if w.sameForServer(p, w.original, p.original) {
		return true
	}
	if !p.restored.injected || p.restored.undo != nil {
		return false
	}
	how := restoreOptions{names: names, bare: w.isBarePod()}
	if w.outcome.Action == Injected {
		_, found, err := restorePod(pod, w.template.Owner, nil, how)
		if err == nil && w.sameForServer(p, found, p.original) {
			return true
		}
	}
	for _, how.keep = range []inject.Keep{inject.KeepAll, inject.KeepMost} {
		_, found, err := restorePod(p.unpinned, w.template.Owner, nil, how)
		if err == nil && w.sameForServer(p, w.original, found) {
			return true
		}
	}
	return false
}

// wouldPinSame reports whether a pod that is published would be pinned in the same way now.
func (w *podInjection) wouldPinSame(kept *keptPod, pod map[string]any, plans []*compiledPolicy) bool {
	scratch := &documentUnit{doc: w.unit.doc, meta: w.unit.meta, path: w.unit.path, index: w.unit.index}
	return w.isBarePod() || podmap.Equal(w.in.pinOwn(scratch, w.template, w.original, pod, plans), kept.pod)
}

// keptPod returns the pod that an object gets which is kept: a Job's template as published. A Pod has its own metadata, images and other
// fields that can change from the source. injected is the result of the policies as they are now.
func (w *podInjection) keptPod(p *publishedPod, injected map[string]any) map[string]any {
	if !w.isBarePod() || p.inPlace {
		return p.unpinned
	}
	out := maps.Clone(w.original)
	own, _ := w.original["metadata"].(map[string]any)
	published, _ := p.unpinned["metadata"].(map[string]any)
	before, _ := p.original["metadata"].(map[string]any)
	again, _ := injected["metadata"].(map[string]any)
	meta := maps.Clone(own)
	for _, key := range []string{"labels", "annotations"} {
		if texts := withInjectedMetadata(own[key], before[key], published[key], again[key]); texts != nil {
			meta[key] = texts
		}
	}
	out["metadata"] = meta
	spec, _ := p.unpinned["spec"].(map[string]any)
	ownSpec, _ := w.original["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, key := range []string{"activeDeadlineSeconds", "tolerations"} {
		if v, ok := ownSpec[key]; ok {
			spec[key] = v
		} else {
			delete(spec, key)
		}
	}
	out["spec"] = spec
	images, had := pin.Images(w.original), pin.Images(p.original)
	now := pin.Images(p.unpinned)
	maps.DeleteFunc(images, func(name, image string) bool { return had[name] == "" || had[name] == image || now[name] != had[name] })
	return withContainerImages(out, images)
}

// withContainerImages returns a pod in which some containers have other images, by the names of the containers.
func withContainerImages(pod map[string]any, images map[string]string) map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		out := slices.Clone(list)
		for i, item := range out {
			c, _ := item.(map[string]any)
			name, _ := c["name"].(string)
			if image, ok := images[name]; ok {
				c = maps.Clone(c)
				c["image"] = image
				out[i] = c
			}
		}
		if len(out) > 0 {
			spec[key] = out
		}
	}
	pod = maps.Clone(pod)
	pod["spec"] = spec
	return pod
}

// withInjectedMetadata returns labels or annotations of an object with what an injection has added to or changed in its
// earlier ones. What those seem to have had already counts as added if the object does not have it and an injection
// adds it again. It returns nil if the result is empty.
func withInjectedMetadata(own, before, injected, again any) map[string]any {
	had, _ := before.(map[string]any)
	has, _ := injected.(map[string]any)
	adds, _ := again.(map[string]any)
	texts, _ := own.(map[string]any)
	var out map[string]any
	for key, value := range has {
		old, ok := had[key]
		_, mine := texts[key]
		_, added := adds[key]
		if ok && podmap.Equal(old, value) && (mine || !added) {
			continue
		}
		if out == nil {
			out = maps.Clone(texts)
		}
		if out == nil {
			out = map[string]any{}
		}
		out[key] = value
	}
	return out
}

// reportReplacement reports that an object has to be replaced, because its own spec has changed.
func (w *podInjection) reportReplacement(p *publishedPod) {
	field := w.template.Field
	if !p.inPlace {
		field = firstDifference(w.immutablePodFields(p.object, p.original), w.immutablePodFields(w.obj, w.original))
		if !w.isBarePod() {
			field = joinField("spec", field)
		}
	}
	since := "published"
	if p.inPlace {
		since = "injected"
	}
	w.unit.addResult(result.Warning, field, "the "+w.unit.meta.Kind+" must be replaced: its own spec has changed since it was "+since+", and "+w.describeImmutableFields()+
		"; it is injected again, and the API server rejects it while the old one is there: delete that first, or annotate it with "+HowToReplace)
}
