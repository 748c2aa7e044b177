// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// podInjection is the way of one pod template through the policies.
type podInjection struct {
	in       *Injector
	unit     *documentUnit
	template workload.Template
	cluster  *cluster
	outcome  *Outcome
	// original is the pod without any injection, and restored is what is known of it.
	original map[string]any
	restored restoredPod
	// obj is the workload, before is the pod that Istio's injection begins with, and sidecars is what the others do.
	obj, before map[string]any
	sidecars    sidecarWork
	// unquoted lists the annotations that write YAML into the pod, as in inject.Result; nil if no injection took
	// place.
	unquoted map[string][]string
}

// injectTemplate returns the pod of one template without any injection, and as it should be. written is the template as it was written,
// record is the workload's record of its pods. ok is false where an error was recorded.
func (in *Injector) injectTemplate(u *documentUnit, t, written workload.Template, obj map[string]any, record workloadRecord, plans []*compiledPolicy, s *cluster) (original, pod map[string]any, ok bool) {
	o := in.newOutcome(u, t.Field, Skipped, "no policy injects anything")
	w := &podInjection{in: in, unit: u, template: t, cluster: s, outcome: &o, obj: obj}
	w.restored.undo = record.pods[t.Field]
	before := u.snapshotState()
	pod, err := w.restoreAndInject(plans)
	if err != nil {
		o.Action, o.Reason = Failed, err.Error()
		u.outcomes = append(u.outcomes, o)
		var rejected *rejectedError
		if errors.As(err, &rejected) {
			rejected.addProblemResults(u, t.Field)
			w.summarizeRejected(obj, rejected.pod, plans)
		} else {
			u.addError(podField(t, err), withoutField(err))
		}
		return nil, nil, false
	}
	pod = w.keepPublishedWorkload(plans, record, written, pod, before)
	if in.asIs && o.Action != Kept {
		return w.original, pod, true
	}
	w.reportOutcome(pod)
	if o.Action != Kept {
		w.reportRemoved(plans)
		w.reportLeftovers()
	}
	if in.keepPods {
		o.Before, o.After = w.original, pod
	}
	w.lintPod(obj, pod, plans)
	u.outcomes = append(u.outcomes, o)
	return w.original, pod, true
}

// restoreAndInject removes earlier injections, and applies the policies to the original. So the outcome does not
// depend on what was injected before, nor with which policy or version.
func (w *podInjection) restoreAndInject(plans []*compiledPolicy) (map[string]any, error) {
	if err := w.findOriginal(plans); err != nil {
		return nil, err
	}
	if w.in.mode == v1alpha1.ModeRemove {
		w.dropMounts(w.original)
		w.outcome.Reason = "nothing was injected"
		if w.restored.injected {
			w.outcome.Action, w.outcome.Reason = Removed, "the injection was removed"
		}
		return w.original, nil
	}
	if w.in.asIs {
		if w.restored.injected {
			w.outcome.Action, w.outcome.Reason = Injected, "the build injects it"
			w.outcome.Image, _ = containersByName(w.template.Pod)[proxyContainer]["image"].(string)
		}
		return w.template.Pod, nil
	}
	pod, err := w.applyPoliciesToOriginal(w.original, plans)
	if err == nil && w.dropMounts(pod.after) {
		pod, err = w.applyPoliciesToOriginal(w.original, plans)
	}
	if err == nil && w.onlyOrdersVolumes(pod.after) {
		pod.after = w.template.Pod
	}
	if err == nil && podmap.Equal(pod.after, w.template.Pod) {
		return w.adoptUnchangedAttempt(pod, w.withoutLeftovers(plans)), nil
	}
	if !w.restored.isDoubtful() {
		return w.adoptAttempt(pod), err
	}
	if same := w.attemptUnchangedPod(plans, pod); same != nil {
		return w.adoptUnchangedAttempt(same, pod.after), nil
	}
	return w.adoptAttempt(pod), err
}

