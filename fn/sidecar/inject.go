// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// Result is a pod with a sidecar.
type Result struct {
	// Skip is why the template leaves the pod alone, without a full stop; empty where it does not. The other fields are
	// empty then.
	Skip string
	// Pod is the request's pod with the sidecar. The record is not in it yet; see NewRecord.
	Pod map[string]any
	// Added are the names of the containers that the pod did not have before, init containers first.
	Added []string
	// Objects are the further objects, in the order in which the template prints them.
	Objects []map[string]any
	// Warnings are for the user, each a sentence without a full stop.
	Warnings []Warning
	// Dropped are the keys under which the template prints several entries of one list. The pod has the last of each.
	Dropped []podmap.Dropped
}

// Warning is about a field of the pod, or about the sidecar as a whole where Field is empty.
type Warning struct{ Field, Message string }

// The lists of containers of a pod.
const (
	containersKey     = "containers"
	initContainersKey = "initContainers"
)

// Inject adds the sidecar to the pod, whatever Decide returns. The error is an *podmap.FieldError or an
// *gotemplate.Error if it is about one field of the pod or one template.
func (s *Sidecar) Inject(req Request) (Result, error) {
	data, err := s.newData(req)
	if err != nil {
		return Result{}, err
	}
	overlay, err := s.renderOverlay(podTemplate, data)
	if err != nil {
		return Result{}, err
	}
	skip, err := templateSkipReason(overlay)
	if err != nil || skip != "" {
		return Result{Skip: skip}, err
	}
	order, err := s.effectiveOrder(overlay)
	if err != nil {
		return Result{}, err
	}
	out := Result{}
	for _, field := range podmap.UnknownFields(overlay) {
		out.addWarning("", "the template sets %s, which is not a field that Kubernetes is known to have", field)
	}
	if err := checkCollisions(req.Pod, overlay); err != nil {
		return Result{}, err
	}
	if err := s.fitOverlay(req, overlay); err != nil {
		return Result{}, err
	}
	if out.Pod, err = podmap.Merge(req.Pod, overlay); err != nil {
		return Result{}, markTemplateError(podTemplate, err)
	}
	out.Added = orderContainers(req.Pod, out.Pod, order)
	if err := s.patchContainers(&out, req, data); err != nil {
		return Result{}, err
	}
	s.setGuard(out.Pod)
	if out.Dropped, err = podmap.KeepLast(podmap.PartsOf(req.Pod), podmap.PartsOf(out.Pod)); err != nil {
		return Result{}, err
	}
	if out.Objects, err = s.renderObjects(req, data); err != nil {
		return Result{}, err
	}
	own, err := workload.Annotations(req.Original)
	if err != nil {
		return Result{}, err
	}
	for _, name := range s.unreadAnnotations(own) {
		out.addWarning(annotationField(name), "nothing reads this annotation: the sidecar %s does not know it, so it has no effect", s.Name())
	}
	return out, nil
}

func (r *Result) addWarning(field, format string, args ...any) {
	r.Warnings = append(r.Warnings, Warning{Field: field, Message: fmt.Sprintf(format, args...)})
}

// renderOverlay renders a template and decodes its output: a map, or nil.
func (s *Sidecar) renderOverlay(name string, data *Data) (map[string]any, error) {
	text, err := renderTemplate(name, data)
	if err != nil {
		return nil, err
	}
	v, err := manifest.Decode(text)
	if err != nil {
		return nil, &gotemplate.Error{Template: name, Err: fmt.Errorf("what it prints is not YAML: %w%s", err, errorLine(text, err))}
	}
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return nil, &gotemplate.Error{Template: name, Err: errors.New("it has to print a map")}
	}
	if m == nil {
		m = map[string]any{}
	}
	if name != podTemplate {
		return m, nil
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains([]string{"metadata", "spec", orderKey, skipKey}, key) {
			return nil, &gotemplate.Error{Template: name, Err: fmt.Errorf("it prints the key %s; those that are read are metadata, spec, order and skip", key)}
		}
	}
	return m, nil
}

// skipKey is what a template prints instead of metadata and spec where the pod is not to have the sidecar, with the
// reason.
const skipKey = "skip"

// templateSkipReason returns the reason that the template prints for leaving the pod alone; empty where it prints none.
func templateSkipReason(overlay map[string]any) (string, error) {
	printed, ok := overlay[skipKey]
	if !ok {
		return "", nil
	}
	reason, isText := printed.(string)
	switch {
	case !isText || strings.TrimSpace(reason) == "":
		return "", &gotemplate.Error{Template: podTemplate, Err: errors.New("skip: it has to be the reason, as a string")}
	case len(overlay) > 1:
		return "", &gotemplate.Error{Template: podTemplate, Err: errors.New("skip: it excludes metadata, spec and order")}
	}
	return reason, nil
}

// errorLine returns the line of the printed text that an error is about.
func errorLine(text []byte, err error) string {
	var line int
	_, rest, ok := strings.Cut(err.Error(), "line ")
	if _, scanErr := fmt.Sscanf(rest, "%d", &line); !ok || scanErr != nil {
		return ""
	}
	lines := strings.Split(string(text), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	return fmt.Sprintf(" (%q)", strings.TrimSpace(lines[line-1]))
}

// markTemplateError marks a field error as one about a template's output, not about the pod.
func markTemplateError(name string, err error) error {
	return &gotemplate.Error{Template: name, Err: errors.New("what it prints cannot be merged: " + err.Error())}
}

// checkCollisions rejects a container or volume that would mix with another of its name. A container without an
// image is meant as a change to the existing one.
func checkCollisions(pod, overlay map[string]any) error {
	for _, key := range []string{initContainersKey, containersKey} {
		for _, c := range listOf(overlay, key) {
			if c["image"] == nil || c["$patch"] != nil {
				continue
			}
			for _, other := range []string{initContainersKey, containersKey} {
				if i := indexOf(listOf(pod, other), c["name"]); i >= 0 {
					return &podmap.FieldError{Field: workload.FieldString([]any{"spec", other, i}),
						Err: fmt.Errorf("the pod already has a container %v; it is not this sidecar's, and two cannot have one name", c["name"])}
				}
			}
		}
	}
	have := listOf(pod, "volumes")
	for _, v := range listOf(overlay, "volumes") {
		if i := indexOf(have, v["name"]); i >= 0 && v["$patch"] == nil && !reflect.DeepEqual(have[i], v) {
			return &podmap.FieldError{Field: workload.FieldString([]any{"spec", "volumes", i}),
				Err: fmt.Errorf("the pod already has another volume %v", v["name"])}
		}
	}
	return nil
}

// setGuard sets the labels and annotations that keep the runtime injector away.
func (s *Sidecar) setGuard(pod map[string]any) {
	meta, _ := pod["metadata"].(map[string]any)
	for key, values := range map[string]map[string]string{"labels": s.spec.Guard.Labels, "annotations": s.spec.Guard.Annotations} {
		if len(values) == 0 {
			continue
		}
		m, ok := meta[key].(map[string]any)
		if !ok {
			m = map[string]any{}
			meta[key] = m
		}
		for k, v := range values {
			m[k] = v
		}
	}
}

// listOf returns a list of maps of the pod's spec.
func listOf(pod map[string]any, key string) []map[string]any {
	spec, _ := pod["spec"].(map[string]any)
	return podmap.Maps(spec[key])
}

func indexOf(list []map[string]any, name any) int {
	return slices.IndexFunc(list, func(m map[string]any) bool { return name != nil && m["name"] == name })
}
