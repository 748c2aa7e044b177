// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package fn

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/decide"
	"github.com/prerig/prerig/fn/inject"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// podWork is the way of one pod template through the policies.
type podWork struct {
	in           *Injector
	unit         *unit
	template     workload.Template
	surroundings *surroundings
	outcome      *Outcome
	// original is the pod without any injection, and removed says what is not known of it.
	original map[string]any
	removed  inject.Removed
	// obj is the workload, before is the pod that Istio's injection begins with, sidecars is what the others do, and
	// earlierIstio says that Istio's proxy was in the pod.
	obj, before  map[string]any
	sidecars     sidecarWork
	earlierIstio bool
}

// template gives the pod of one template without any injection, and as it should be. ok is false where an error was
// recorded.
func (in *Injector) template(u *unit, t workload.Template, obj map[string]any, plans []*plan, s *surroundings) (original, pod map[string]any, ok bool) {
	o := in.outcome(u, t.Field, Skipped, "no policy injects anything")
	w := &podWork{in: in, unit: u, template: t, surroundings: s, outcome: &o, obj: obj}
	pod, err := w.apply(plans)
	if err != nil {
		o.Action, o.Reason = Failed, err.Error()
		u.outcomes = append(u.outcomes, o)
		u.fail(podField(t, err), withoutField(err))
		return nil, nil, false
	}
	w.tell(pod)
	w.tellRemoved(plans)
	if in.keepPods {
		o.Before, o.After = w.original, pod
	}
	w.lint(obj, pod, plans)
	u.outcomes = append(u.outcomes, o)
	return w.original, pod, true
}

// apply takes earlier injections out, and injects what the policies say into the original. So the outcome does not depend
// on what was injected before, nor with which policy or version.
func (w *podWork) apply(plans []*plan) (map[string]any, error) {
	if err := w.restore(); err != nil {
		return nil, err
	}
	if w.in.mode == v1alpha1.ModeRemove {
		w.outcome.Reason = "nothing was injected"
		if w.removed.Injected {
			w.outcome.Action, w.outcome.Reason = Removed, "the injection was removed"
		}
		return w.original, nil
	}
	if err := w.chooseSidecars(plans); err != nil {
		return nil, err
	}
	pod, err := w.injectSidecars(w.original, false)
	if err != nil {
		return nil, err
	}
	w.before = pod
	record := false
	for _, pl := range plans {
		next, err := w.applyPlan(pl, pod)
		if err != nil {
			return nil, err
		}
		record = record || pl.policy.Spec.Record == v1alpha1.RecordAnnotation
		pod = next
	}
	if pod, err = w.injectSidecars(pod, true); err != nil {
		return nil, err
	}
	if pod, err = w.finishSidecars(pod); err != nil {
		return nil, err
	}
	if w.outcome.Action == Injected && record {
		return inject.RecordOriginal(w.original, pod)
	}
	return pod, nil
}

// restore finds the original.
func (w *podWork) restore() error {
	pod, marked, err := w.restoreAll()
	if err != nil {
		return err
	}
	w.original = pod
	w.earlierIstio = w.removed.Injected
	w.removed.Injected = w.removed.Injected || marked
	return nil
}

