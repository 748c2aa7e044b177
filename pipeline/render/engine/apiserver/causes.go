// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/podmap"
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
	cause cause
}

// cause is what a field may be because of: an object, or an annotation of the pod.
type cause struct {
	name       string // as the reasons have it
	annotation string // its key; empty for an object
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
		var causes []cause
		for _, object := range one.trace.Objects() {
			causes = append(causes, cause{name: object})
		}
		for _, c := range append(causes, meshAnnotations(one)...) {
			if again := p.without(one, c); again != nil {
				list = append(list, counterfactual{again, i, c})
			}
		}
	}
	for chunk := range slices.Chunk(list, admittedAtOnce) {
		var called, all []*predicted
		for _, c := range chunk {
			p.first(ctx, c.predicted)
			all = append(all, c.predicted)
			if c.cause.name != p.pods[c.of].injectedBy {
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
func (p *prediction) without(one *predicted, c cause) *predicted {
	cluster := p.chain
	if c.name != one.injectedBy && c.annotation == "" {
		cluster = cluster.Without(c.name)
	}
	if cluster == nil {
		return nil
	}
	again := cluster.Repeat(one.Admission)
	delete(again.Pod.Annotations, c.annotation)
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
	if c.cause.annotation != "" {
		delete(changed, fmt.Sprintf("metadata.annotations[%q]", c.cause.annotation))
	}
	for i := range pod.Reasons {
		r := &pod.Reasons[i]
		_, differs := changed[r.Field]
		delete(changed, r.Field)
		switch {
		case differs && r.Object != c.cause.name:
			r.Because = append(r.Because, c.cause.name)
		case !differs && r.Object == c.cause.name:
			r.Otherwise = describeCause(otherwise[r.Field].Cause)
		}
	}
	for _, change := range changed {
		pod.Prevented = append(pod.Prevented, render.Prevented{
			Field: change.Path, Value: change.After, Without: change.Before, Object: c.cause.name, By: describeCause(otherwise[change.Path].Cause),
		})
	}
	slices.SortFunc(pod.Prevented, render.Prevented.Compare)
}

// shownValue bounds the value of an annotation in a cause.
const shownValue = 60

// meshAnnotations returns the causes that are annotations of the mesh, if the pod is injected.
func meshAnnotations(one *predicted) (out []cause) {
	if one.injectedBy == "" {
		return nil
	}
	annotations := podmap.MapAt(one.file, "metadata", "annotations")
	for _, key := range podmap.SortedKeys(annotations) {
		if strings.Contains(key, "istio.io/") {
			out = append(out, cause{"annotation " + key + ": " + foreign.Line(fmt.Sprint(annotations[key]), shownValue), key})
		}
	}
	return out
}

// describeCause names what has changed a field: the object, or otherwise the step.
func describeCause(cause chain.Cause) string {
	if cause.Object != "" {
		return cause.Object
	}
	return cause.Step
}