// applyPlan applies one policy to a pod.
func (w *podInjection) applyPlan(pl *compiledPolicy, pod map[string]any) (map[string]any, error) {
	if pl.istio == nil {
		return pod, nil
	}
	owner, homes := w.resolveNamespace(pl)
	asked, decision, err := w.decideInjection(pl, pod, owner, homes)
	if err != nil {
		return nil, err
	}
	w.outcome.Decision, w.outcome.Version = &decision, pl.istio.Detection().Version.String()
	w.outcome.Reason, w.outcome.Policy = decision.Reason, pl.policy.Metadata.Name
	for _, warning := range decision.Warnings {
		w.unit.addResult(result.Warning, "", warning)
	}
	if decision.Failed {
		return nil, errors.New(decision.Reason)
	}
	if !decision.Inject {
		return pod, nil
	}
	if w.outcome.Action == Injected {
		return nil, fmt.Errorf("two policies inject Istio's proxy, the second is %s; leave one of them out or narrow them by namespace", pl.policy.Metadata.Name)
	}
	got, err := inject.Istio(pl.istio, inject.Request{Pod: pod, Owner: owner, Controller: w.owningController(), Namespace: homes[0].Namespace, KeepListed: true,
		RecordNulls: w.isBarePod() && anyPolicyRecords([]*compiledPolicy{pl}),
		Account:     pl.resolveServiceAccount(w.cluster, pod, w.unit.meta.Namespace, homes[0].Name),
		Limits:      pl.resolveLimitRanges(w.cluster, w.unit.meta.Namespace, homes[0].Name)})
	if err != nil {
		return nil, err
	}
	for _, warning := range got.Warnings {
		w.unit.addResult(result.Warning, w.template.Field, warning)
	}
	w.unquoted = got.Unquoted
	w.reportDropped(got.Dropped)
	w.outcome.Action = Injected
	image, _ := containersByName(got.Pod)[proxyContainer]["image"].(string)
	w.outcome.Image = strings.Clone(image) // it is a part of all that the template printed, which would stay in memory with it
	if w.restored.istio {
		w.outcome.EarlierImage, _ = containersByName(w.template.Pod)[proxyContainer]["image"].(string)
	}
	if templates, err := pl.istio.Select(asked.Annotations); err == nil {
		for _, t := range templates {
			w.outcome.Templates = append(w.outcome.Templates, t.Name())
		}
	}
	return w.markAndPin(pl, asked, got.Pod)
}

// owningController returns the workload that makes the pod; the zero value for a Pod.
func (w *podInjection) owningController() inject.Controller {
	if w.isBarePod() {
		return inject.Controller{}
	}
	spec, _ := w.obj["spec"].(map[string]any)
	return inject.Controller{Owner: w.template.Declared, NameGenerated: w.template.NameGenerated, Indexed: spec["completionMode"] == "Indexed"}
}

// reportDropped names the entries that a webhook would write besides the one that counts.
func (w *podInjection) reportDropped(dropped []podmap.Dropped) {
	for _, d := range dropped {
		w.unit.addResult(result.Info, joinField(w.template.Field, d.Field), fmt.Sprintf("the injection sets %s %d times, and only the last is written: "+
			"the container gets no other, and server-side apply rejects a list with two entries of one key", d.Key, d.Count))
	}
}

// resolveNamespace returns the owner of the pod, and what is known about its namespace.
func (w *podInjection) resolveNamespace(pl *compiledPolicy) (workload.Owner, []home) {
	owner := w.template.OwnerFor(pl.istio.Profile().Release())
	name := owner.Namespace
	if name == "" {
		name = w.unit.meta.Namespace
	}
	homes := pl.namespaceCandidates(name, w.cluster)
	owner.Namespace = homes[0].Name
	return owner, homes
}

// proxyContainer is the name that Istio's proxy has in every version.
const proxyContainer = "istio-proxy"

// markAndPin marks the pod for the cluster's webhook, and pins the images of what was injected.
func (w *podInjection) markAndPin(pl *compiledPolicy, asked decide.Pod, pod map[string]any) (map[string]any, error) {
	switch pl.policy.Spec.Istio.RuntimeWebhook {
	case v1alpha1.RuntimeWebhookDisable:
		mark := pl.decider.MarkFor(asked, pod)
		if !mark.Safe {
			w.unit.addResult(result.Warning, w.template.Field, mark.Message)
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
			w.unit.addResult(result.Warning, w.template.Field, message)
		}
	}
	images := pl.policy.Spec.Images
	if images == nil {
		return pod, nil
	}
	pod, missing := pin.Apply(pod, addedContainers(w.before, pod), pl.lock, pin.OnMissing(images.OnMissing))
	w.addResults(missing)
	return pod, nil
}