// applyPlan does what one policy says for a pod.
func (w *podWork) applyPlan(pl *plan, pod map[string]any) (map[string]any, error) {
	if pl.istio == nil {
		return pod, nil
	}
	owner, homes := w.place(pl)
	asked, decision, err := w.decide(pl, pod, owner, homes)
	if err != nil {
		return nil, err
	}
	w.outcome.Decision, w.outcome.Version = &decision, pl.istio.Detection().Version.String()
	w.outcome.Reason, w.outcome.Policy = decision.Reason, pl.policy.Metadata.Name
	for _, warning := range decision.Warnings {
		w.unit.say(result.Warning, "", warning)
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
	got, err := inject.Istio(pl.istio, inject.Request{Pod: pod, Owner: owner, Namespace: homes[0].Namespace})
	if err != nil {
		return nil, err
	}
	for _, warning := range got.Warnings {
		w.unit.say(result.Warning, w.template.Field, warning)
	}
	w.outcome.Action = Injected
	if templates, err := pl.istio.Select(asked.Annotations); err == nil {
		for _, t := range templates {
			w.outcome.Templates = append(w.outcome.Templates, t.Name())
		}
	}
	return w.finish(pl, asked, got.Pod)
}

// place gives the owner of the pod, and what is known about its namespace.
func (w *podWork) place(pl *plan) (workload.Owner, []home) {
	owner := w.template.OwnerFor(pl.istio.Detection().Version.Minor)
	name := owner.Namespace
	if name == "" {
		name = w.unit.meta.Namespace
	}
	homes := pl.homes(name, w.surroundings)
	owner.Namespace = homes[0].Name
	return owner, homes
}

// finish marks the pod for the cluster's webhook, and pins the images of what was injected.
func (w *podWork) finish(pl *plan, asked decide.Pod, pod map[string]any) (map[string]any, error) {
	switch pl.policy.Spec.Istio.RuntimeWebhook {
	case v1alpha1.RuntimeWebhookDisable:
		mark := pl.decider.MarkFor(asked, pod)
		if !mark.Safe {
			w.unit.say(result.Warning, w.template.Field, mark.Message)
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
			w.unit.say(result.Warning, w.template.Field, message)
		}
	}
	images := pl.policy.Spec.Images
	if images == nil {
		return pod, nil
	}
	pod, missing := pin.Apply(pod, added(w.before, pod), pl.lock, pin.OnMissing(images.OnMissing))
	w.addResults(missing)
	return pod, nil
}

// addResults adds results whose field is a path below the pod template.
func (w *podWork) addResults(rs result.Results) {
	for _, r := range rs {
		ref := w.unit.ref()
		r.ResourceRef = &ref
		if r.File == nil {
			r.File = w.unit.file()
		}
		if r.Field != nil {
			at := *r.Field
			at.Path = joinField(w.template.Field, at.Path)
			r.Field = &at
		}
		w.unit.results = append(w.unit.results, r)
	}
}

// tell says what became of the pod: every workload gets a decision with its reason.
func (w *podWork) tell(pod map[string]any) {
	o := w.outcome
	if o.Action == Skipped && w.removed.Injected {
		o.Action, o.Reason = Removed, "an earlier injection was removed: "+o.Reason
	}
	if !reflect.DeepEqual(pod, w.template.Pod) {
		for _, n := range w.removed.Unknown {
			w.unit.say(result.Warning, joinField(w.template.Field, n.Field), "taking an earlier injection out: "+n.Reason)
		}
		if n := len(w.removed.Assumed); n > 0 {
			fields := make([]string, n)
			for i, note := range w.removed.Assumed {
				fields[i] = note.Field
			}
			w.unit.say(result.Info, w.template.Field, "taken for the earlier injection's, though the pod may have had the same: "+strings.Join(fields, ", "))
		}
	}
	w.tellListed(pod)
	w.unit.say(result.Info, o.Field, string(o.Action)+": "+o.Reason)
}

// tellListed names the containers that are gone because the status annotation says that they were injected. A template of
// the user's own that still injects them has put them back.
func (w *podWork) tellListed(pod map[string]any) {
	left := containers(pod)
	for _, name := range w.removed.Listed {
		if _, there := left[name]; !there {
			w.unit.say(result.Warning, w.template.Field, fmt.Sprintf("the container %s was taken out, as Istio's webhook does it, because the annotation sidecar.istio.io/status lists it as injected; none of Istio's own templates has it: if it is the application's, put it back and take its name out of the annotation", name))
		}
	}
}

// added names the containers that a pod has and the original has not, or has in another way.
func added(original, pod map[string]any) []string {
	before := containers(original)
	var names []string
	for name, c := range containers(pod) {
		if old, ok := before[name]; !ok || old["image"] == "auto" || old["image"] != c["image"] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// containers gives the containers of a pod by name.
func containers(pod map[string]any) map[string]map[string]any {
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

// podField gives the path in the object of the field that an error is about.
func podField(t workload.Template, err error) string {
	var at *inject.FieldError
	if errors.As(err, &at) {
		return joinField(t.Field, at.Field)
	}
	return t.Field
}

// withoutField gives what is wrong with a field without its path, which the result has already.
func withoutField(err error) error {
	if at, ok := err.(*inject.FieldError); ok { //nolint:errorlint // what is wrapped keeps its whole text
		return at.Err
	}
	return err
}
