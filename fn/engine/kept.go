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
const HowToReplace = "kustomize.toolkit.fluxcd.io/force: enabled (Flux; fluxcd.controlplane.io/force for what a ResourceSet makes) or argocd.argoproj.io/sync-options: Force=true,Replace=true (Argo CD)"

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

// keepPublishedWorkload decides whether a Job or bare Pod stays as it was published, instead of the result of the
// policies: their messages are retracted for a pod that is kept.
func (a *attempt) keepPublishedWorkload(record workloadRecord, written workload.Template) {
	w := a.of
	if w.in.mode == v1alpha1.ModeRemove || !isKeptTemplate(w.unit, w.template) || MayBeReplaced(w.obj) {
		return
	}
	published := a.publishedOf(record, written)
	i := slices.IndexFunc(published, a.isUnchanged)
	switch {
	case len(published) == 0:
		return
	case i < 0:
		// A template may delete what has changed: then the API server does not see the change.
		if p := published[0]; !p.sameForServer(w.obj, a.after, p.unpinned) {
			a.reportReplacement(p)
		}
		return
	}
	p := published[i]
	kept := &keptPod{p, p.unpinned}
	if w.isBarePod() && !p.inPlace {
		kept.becomes = p.mergeBarePod(a.original, a.after)
	}
	same := podmap.Equal(kept.becomes, a.after) && a.wouldPinSame(p)
	if followsPolicy(w.plans) {
		if !same && !p.sameForServer(w.obj, a.after, p.unpinned) {
			a.add(result.Warning, "", p.describeImmutable()+", and spec.jobs is Follow: the API server rejects this "+
				"change of the "+a.unit.meta.Kind+" that is published; let it be replaced by the annotation "+
				HowToReplace+", or set spec.jobs to KeepPublished")
		}
		return
	}
	a.unit.kept = kept
	if !same {
		a.results = nil
		a.objects = slices.DeleteFunc(a.objects, func(o wantedObject) bool {
			return !a.unit.keptPodReferences(metaOf(o.obj))
		})
		o := &a.outcome
		o.Action, o.Templates, o.Sidecars = Kept, nil, nil
		o.Reason = p.keptReason(a.unit.meta.Kind, o.Image)
		o.EarlierImage, o.Image = "", proxyImage(p.pod)
	}
	a.after = kept.becomes
}

// describeImmutable describes what cannot change.
func (p *publishedPod) describeImmutable() string {
	if p.bare {
		return "a Pod's spec is immutable but for images"
	}
	return "a Job's template is immutable"
}

// keptReason describes why the pod of an object of a kind is kept, whose proxy would have an image now.
func (p *publishedPod) keptReason(kind, now string) string {
	reason := p.describeImmutable()
	switch {
	case !p.restored.injected:
		reason += ", and the " + kind + " is published without an injection"
	case p.inPlace && p.bare:
		reason += "; to inject the Pod again, take the injection out first (mode: Remove)"
	default:
		reason += ", and its own part has not changed since it was injected"
	}
	if image := proxyImage(p.pod); now != "" && image != "" && now != image {
		reason += " (it has " + image + ", where the policy has " + now + ")"
	}
	return reason
}

// isUnchanged reports whether an object's own spec is the published one, as far as the API server treats it as
// immutable. If the published pod does not reveal its own part exactly, it is enough that both lose the same by the
// injection, or that what may have been its own makes them equal.
func (a *attempt) isUnchanged(p *publishedPod) bool {
	obj, owner := a.of.obj, a.of.template.Owner
	if p.inPlace {
		if p.record.own == "" {
			return true // no evidence
		}
		own, err := jobDigest(obj, a.original)
		return err == nil && own == p.record.own
	}
	if p.sameForServer(obj, a.original, p.original) {
		return true
	}
	if !p.restored.injected || p.restored.undo != nil {
		return false
	}
	how := a.of.restoreOptions()
	if a.outcome.Action == Injected {
		_, found, err := restorePod(a.after, owner, nil, how)
		if err == nil && p.sameForServer(obj, found, p.original) {
			return true
		}
	}
	for _, how.keep = range []inject.Keep{inject.KeepAll, inject.KeepMost} {
		_, found, err := restorePod(p.unpinned, owner, nil, how)
		if err == nil && p.sameForServer(obj, a.original, found) {
			return true
		}
	}
	return false
}

// wouldPinSame reports whether a pod that is published would be pinned in the same way now.
func (a *attempt) wouldPinSame(p *publishedPod) bool {
	scratch := &documentUnit{doc: a.unit.doc, meta: a.unit.meta, path: a.unit.path, index: a.unit.index}
	return p.bare || podmap.Equal(a.of.in.pinOwn(scratch, a.of.template, a.original, a.after, a.of.plans), p.pod)
}

// mergeBarePod returns the bare Pod that an object gets which is kept: it has its own metadata, images and other fields
// that can change from the source. source is the Pod without any injection, and injected the result of the policies as
// they are now.
func (p *publishedPod) mergeBarePod(source, injected map[string]any) map[string]any {
	out := maps.Clone(source)
	own, _ := source["metadata"].(map[string]any)
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
	ownSpec, _ := source["spec"].(map[string]any)
	spec = maps.Clone(spec)
	for _, key := range []string{"activeDeadlineSeconds", "tolerations"} {
		if v, ok := ownSpec[key]; ok {
			spec[key] = v
		} else {
			delete(spec, key)
		}
	}
	out["spec"] = spec
	images, had := pin.Images(source), pin.Images(p.original)
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
func (a *attempt) reportReplacement(p *publishedPod) {
	field, since := a.field, "injected"
	if !p.inPlace {
		since = "published"
		field = firstDifference(p.immutableFields(p.object, p.original), p.immutableFields(a.of.obj, a.original))
		if !p.bare {
			field = joinField("spec", field)
		}
	}
	a.addAt(result.Warning, field, "the "+a.unit.meta.Kind+" must be replaced: its own spec has changed since it was "+
		since+", and "+p.describeImmutable()+"; it is injected again, and the API server rejects it while the old one "+
		"is there: delete that first, or annotate it with "+HowToReplace)
}
