// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"slices"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/chain"
	"github.com/prerig/prerig/pipeline/render/fields"
)

// admittedAtOnce bounds how many pods are admitted again at once.
const admittedAtOnce = 500

// counterfactual is the admission of a pod in a cluster without one of the causes of its fields.
type counterfactual struct {
	*predicted

	of    int // the position of the pod
	cause string
}

// nameCauses completes the reasons of pods: it admits each pod again without each object that has changed it, and notes what becomes
// of its fields. So the reasons name what a step reacts to, which no step can tell by itself.
func (p *prediction) nameCauses(ctx context.Context, pods []render.AdmittedPod) error {
	if !p.why {
		return nil
	}
	var list []counterfactual
	for i, one := range p.pods {
		if one.Admission == nil || pods[i].Rejected != "" {
			continue
		}
		for _, cause := range one.trace.Objects() {
			if again := p.without(one, cause); again != nil {
				list = append(list, counterfactual{again, i, cause})
			}
		}
	}
	for chunk := range slices.Chunk(list, admittedAtOnce) {
		var called, all []*predicted
		for _, c := range chunk {
			p.first(ctx, c.predicted)
			all = append(all, c.predicted)
			if c.cause != p.pods[c.of].injectedBy {
				called = append(called, c.predicted)
			}
		}
		if err := p.complete(ctx, called, all); err != nil {
			return err
		}
		for i, c := range chunk {
			p.compareWithout(c, &pods[c.of])
			chunk[i].predicted = nil
		}
	}
	return nil
}

// without returns a pod that is to be admitted without a cause; nil if it cannot be.
func (p *prediction) without(one *predicted, cause string) *predicted {
	cluster := p.admission.chain
	if cause != one.injectedBy {
		cluster = cluster.Without(cause)
	}
	if cluster == nil {
		return nil
	}
	again := cluster.Repeat(one.Admission)
	return &predicted{object: one.object, template: one.template, file: one.file, Admission: again, trace: again.Trace}
}

// compareWithout notes in the reasons of a pod what becomes of its fields without a cause. A pod that is rejected then has none.
func (p *prediction) compareWithout(c counterfactual, pod *render.AdmittedPod) {
	if c.Rejected != "" {
		return
	}
	stored := podParts(storedPod(c.predicted))
	otherwise := map[string]chain.Change{}
	for _, change := range c.trace.Reasons(podParts(c.file), stored) {
		otherwise[change.Path] = change
	}
	changed := map[string]fields.Change{}
	for _, change := range fields.Differences(stored, podParts(pod.Pod)) {
		changed[change.Path] = change
	}
	for i := range pod.Reasons {
		r := &pod.Reasons[i]
		_, differs := changed[r.Field]
		delete(changed, r.Field)
		switch {
		case differs && r.Object != c.cause:
			r.Because = append(r.Because, c.cause)
		case !differs && r.Object == c.cause:
			r.Otherwise = describeCause(otherwise[r.Field].Cause)
		}
	}
	for _, change := range changed {
		pod.Prevented = append(pod.Prevented, render.Prevented{
			Field: change.Path, Value: change.After, Without: change.Before, Object: c.cause, By: describeCause(otherwise[change.Path].Cause),
		})
	}
	slices.SortFunc(pod.Prevented, render.Prevented.Compare)
}

// describeCause names what has changed a field: the object, or otherwise the step.
func describeCause(cause chain.Cause) string {
	if cause.Object != "" {
		return cause.Object
	}
	return cause.Step
}
