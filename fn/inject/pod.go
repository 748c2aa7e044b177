// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"errors"
	"fmt"
	"slices"
)

// Names of the containers that Istio's templates inject.
const (
	proxyContainer      = "istio-proxy"
	initContainer       = "istio-init"
	validationContainer = "istio-validation"
	coreDumpContainer   = "enable-core-dump"
	bootstrapContainer  = "grpc-bootstrap-init"
)

// The lists of containers of a pod.
const (
	containersKey     = "containers"
	initContainersKey = "initContainers"
)

// pod is a pod's maps, which belong to it alone.
type pod struct {
	meta, spec map[string]any
	// extra are keys beside metadata and spec.
	extra map[string]any
}

// newPod copies a pod.
func newPod(obj map[string]any) (*pod, error) { return newPodWith(obj, copyMap) }

// borrowPod copies a pod, but for the containers that have the names of Istio's: they are large, and mostly there to be taken
// out. They must not be changed before ownContainers.
func borrowPod(obj map[string]any) (*pod, error) { return newPodWith(obj, copyBorrowing) }

// copyBorrowing copies the spec of a pod, but for Istio's containers.
func copyBorrowing(spec map[string]any) map[string]any {
	if spec == nil {
		return nil
	}
	out := make(map[string]any, len(spec))
	for key, v := range spec {
		list, ok := v.([]any)
		if !ok || key != containersKey && key != initContainersKey {
			out[key] = copyValue(v)
			continue
		}
		containers := make([]any, len(list))
		for i, e := range list {
			if containers[i] = e; !borrowed(e) {
				containers[i] = copyValue(e)
			}
		}
		out[key] = containers
	}
	return out
}

// borrowed reports whether borrowPod does not copy a container.
func borrowed(container any) bool {
	c, _ := container.(map[string]any)
	name, _ := c["name"].(string)
	return isIstios(name)
}

// ownContainers copies the containers that borrowPod has not copied.
func (p *pod) ownContainers() {
	for _, key := range []string{containersKey, initContainersKey} {
		list := p.list(key)
		for i, e := range list {
			if borrowed(e) {
				list[i] = copyValue(e)
			}
		}
	}
}

// newPodWith makes a pod of its maps, with copies of its own of all but what copySpec leaves.
func newPodWith(obj map[string]any, copySpec func(map[string]any) map[string]any) (*pod, error) {
	p := &pod{extra: map[string]any{}}
	for k, v := range obj {
		switch k {
		case "metadata":
			m, ok := v.(map[string]any)
			if !ok && v != nil {
				return nil, &FieldError{Field: k, Err: errNotMap}
			}
			p.meta = copyMap(m)
		case "spec":
			m, ok := v.(map[string]any)
			if !ok {
				return nil, &FieldError{Field: k, Err: errNotMap}
			}
			p.spec = copySpec(m)
		default:
			p.extra[k] = copyValue(v)
		}
	}
	if p.spec == nil {
		return nil, &FieldError{Field: "spec", Err: errors.New("the pod has none")}
	}
	if p.meta == nil {
		p.meta = map[string]any{}
	}
	return p, p.check()
}

// check makes sure that what the injection reads has the right shape.
func (p *pod) check() error {
	for _, key := range []string{"labels", "annotations"} {
		if err := checkStrings("metadata."+key, p.meta[key]); err != nil {
			return err
		}
	}
	for _, key := range []string{containersKey, initContainersKey, "volumes", "imagePullSecrets"} {
		if err := checkMaps("spec."+key, p.spec[key]); err != nil {
			return err
		}
	}
	return nil
}

func checkStrings(field string, v any) error {
	m, ok := v.(map[string]any)
	if !ok && v != nil {
		return &FieldError{Field: field, Err: errNotMap}
	}
	for k, e := range m {
		if _, ok := e.(string); !ok {
			return &FieldError{Field: fmt.Sprintf("%s[%s]", field, k), Err: fmt.Errorf("it has to be a string and is %s; put it in quotes", describe(e))}
		}
	}
	return nil
}