// addResults adds results whose field is a path below the pod template.
func (w *podInjection) addResults(rs result.Results) {
	for _, r := range rs {
		ref := w.unit.resourceReference()
		r.ResourceRef = &ref
		if r.File == nil {
			r.File = w.unit.fileLocation()
		}
		if r.Field != nil {
			at := *r.Field
			at.Path = joinField(w.template.Field, at.Path)
			r.Field = &at
		}
		w.unit.results = append(w.unit.results, r)
	}
}

// reportOutcome reports the outcome for the pod: every workload gets a decision with its reason.
func (w *podInjection) reportOutcome(pod map[string]any) {
	o := w.outcome
	if o.Action == Skipped && w.restored.injected {
		o.Action, o.Reason = Removed, "an earlier injection was removed: "+o.Reason
	}
	if o.Action == Kept {
		w.unit.addResult(result.Info, o.Field, string(o.Action)+": "+o.Reason)
		return
	}
	w.reportDoubts(!podmap.Equal(pod, w.template.Pod))
	w.reportListed(pod)
	w.reportForeignStatus()
	w.unit.addResult(result.Info, o.Field, string(o.Action)+": "+o.Reason)
}

// reportDoubts lists what is unknown about the original. What was removed because injection sets it anyway may have
// been the pod's own only if no record of the workload's exists, which a Pod cannot have. If the pod does not
// change, only possible errors in it count.
func (w *podInjection) reportDoubts(changed bool) {
	removed := &w.restored.removed
	for _, n := range removed.Unknown {
		severity := result.Warning
		if n.Hint {
			severity = result.Info
		}
		if changed || n.Unrecorded {
			w.unit.addResult(severity, joinField(w.template.Field, n.Field), "taking an earlier injection out: "+n.Reason)
		}
	}
	if len(removed.Assumed) == 0 || !changed {
		return
	}
	fields := make([]string, len(removed.Assumed))
	for i, note := range removed.Assumed {
		fields[i] = note.Field
	}
	severity := result.Info
	if w.isBarePod() {
		severity = result.Warning
	}
	w.unit.addResult(severity, w.template.Field, "taking an earlier injection out: injection sets these, and it cannot be told whether the pod had the same before: "+strings.Join(fields, ", "))
}

// reportListed names the containers that were removed because the status annotation lists them as injected. A
// template of the user's own that still injects them has added them again.
func (w *podInjection) reportListed(pod map[string]any) {
	left := containersByName(pod)
	for _, name := range w.restored.removed.Listed {
		if _, there := left[name]; !there {
			w.unit.addResult(result.Warning, w.template.Field, fmt.Sprintf("the container %s was taken out, as Istio's webhook does it, because the annotation sidecar.istio.io/status lists it as injected; none of Istio's own templates has it: if it is the application's, put it back and take its name out of the annotation", name))
		}
	}
}

// statusAnnotation lists what Istio's injection claims to have added.
const statusAnnotation = "sidecar.istio.io/status"

// reportForeignStatus names a status annotation that no injection wrote, where that matters and it is still in the pod.
func (w *podInjection) reportForeignStatus() {
	if !hasStatus(w.original) || w.restored.injected || w.outcome.Action != Injected && w.in.mode != v1alpha1.ModeRemove {
		return
	}
	w.unit.addResult(result.Warning, joinField(w.template.Field, "metadata.annotations["+statusAnnotation+"]"),
		"no injection that is in the pod wrote this, so nothing is taken out of the pod; delete the annotation, because Istio takes such a pod for one that was injected before")
}

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

// podField returns the path in the object of the field that an error is about.
func podField(t workload.Template, err error) string {
	var at *podmap.FieldError
	if errors.As(err, &at) {
		return joinField(t.Field, at.Field)
	}
	return t.Field
}

// withoutField returns what is wrong with a field without its path, which the result has already.
func withoutField(err error) error {
	if at, ok := err.(*podmap.FieldError); ok { //nolint:errorlint // what is wrapped keeps its whole text
		return at.Err
	}
	return err
}
