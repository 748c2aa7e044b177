// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
)

// prepareSidecars makes the policy's sidecars ready. A name without a policy's own is that of the built-in sidecar.
func (pl *compiledPolicy) prepareSidecars() result.Results {
	var results result.Results
	for i, s := range pl.policy.Spec.Sidecars {
		compiled, err := sidecar.New(s)
		if err != nil {
			results = append(results, policyResult(pl.policy, result.Error, fmt.Sprintf("spec.sidecars[%d]", i), err.Error()))
			continue
		}
		pl.sidecars = append(pl.sidecars, compiled)
	}
	return results
}

// sidecarWork is what the sidecars make of one pod.
type sidecarWork struct {
	// chosen are those that the pod gets, in the order of the policies.
	chosen []chosenSidecar
	// records are the sidecars that the pod leaves with.
	records []sidecar.Record
	objects []wantedObject
}

// chosenSidecar is a sidecar for a pod.
type chosenSidecar struct {
	plan    *compiledPolicy
	sidecar *sidecar.Sidecar
	request sidecar.Request
}

// wantedObject is a further object that a sidecar adds for a workload.
type wantedObject struct {
	obj     map[string]any
	sidecar string
	owner   result.ResourceRef
}

// removeRecords removes the sidecars on one side of Istio.
func removeRecords(pod map[string]any, records []sidecar.Record, outside bool) (map[string]any, error) {
	for _, r := range slices.Backward(records) {
		if r.Outside() != outside {
			continue
		}
		var err error
		if pod, err = r.Remove(pod); err != nil {
			return nil, err
		}
	}
	return pod, nil
}

// chooseSidecars decides for every sidecar of every policy. All of them look at the original, so that none depends on
// another.
func (w *podInjection) chooseSidecars(plans []*compiledPolicy) error {
	by := map[string]string{}
	for _, pl := range plans {
		for _, s := range pl.sidecars {
			req := w.sidecarRequest(pl)
			decision, err := w.decideSidecar(pl, s, req)
			if err != nil {
				return fmt.Errorf("choosing sidecar %s: %w", s.Name(), err)
			}
			if decision.Fail {
				return fmt.Errorf("choosing sidecar %s: %s", s.Name(), decision.Reason)
			}
			w.outcome.Sidecars = append(w.outcome.Sidecars, SidecarOutcome{Name: s.Name(), Inject: decision.Inject, Reason: decision.Reason})
			if !decision.Inject {
				continue
			}
			if other, ok := by[s.Name()]; ok {
				return fmt.Errorf("the policies %s and %s both inject a sidecar %s here; leave one of them out, rename it, or narrow what they select",
					other, pl.policy.Metadata.Name, s.Name())
			}
			by[s.Name()] = pl.policy.Metadata.Name
			w.sidecars.chosen = append(w.sidecars.chosen, chosenSidecar{plan: pl, sidecar: s, request: req})
		}
	}
	return nil
}

// sidecarRequest builds a sidecar's request for the pod.
func (w *podInjection) sidecarRequest(pl *compiledPolicy) sidecar.Request {
	meta, _ := w.obj["metadata"].(map[string]any)
	m := w.unit.meta
	return sidecar.Request{
		Original: w.original,
		Workload: sidecar.Workload{APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Name, Namespace: m.Namespace,
			Labels: stringMap(meta["labels"]), Annotations: stringMap(meta["annotations"])},
		Namespace: w.sidecarHomes(pl)[0],
		Unknown:   unknownNamespace(&pl.policy.Spec),
	}
}

// injectSidecars injects the chosen sidecars of one side of Istio.
func (w *podInjection) injectSidecars(pod map[string]any, outside bool) (map[string]any, error) {
	for _, c := range w.sidecars.chosen {
		if c.sidecar.Outside() != outside {
			continue
		}
		next, err := w.injectSidecar(c, pod)
		if err != nil {
			return nil, fmt.Errorf("injecting sidecar %s: %w", c.sidecar.Name(), err)
		}
		pod = next
	}
	return pod, nil
}

