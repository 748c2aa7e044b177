// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	defaults "github.com/prerig/prerig/fn/admission"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver/request"
)

// LimitRange is a LimitRange of a namespace.
type LimitRange struct {
	Name string
	// Requests and Limits are the defaults of containers.
	Requests, Limits corev1.ResourceList
	// Items are the bounds, with the defaults that the API server sets on them.
	Items []corev1.LimitRangeItem
}

// NewLimitRange reads a LimitRange object.
func NewLimitRange(object map[string]any) (LimitRange, error) {
	var typed corev1.LimitRange
	if err := request.Decode(object, &typed); err != nil {
		return LimitRange{}, err
	}
	filled := defaults.NewLimitRange(object)
	out := LimitRange{Name: typed.Name, Items: typed.Spec.Limits}
	for _, list := range []struct {
		from map[string]any
		to   *corev1.ResourceList
	}{{filled.Requests, &out.Requests}, {filled.Limits, &out.Limits}} {
		*list.to = corev1.ResourceList{}
		for name, value := range list.from {
			q, err := quantity.Parse(fmt.Sprint(value))
			if err != nil {
				return out, fmt.Errorf("reading the quantity %v of %s: %w", value, name, err)
			}
			(*list.to)[corev1.ResourceName(name)] = q
		}
	}
	return out, nil
}

// limitRangerAnnotation is where the plugin records what it sets.
const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// applyLimitRanges sets the missing requests and limits of containers. The API server takes the LimitRanges of a
// namespace in no fixed order, so that of two with a default of one resource it is not known which counts.
func applyLimitRanges(a *Admission) error {
	ranges := slices.Clone(a.cluster.LimitRanges[a.request.Namespace])
	if len(ranges) == 0 && !a.cluster.isComplete("LimitRange") {
		a.lack("the LimitRanges of namespace %s: one of them may set requests and limits", a.request.Namespace)
	}
	if a.reversed {
		slices.Reverse(ranges)
	}
	for _, one := range ranges {
		done := a.Trace.begin(a, Cause{Step: "LimitRanger", Object: "LimitRange " + a.request.Namespace + "/" + one.Name})
		one.apply(a.Pod)
		done()
	}
	return nil
}

func (l LimitRange) apply(pod *corev1.Pod) {
	var notes []string
	for i, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		kind := []string{"container", "init container"}[i]
		for j := range list {
			c := &list[j]
			limits := addAbsent(&c.Resources.Limits, l.Limits)
			if requests := addAbsent(&c.Resources.Requests, l.Requests); len(requests) > 0 {
				notes = append(notes, strings.Join(requests, ", ")+" request for "+kind+" "+c.Name)
			}
			if len(limits) > 0 {
				notes = append(notes, strings.Join(limits, ", ")+" limit for "+kind+" "+c.Name)
			}
		}
	}
	if len(notes) == 0 {
		return
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[limitRangerAnnotation] = "LimitRanger plugin set: " + strings.Join(notes, "; ")
}

// addAbsent adds the resources that a list does not have, and returns their names.
func addAbsent(list *corev1.ResourceList, from corev1.ResourceList) []string {
	var added []string
	for _, name := range slices.Sorted(maps.Keys(from)) {
		if _, ok := (*list)[name]; ok {
			continue
		}
		if *list == nil {
			*list = corev1.ResourceList{}
		}
		(*list)[name] = from[name].DeepCopy()
		added = append(added, string(name))
	}
	return added
}

