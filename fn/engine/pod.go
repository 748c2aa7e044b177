// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/fn/workload"
)

// podInjection is one pod template on its way through the policies: what all steps read.
type podInjection struct {
	in       *Injector
	unit     *documentUnit
	template workload.Template
	cluster  *cluster
	plans    []*compiledPolicy
	// obj is the workload.
	obj map[string]any
	// restored is what is known of the pod without any injection.
	restored restoredPod
}

// templatePlace names the file and the line of the template that an error is about, where they are known.
func (w *podInjection) templatePlace(err error) string {
	var in *gotemplate.Error
	if !errors.As(err, &in) {
		return ""
	}
	for _, pl := range w.plans {
		if pl.istio == nil || pl.policy.Spec.Istio.Injector.Config == "" {
			continue
		}
		if at := pl.policy.Source.Place([]any{"spec", "istio", "injector", "config", "templates", in.Template}, in.Line); at != nil {
			return "; the template is in " + at.String()
		}
	}
	return ""
}

// injectTemplate returns the pod of one template without any injection, and as it should be. written is the template as it was written,
// record is the workload's record of its pods. ok is false where an error was recorded.
func (in *Injector) injectTemplate(u *documentUnit, t, written workload.Template, obj map[string]any, record workloadRecord, plans []*compiledPolicy, s *cluster) (original, pod map[string]any, ok bool) {
	w := &podInjection{in: in, unit: u, template: t, cluster: s, plans: plans, obj: obj}
	a, err := w.restoreAndInject(record.pods[t.Field])
	if err != nil {
		a.outcome.Action, a.outcome.Reason = Failed, err.Error()
		u.results, u.outcomes = append(u.results, a.results...), append(u.outcomes, a.outcome)
		var rejected *rejectedError
		if errors.As(err, &rejected) {
			rejected.addProblemResults(u, t.Field)
			a.summarizeRejected(rejected.pod)
		} else {
			u.addResult(result.Error, podField(t, err), withoutField(err).Error()+w.templatePlace(err))
		}
		return nil, nil, false
	}
	a.keepPublishedWorkload(record, written)
	if !in.asIs || a.outcome.Action == Kept {
		a.reportOutcome()
		if in.keepPods {
			a.outcome.Before, a.outcome.After = a.original, a.after
		}
		a.lintPod()
		u.outcomes = append(u.outcomes, a.outcome)
	}
	u.results, u.objects = append(u.results, a.results...), append(u.objects, a.objects...)
	return a.original, a.after, true
}

// restoreAndInject removes earlier injections, and applies the policies to the original. So the outcome does not
// depend on what was injected before, nor with which policy or version. undo is the workload's record of the pod.
func (w *podInjection) restoreAndInject(undo *podmap.Undo) (*attempt, error) {
	restored, original, err := restorePod(w.template.Pod, w.template.Owner, undo, w.restoreOptions())
	w.restored = restored
	a := w.newAttempt(original)
	switch {
	case err != nil:
		return a, err
	case w.in.mode == v1alpha1.ModeRemove:
		a.original, _ = w.restored.dropMounts(original, original, w.obj)
		a.after = a.original
		a.outcome.Reason = "nothing was injected"
		if restored.injected {
			a.outcome.Action, a.outcome.Reason = Removed, "the injection was removed"
		}
		return a, nil
	case w.in.asIs:
		a.after = w.template.Pod
		if restored.injected {
			a.outcome.Action, a.outcome.Reason = Injected, "the build injects it"
			a.outcome.Image = proxyImage(a.after)
		}
		return a, nil
	}
	if a, err = w.applyPolicies(original); err == nil {
		if rest, dropped := w.restored.dropMounts(original, a.after, w.obj); dropped {
			a, err = w.applyPolicies(rest)
		}
	}
	if err == nil && w.onlyOrdersVolumes(a.after) {
		a.after = w.template.Pod
	}
	if err == nil && podmap.Equal(a.after, w.template.Pod) {
		a.reportUnchanged(w.withoutLeftovers())
		return a, nil
	}
	if !w.restored.isDoubtful() {
		return a, err
	}
	if same := w.attemptUnchangedPod(a.after); same != nil {
		same.reportUnchanged(a.after)
		return same, nil
	}
	return a, err
}

