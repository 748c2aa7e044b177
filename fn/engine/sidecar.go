// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/sidecar"
	"github.com/prerig/prerig/fn/strict"
)

// prepareSidecars makes the policy's sidecars ready. A name without a policy's own is that of the built-in sidecar.
func (pl *compiledPolicy) prepareSidecars() result.Results {
	var results result.Results
	for i, s := range pl.policy.Spec.Sidecars {
		compiled, err := sidecar.New(s)
		if err != nil {
			results = append(results, policyError(pl.policy, strict.Below(err, "spec", "sidecars", i)))
			continue
		}
		pl.sidecars = append(pl.sidecars, compiled)
	}
	return results
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
func (a *attempt) chooseSidecars() error {
	by := map[string]string{}
	for _, pl := range a.of.plans {
		for _, s := range pl.sidecars {
			homes := a.of.homesFor(pl)
			req := a.sidecarRequest(pl, homes[0])
			decision, err := decideSidecar(s, req, homes)
			if err != nil {
				return fmt.Errorf("choosing sidecar %s: %w", s.Name(), err)
			}
			if decision.Fail {
				return fmt.Errorf("choosing sidecar %s: %s", s.Name(), decision.Reason)
			}
			outcome := SidecarOutcome{Name: s.Name(), Inject: decision.Inject, Reason: decision.Reason}
			a.outcome.Sidecars = append(a.outcome.Sidecars, outcome)
			if !decision.Inject {
				continue
			}
			if other, ok := by[s.Name()]; ok {
				return fmt.Errorf("the policies %s and %s both inject a sidecar %s here; leave one of them out, rename it, or narrow what they select",
					other, pl.policy.Metadata.Name, s.Name())
			}
			by[s.Name()] = pl.policy.Metadata.Name
			a.chosen = append(a.chosen, chosenSidecar{plan: pl, sidecar: s, request: req})
		}
	}
	return nil
}

// sidecarRequest builds a sidecar's request for the pod.
func (a *attempt) sidecarRequest(pl *compiledPolicy, h home) sidecar.Request {
	meta, _ := a.of.obj["metadata"].(map[string]any)
	m := a.unit.meta
	return sidecar.Request{
		Original: a.original,
		Workload: sidecar.Workload{APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Name, Namespace: m.Namespace,
			Labels: stringMap(meta["labels"]), Annotations: stringMap(meta["annotations"])},
		Namespace: h.sidecarNamespace(),
		Unknown:   unknownNamespace(&pl.policy.Spec),
	}
}

// injectSidecars injects the chosen sidecars of one side of Istio.
func (a *attempt) injectSidecars(pod map[string]any, outside bool) (map[string]any, error) {
	for _, c := range a.chosen {
		if c.sidecar.Outside() != outside {
			continue
		}
		next, err := a.injectSidecar(c, pod)
		if err != nil {
			return nil, fmt.Errorf("injecting sidecar %s: %w", c.sidecar.Name(), err)
		}
		pod = next
	}
	return pod, nil
}

func (a *attempt) injectSidecar(c chosenSidecar, pod map[string]any) (map[string]any, error) {
	c.request.Pod = pod
	got, err := c.sidecar.Inject(c.request)
	if err != nil {
		return nil, err
	}
	if got.Skip != "" {
		i := slices.IndexFunc(a.outcome.Sidecars, func(o SidecarOutcome) bool {
			return o.Name == c.sidecar.Name() && o.Inject
		})
		a.outcome.Sidecars[i].Inject, a.outcome.Sidecars[i].Reason = false, got.Skip
		return pod, nil
	}
	for _, warning := range got.Warnings {
		a.add(result.Warning, warning.Field, "sidecar "+c.sidecar.Name()+": "+warning.Message)
	}
	a.addDropped(got.Dropped)
	next := got.Pod
	if images := c.plan.policy.Spec.Images; images != nil {
		var missing result.Results
		next, missing = pin.Apply(next, got.Added, c.plan.lock, pin.OnMissing(images.OnMissing))
		a.addAll(missing)
	}
	record, err := c.sidecar.NewRecord(len(a.records)+1, pod, next)
	if err != nil {
		return nil, err
	}
	a.records = append(a.records, record)
	for _, obj := range got.Objects {
		wanted := wantedObject{obj: obj, sidecar: c.sidecar.Name(), owner: a.unit.resourceReference()}
		a.objects = append(a.objects, wanted)
	}
	return next, nil
}

// finishSidecars leaves the records in the pod, and reports what was done and why.
func (a *attempt) finishSidecars(pod map[string]any) (map[string]any, error) {
	o := &a.outcome
	a.reportPolicies()
	var names, skipped []string
	for _, s := range o.Sidecars {
		action := "skipped"
		if s.Inject {
			action, names = "injected", append(names, s.Name)
		} else {
			skipped = append(skipped, "sidecar "+s.Name+": "+s.Reason)
		}
		a.add(result.Info, "", "sidecar "+s.Name+" "+action+": "+s.Reason)
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
	return sidecar.Annotate(pod, a.records)
}