// checkLimitRanges rejects pods outside of the bounds. Which of several LimitRanges that reject a pod is the reason is in no fixed order.
func checkLimitRanges(a *Admission) error {
	var first error
	for _, one := range a.cluster.LimitRanges[a.request.Namespace] {
		var errs []error
		for _, item := range one.Items {
			switch item.Type {
			case corev1.LimitTypeContainer:
				for _, list := range [][]corev1.Container{a.Pod.Spec.Containers, a.Pod.Spec.InitContainers} {
					for _, c := range list {
						errs = append(errs, checkBounds(item, c.Resources.Requests, c.Resources.Limits)...)
					}
				}
			case corev1.LimitTypePod:
				requests := totalOf(a.Pod, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
				limits := totalOf(a.Pod, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
				errs = append(errs, checkBounds(item, requests, limits)...)
			}
		}
		err := aggregate(errs)
		if err != nil && first != nil && err.Error() != first.Error() {
			a.lack("the order of LimitRanges, which the API server does not fix: it decides why the pod is rejected")
		}
		if first == nil {
			first = err
		}
	}
	return first
}

// aggregate returns one error for several, as the API server writes them: each once, in brackets.
func aggregate(errs []error) error {
	var texts []string
	for _, err := range errs {
		if !slices.Contains(texts, err.Error()) {
			texts = append(texts, err.Error())
		}
	}
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return errors.New(texts[0])
	}
	slices.Sort(texts) // the API server has them in no fixed order
	return errors.New("[" + strings.Join(texts, ", ") + "]")
}

// checkBounds returns how requests and limits are outside of an item's bounds.
func checkBounds(item corev1.LimitRangeItem, requests, limits corev1.ResourceList) (errs []error) {
	for _, name := range slices.Sorted(maps.Keys(item.Min)) {
		errs = append(errs, checkMinimum(item, name, requests, limits))
	}
	for _, name := range slices.Sorted(maps.Keys(item.Max)) {
		errs = append(errs, checkMaximum(item, name, requests, limits))
	}
	for _, name := range slices.Sorted(maps.Keys(item.MaxLimitRequestRatio)) {
		errs = append(errs, checkRatio(item, name, requests, limits))
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func checkMinimum(item corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := item.Min[name]
	what := fmt.Sprintf("minimum %s usage per %s is %s", name, item.Type, bound.String())
	request, ok := requests[name]
	limit, limited := limits[name]
	switch {
	case !ok:
		return fmt.Errorf("%s.  No request is specified", what)
	case request.Cmp(bound) < 0:
		return fmt.Errorf("%s, but request is %s", what, request.String())
	case limited && limit.Cmp(bound) < 0:
		return fmt.Errorf("%s, but limit is %s", what, limit.String())
	}
	return nil
}

func checkMaximum(item corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := item.Max[name]
	what := fmt.Sprintf("maximum %s usage per %s is %s", name, item.Type, bound.String())
	request, ok := requests[name]
	limit, limited := limits[name]
	switch {
	case !limited:
		return fmt.Errorf("%s.  No limit is specified", what)
	case limit.Cmp(bound) > 0:
		return fmt.Errorf("%s, but limit is %s", what, limit.String())
	case ok && request.Cmp(bound) > 0:
		return fmt.Errorf("%s, but request is %s", what, request.String())
	}
	return nil
}

func checkRatio(item corev1.LimitRangeItem, name corev1.ResourceName, requests, limits corev1.ResourceList) error {
	bound := item.MaxLimitRequestRatio[name]
	what := fmt.Sprintf("%s max limit to request ratio per %s is %s", name, item.Type, bound.String())
	request, limit := requests[name], limits[name]
	if request.IsZero() {
		return fmt.Errorf("%s, but no request is specified or request is 0", what)
	}
	if limit.IsZero() {
		return fmt.Errorf("%s, but no limit is specified or limit is 0", what)
	}
	ratio := float64(limit.MilliValue()) / float64(request.MilliValue())
	if ratio*1000 > float64(bound.MilliValue()) {
		return fmt.Errorf("%s, but provided ratio is %f", what, ratio)
	}
	return nil
}

// totalOf returns what a pod asks for as a whole: the sum of its containers and native sidecars, or the most that one
// init container asks for with the native sidecars before it; and cpu and memory of the pod itself, if it sets them.
func totalOf(pod *corev1.Pod, of func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	total, sidecars, most := corev1.ResourceList{}, corev1.ResourceList{}, corev1.ResourceList{}
	for _, c := range pod.Spec.Containers {
		addAmounts(total, of(c.Resources))
	}
	for _, c := range pod.Spec.InitContainers {
		now := corev1.ResourceList{}
		addAmounts(now, sidecars)
		addAmounts(now, of(c.Resources))
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			addAmounts(total, of(c.Resources))
			addAmounts(sidecars, of(c.Resources))
		}
		raiseAmounts(most, now)
	}
	raiseAmounts(total, most)
	if pod.Spec.Resources != nil {
		for name, q := range of(*pod.Spec.Resources) {
			if name == corev1.ResourceCPU || name == corev1.ResourceMemory {
				total[name] = q
			}
		}
	}
	return total
}

func addAmounts(list, more corev1.ResourceList) {
	for name, q := range more {
		sum := list[name].DeepCopy()
		sum.Add(q)
		list[name] = sum
	}
}

func raiseAmounts(list, other corev1.ResourceList) {
	for name, q := range other {
		if have, ok := list[name]; !ok || q.Cmp(have) > 0 {
			list[name] = q.DeepCopy()
		}
	}
}