func checkMaps(field string, v any) error {
	list, ok := v.([]any)
	if !ok && v != nil {
		return &FieldError{Field: field, Err: errors.New("it has to be a list")}
	}
	for i, e := range list {
		if _, ok := e.(map[string]any); !ok {
			return &FieldError{Field: fmt.Sprintf("%s[%d]", field, i), Err: errNotMap}
		}
	}
	return nil
}

// describe says what a decoded value is, for messages.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("the bool %t", v)
	case int64, float64, int:
		return fmt.Sprintf("the number %v", v)
	case string:
		return fmt.Sprintf("the string %q", v)
	case []any:
		return "a list"
	default:
		return "a map"
	}
}

// object gives the pod as one map. The pod must not be used after that.
func (p *pod) object() map[string]any {
	p.extra["metadata"], p.extra["spec"] = p.meta, p.spec
	return p.extra
}

// copy copies the pod.
func (p *pod) copy() *pod {
	return &pod{meta: copyMap(p.meta), spec: copyMap(p.spec), extra: p.extra}
}

func (p *pod) labels() map[string]string      { return stringMap(p.meta["labels"]) }
func (p *pod) annotations() map[string]string { return stringMap(p.meta["annotations"]) }

// annotation is one annotation, and whether there is one.
func (p *pod) annotation(name string) (string, bool) { return stringIn(p.meta["annotations"], name) }

// label is one label, and whether there is one.
func (p *pod) label(name string) (string, bool) { return stringIn(p.meta["labels"], name) }

func stringIn(v any, key string) (string, bool) {
	m, _ := v.(map[string]any)
	s, ok := m[key].(string)
	return s, ok
}

// set puts a string into metadata's labels or annotations.
func (p *pod) set(kind, name, value string) {
	m, ok := p.meta[kind].(map[string]any)
	if !ok {
		m = map[string]any{}
		p.meta[kind] = m
	}
	m[name] = value
}

// unset takes a key out of metadata's labels or annotations.
func (p *pod) unset(kind, name string) {
	if m, ok := p.meta[kind].(map[string]any); ok {
		delete(m, name)
	}
}

// list is a list of maps of the spec, such as the containers.
func (p *pod) list(key string) []any {
	l, _ := p.spec[key].([]any)
	return l
}

// setList sets a list of the spec. An empty one that was not there stays away.
func (p *pod) setList(key string, l []any) {
	if _, there := p.spec[key]; len(l) > 0 || there {
		p.spec[key] = l
	}
}

// find is the first element of a list that has a name, or nil.
func find(list []any, name string) map[string]any {
	for _, e := range list {
		if m, ok := e.(map[string]any); ok && m["name"] == name {
			return m
		}
	}
	return nil
}

// proxy is the istio-proxy container: where native is false only among the containers, else among the init containers too.
func (p *pod) proxy(native bool) map[string]any {
	if c := find(p.list(containersKey), proxyContainer); c != nil || !native {
		return c
	}
	return find(p.list(initContainersKey), proxyContainer)
}

// named is the pod's container or init container that has the name of another one, or nil.
func (p *pod) named(other any) map[string]any {
	m, _ := other.(map[string]any)
	name, _ := m["name"].(string)
	if c := find(p.list(containersKey), name); c != nil {
		return c
	}
	return find(p.list(initContainersKey), name)
}

// names are the names of a list's elements.
func names(list []any) []string {
	var out []string
	for _, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		out = append(out, name)
	}
	return out
}

// without is a list without the elements that have a name.
func without(list []any, name string) []any {
	out := make([]any, 0, len(list))
	for _, e := range list {
		if m, ok := e.(map[string]any); !ok || m["name"] != name {
			out = append(out, e)
		}
	}
	return out
}

// withoutNames returns a copy of a list without the elements that have one of the names.
func withoutNames(list []any, gone []string) []any {
	return slices.DeleteFunc(slices.Clone(list), func(e any) bool {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		return slices.Contains(gone, name)
	})
}

func stringMap(v any) map[string]string {
	m, _ := v.(map[string]any)
	if m == nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, e := range m {
		out[k], _ = e.(string)
	}
	return out
}

func copyMap(m map[string]any) map[string]any {
	if m == nil {
		return nil
	}
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = copyValue(v)
	}
	return out
}

func copyValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		return copyMap(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = copyValue(e)
		}
		return out
	default:
		return v
	}
}