// applyPlan applies one policy to a pod.
func (a *attempt) applyPlan(pl *compiledPolicy, pod map[string]any) (map[string]any, error) {
	if pl.istio == nil {
		return pod, nil
	}
	w, o := a.of, &a.outcome
	owner, homes := w.resolveNamespace(pl)
	asked, decision, err := pl.decideInjection(pod, owner, homes, w.in.trace)
	if err != nil {
		return nil, err
	}
	o.Decision, o.Version = &decision, pl.istio.Detection().Version.String()
	o.Reason, o.Policy = decision.Reason, pl.policy.Metadata.Name
	for _, warning := range decision.Warnings {
		a.addAt(result.Warning, "", warning)
	}
	if decision.Failed {
		return nil, errors.New(decision.Reason)
	}
	if !decision.Inject {
		return pod, nil
	}
	if o.Action == Injected {
		return nil, fmt.Errorf("two policies inject Istio's proxy, the second is %s; leave one of them out or narrow them by namespace", pl.policy.Metadata.Name)
	}
	got, err := inject.Istio(pl.istio, inject.Request{Pod: pod, Owner: owner, Controller: w.owningController(), Namespace: homes[0].Namespace, KeepListed: true,
		RecordNulls: w.isBarePod() && anyPolicyRecords([]*compiledPolicy{pl}),
		Account:     pl.resolveServiceAccount(w.cluster, inject.AccountOf(pod), w.unit.meta.Namespace, homes[0].Name),
		Limits:      pl.resolveLimitRanges(w.cluster, w.unit.meta.Namespace, homes[0].Name)})
	if err != nil {
		return nil, err
	}
	for _, warning := range got.Warnings {
		a.add(result.Warning, annotationOf(warning, asked.Annotations), warning)
	}
	a.unquoted = got.Unquoted
	a.addDropped(got.Dropped)
	o.Action = Injected
	// The image is a part of all that the template printed, which would stay in memory with it.
	o.Image = strings.Clone(proxyImage(got.Pod))
	if w.restored.istio {
		o.EarlierImage = proxyImage(w.template.Pod)
	}
	if templates, err := pl.istio.Select(asked.Annotations); err == nil {
		for _, t := range templates {
			o.Templates = append(o.Templates, t.Name())
			if w.in.keepPods {
				o.TemplateTexts = append(o.TemplateTexts, t.Text())
			}
		}
	}
	return a.markAndPin(pl, asked, got.Pod)
}

// owningController returns the workload that makes the pod; the zero value for a Pod.
func (w *podInjection) owningController() inject.Controller {
	if w.isBarePod() {
		return inject.Controller{}
	}
	spec, _ := w.obj["spec"].(map[string]any)
	return inject.Controller{Owner: w.template.Declared, NameGenerated: w.template.NameGenerated, Indexed: spec["completionMode"] == "Indexed"}
}

// resolveNamespace returns the owner of the pod, and what is known about its namespace.
func (w *podInjection) resolveNamespace(pl *compiledPolicy) (workload.Owner, []home) {
	owner := w.template.OwnerFor(pl.istio.Profile().Release())
	homes := pl.namespaceCandidates(cmp.Or(owner.Namespace, w.unit.meta.Namespace), w.cluster)
	owner.Namespace = homes[0].Name
	return owner, homes
}

// proxyContainer is the name that Istio's proxy has in every version.
const proxyContainer = "istio-proxy"

// proxyImage returns the image of a pod's proxy, or "" if it has none.
func proxyImage(pod map[string]any) string {
	image, _ := containersByName(pod)[proxyContainer]["image"].(string)
	return image
}

// markAndPin marks the pod for the cluster's webhook, and pins the images of what was injected.
func (a *attempt) markAndPin(pl *compiledPolicy, asked decide.Pod, pod map[string]any) (map[string]any, error) {
	switch pl.policy.Spec.Istio.RuntimeWebhook {
	case v1alpha1.RuntimeWebhookDisable:
		mark := pl.decider.MarkFor(asked, pod)
		if !mark.Safe {
			a.add(result.Warning, "", mark.Message)
		}
		var err error
		if pod, err = mark.Apply(pod); err != nil {
			return nil, err
		}
	default:
		injected := asked
		injected.Labels, _ = workload.Labels(pod)
		injected.Annotations, _ = workload.Annotations(pod)
		if answer, message := pl.decider.Reinjects(injected); answer == decide.Yes {
			a.add(result.Warning, "", message)
		}
	}
	images := pl.policy.Spec.Images
	if images == nil {
		return pod, nil
	}
	pod, missing := pin.Apply(pod, addedContainers(a.before, pod), pl.lock, pin.OnMissing(images.OnMissing))
	a.addAll(missing)
	return pod, nil
}