func (w *podInjection) injectSidecar(c chosenSidecar, pod map[string]any) (map[string]any, error) {
	c.request.Pod = pod
	got, err := c.sidecar.Inject(c.request)
	if err != nil {
		return nil, err
	}
	if got.Skip != "" {
		w.skipSidecar(c.sidecar.Name(), got.Skip)
		return pod, nil
	}
	for _, warning := range got.Warnings {
		w.unit.addResult(result.Warning, joinField(w.template.Field, warning.Field), "sidecar "+c.sidecar.Name()+": "+warning.Message)
	}
	w.reportDropped(got.Dropped)
	next := got.Pod
	if images := c.plan.policy.Spec.Images; images != nil {
		var missing result.Results
		next, missing = pin.Apply(next, got.Added, c.plan.lock, pin.OnMissing(images.OnMissing))
		w.addResults(missing)
	}
	record, err := c.sidecar.NewRecord(len(w.sidecars.records)+1, pod, next)
	if err != nil {
		return nil, err
	}
	w.sidecars.records = append(w.sidecars.records, record)
	for _, obj := range got.Objects {
		w.sidecars.objects = append(w.sidecars.objects, wantedObject{obj: obj, sidecar: c.sidecar.Name(), owner: w.unit.resourceReference()})
	}
	return next, nil
}

// skipSidecar notes that a sidecar's template left the pod alone.
func (w *podInjection) skipSidecar(name, reason string) {
	i := slices.IndexFunc(w.outcome.Sidecars, func(o SidecarOutcome) bool { return o.Name == name && o.Inject })
	w.outcome.Sidecars[i].Inject, w.outcome.Sidecars[i].Reason = false, reason
}

// finishSidecars leaves the records in the pod, and reports what was done and why.
func (w *podInjection) finishSidecars(pod map[string]any) (map[string]any, error) {
	w.unit.objects = append(w.unit.objects, w.sidecars.objects...)
	o := w.outcome
	var names, skipped []string
	for _, s := range o.Sidecars {
		action := "skipped"
		if s.Inject {
			action, names = "injected", append(names, s.Name)
		} else {
			skipped = append(skipped, "sidecar "+s.Name+": "+s.Reason)
		}
		w.unit.addResult(result.Info, w.template.Field, "sidecar "+s.Name+" "+action+": "+s.Reason)
	}
	switch {
	case len(names) > 0 && o.Action != Injected:
		reason := "sidecar " + strings.Join(names, ", ")
		if o.Decision != nil {
			reason += "; not Istio's proxy: " + o.Reason
		}
		o.Action, o.Reason = Injected, reason
	case len(skipped) > 0 && o.Decision == nil && o.Action == Skipped:
		o.Reason = strings.Join(skipped, "; ")
	}
	return sidecar.Annotate(pod, w.sidecars.records)
}

// reportRemoved warns of injections that were removed from the pod although no policy of this run has them: running
// one policy after the other leaves only the last one's injection.
func (w *podInjection) reportRemoved(plans []*compiledPolicy) {
	if w.in.mode == v1alpha1.ModeRemove {
		return
	}
	const advice = "; what an earlier run injected is taken out first, so give all policies to one run"
	for _, r := range w.restored.sidecars {
		has := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool {
			return slices.ContainsFunc(pl.sidecars, func(s *sidecar.Sidecar) bool { return s.Name() == r.Name })
		})
		if !has {
			w.unit.addResult(result.Warning, w.template.Field, "the sidecar "+r.Name+" was taken out: no policy of this run has it"+advice)
		}
	}
	sidecars := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return len(pl.sidecars) > 0 })
	istio := slices.ContainsFunc(plans, func(pl *compiledPolicy) bool { return pl.istio != nil })
	if w.restored.istio && sidecars && !istio {
		w.unit.addResult(result.Warning, w.template.Field, "Istio's proxy was taken out: no policy of this run has istio"+advice)
	}
}
