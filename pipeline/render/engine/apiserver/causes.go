// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
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
		for _, cause := range slices.Concat(one.trace.Objects(), meshAnnotations(one)) {
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
	annotation := annotationOf(cause)
	if cause != one.injectedBy && annotation == "" {
		cluster = cluster.Without(cause)
	}
	if cluster == nil {
		return nil
	}
	again := cluster.Repeat(one.Admission)
	delete(again.Pod.Annotations, annotation)
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
	if annotation := annotationOf(c.cause); annotation != "" {
		delete(changed, fmt.Sprintf("metadata.annotations[%q]", annotation))
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

// annotationCause begins the causes that are annotations of the pod, and shownValue bounds the value in them.
const (
	annotationCause = "annotation "
	shownValue      = 60
)

// meshAnnotations returns the causes that are annotations of the mesh, if the pod is injected.
func meshAnnotations(one *predicted) (out []string) {
	if one.injectedBy == "" {
		return nil
	}
	metadata, _ := one.file["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.Contains(key, "istio.io/") {
			out = append(out, annotationCause+key+": "+foreign.Line(fmt.Sprint(annotations[key]), shownValue))
		}
	}
	return out
}

// annotationOf returns the annotation that a cause is; empty for an object.
func annotationOf(cause string) string {
	rest, ok := strings.CutPrefix(cause, annotationCause)
	if !ok {
		return ""
	}
	key, _, _ := strings.Cut(rest, ": ")
	return key
}

// describeCause names what has changed a field: the object, or otherwise the step.
func describeCause(cause chain.Cause) string {
	if cause.Object != "" {
		return cause.Object
	}
	return cause.Step
}