// reportOutcome reports the outcome for the pod: every workload gets a decision with its reason.
func (a *attempt) reportOutcome() {
	w, o := a.of, &a.outcome
	if o.Action == Kept {
		a.add(result.Info, "", string(o.Action)+": "+o.Reason)
		return
	}
	if o.Action == Skipped && w.restored.injected {
		o.Action, o.Reason = Removed, "an earlier injection was removed: "+o.Reason
	}
	w.restored.reportDoubts(&a.podReport, !podmap.Equal(a.after, w.template.Pod), w.isBarePod())
	w.restored.reportListed(&a.podReport, a.after)
	if hasStatus(a.original) && !w.restored.injected && (o.Action == Injected || w.in.mode == v1alpha1.ModeRemove) {
		a.add(result.Warning, "metadata.annotations["+statusAnnotation+"]",
			"no injection that is in the pod wrote this, so nothing is taken out of the pod; delete the annotation, "+
				"because Istio takes such a pod for one that was injected before")
	}
	a.add(result.Info, "", string(o.Action)+": "+o.Reason)
	if w.in.mode != v1alpha1.ModeRemove {
		w.restored.reportRemoved(&a.podReport, w.plans)
	}
	w.restored.reportLeftovers(&a.podReport, w.template.Pod, a.original)
}

// statusAnnotation lists what Istio's injection claims to have added.
const statusAnnotation = "sidecar.istio.io/status"

// addedContainers names the containers that a pod has and the original has not, or has in another way.
func addedContainers(original, pod map[string]any) []string {
	before := containersByName(original)
	var names []string
	for name, c := range containersByName(pod) {
		if old, ok := before[name]; !ok || old["image"] == "auto" || old["image"] != c["image"] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// containersByName returns the containers of a pod by name.
func containersByName(pod map[string]any) map[string]map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	out := map[string]map[string]any{}
	for _, key := range []string{"initContainers", "containers"} {
		list, _ := spec[key].([]any)
		for _, item := range list {
			c, _ := item.(map[string]any)
			if name, _ := c["name"].(string); name != "" {
				out[name] = c
			}
		}
	}
	return out
}

// losesElement reports whether a pod has a container or volume that is not in its injected form.
func losesElement(original, injected map[string]any) bool {
	now := containersByName(injected)
	for name := range containersByName(original) {
		if now[name] == nil {
			return true
		}
	}
	volumes := volumeNames(injected)
	return slices.ContainsFunc(volumeNames(original), func(name string) bool { return !slices.Contains(volumes, name) })
}

// volumeNames returns the names of a pod's volumes.
func volumeNames(pod map[string]any) []string {
	spec, _ := pod["spec"].(map[string]any)
	volumes, _ := spec["volumes"].([]any)
	return podmap.Names(volumes)
}

// annotationOf returns the path in the pod of the annotation that a warning begins with, or "".
func annotationOf(warning string, annotations map[string]string) string {
	rest, _ := strings.CutPrefix(warning, "annotation ")
	name, _, found := strings.Cut(rest, ": ")
	if _, there := annotations[name]; !found || !there {
		return ""
	}
	return workload.FieldString([]any{"metadata", "annotations", name})
}

// podField returns the path in the object of the field that an error is about.
func podField(t workload.Template, err error) string {
	var at *podmap.FieldError
	if errors.As(err, &at) {
		return joinField(t.Field, at.Field)
	}
	return t.Field
}

// misspelledContainers refuses a pod whose containers are in a field of a similar name. The injection would make a pod
// of the sidecar alone.
func misspelledContainers(pod map[string]any) error {
	spec, _ := pod["spec"].(map[string]any)
	if _, ok := spec[podmap.Containers]; ok {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(spec)) {
		if strict.Closest(key, []string{podmap.Containers}) != "" {
			return &podmap.FieldError{Field: "spec." + key, Err: errors.New("unknown field, did you mean containers?")}
		}
	}
	return nil
}

// withoutField returns what is wrong with a field without its path, which the result has already.
func withoutField(err error) error {
	if at, ok := err.(*podmap.FieldError); ok { //nolint:errorlint // what is wrapped keeps its whole text
		return at.Err
	}
	return err
}
