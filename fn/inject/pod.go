// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/podmap"
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

// pod is a pod's maps, which belong to it alone: one that is injected or restored.
type pod struct {
	meta, spec map[string]any
	// extra are keys beside metadata and spec.
	extra map[string]any
}

// newPod copies a pod.
func newPod(obj map[string]any) (*pod, error) { return newPodWith(obj, podmap.CopyMap) }

// borrowPod copies a pod except for containers with Istio's names: they are large, and are mostly removed anyway.
// They must not be modified before copyBorrowedContainers.
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
			out[key] = podmap.CopyValue(v)
			continue
		}
		containers := make([]any, len(list))
		for i, e := range list {
			containers[i] = e
			if !isBorrowedContainer(e) {
				containers[i] = podmap.CopyValue(e)
			}
		}
		out[key] = containers
	}
	return out
}

// isBorrowedContainer reports whether borrowPod does not copy a container.
func isBorrowedContainer(container any) bool {
	c, _ := container.(map[string]any)
	name, _ := c["name"].(string)
	return isIstioContainer(name)
}

// copyBorrowedContainers copies the containers that borrowPod has not copied.
func (p *pod) copyBorrowedContainers() {
	for _, key := range []string{containersKey, initContainersKey} {
		list := p.specListMaps(key)
		for i, e := range list {
			if isBorrowedContainer(e) {
				list[i] = podmap.CopyValue(e)
			}
		}
	}
}

// newPodWith makes a pod of its maps, with copies of its own of all but what copySpec leaves.
func newPodWith(obj map[string]any, copySpec func(map[string]any) map[string]any) (*pod, error) {
	parts, err := podmap.Split(obj, copySpec)
	return &pod{meta: parts.Meta, spec: parts.Spec, extra: parts.Extra}, err
}

// podMapParts returns the pod's maps, not copied.
func (p *pod) podMapParts() podmap.Parts { return podmap.Parts{Meta: p.meta, Spec: p.spec} }

// validateShape makes sure that what the injection reads has the right shape.
func (p *pod) validateShape() error { return p.podMapParts().Check() }

// applyStrategicMerge merges a patch into the pod with Kubernetes' rules for pods. The pod and the patch are used up:
// both are changed.
func (p *pod) applyStrategicMerge(patch map[string]any) error {
	parts := p.podMapParts()
	if err := parts.Overlay(patch); err != nil {
		return err
	}
	p.meta, p.spec = parts.Meta, parts.Spec
	return nil
}

// decodeTypedPod returns the pod as Kubernetes' Go types, which templates read. Fields that the types do not have are
// not in it.
func (p *pod) decodeTypedPod() (*corev1.Pod, error) { return p.podMapParts().Typed() }

// toPodObject returns the pod as one map. The pod must not be used after that.
func (p *pod) toPodObject() map[string]any {
	p.extra["metadata"], p.extra["spec"] = p.meta, p.spec
	return p.extra
}

// deepCopy copies the pod.
func (p *pod) deepCopy() *pod {
	return &pod{meta: podmap.CopyMap(p.meta), spec: podmap.CopyMap(p.spec), extra: p.extra}
}

func (p *pod) labels() map[string]string      { return podmap.StringMap(p.meta["labels"]) }
func (p *pod) annotations() map[string]string { return podmap.StringMap(p.meta["annotations"]) }

// annotation returns an annotation and whether it exists.
func (p *pod) annotation(name string) (string, bool) { return stringIn(p.meta["annotations"], name) }

// boolAnnotation returns the truth value of an annotation, or another one if the pod has none.
func (p *pod) boolAnnotation(name string, otherwise bool) bool {
	text, _ := p.annotation(name)
	if v, err := strconv.ParseBool(text); err == nil {
		return v
	}
	return otherwise
}

// label returns a label and whether it exists.
func (p *pod) label(name string) (string, bool) { return stringIn(p.meta["labels"], name) }

// stringIn returns a string of a map and whether it is present. Null counts as present and empty.
func stringIn(v any, key string) (string, bool) {
	m, _ := v.(map[string]any)
	e, ok := m[key]
	s, isString := e.(string)
	return s, ok && (isString || e == nil)
}

// metadataKeys are the maps of strings in a pod's metadata.
var metadataKeys = []string{"labels", "annotations"}

// readNulls puts the empty string in the place of null in labels and annotations, as the API server reads it. Elsewhere in the pod
// the Go types do that, which templates see.
func (p *pod) readNulls() {
	for _, key := range metadataKeys {
		m, _ := p.meta[key].(map[string]any)
		for name, v := range m {
			if v == nil {
				m[name] = ""
			}
		}
	}
}

// writeNulls undoes readNulls: it writes null where the user's metadata has it and the value is empty.
func (p *pod) writeNulls(user map[string]any) {
	meta, _ := user["metadata"].(map[string]any)
	for _, key := range metadataKeys {
		written, _ := meta[key].(map[string]any)
		m, _ := p.meta[key].(map[string]any)
		for name, v := range written {
			if v == nil && m[name] == "" {
				m[name] = nil
			}
		}
	}
}

// setMetadataValue puts a string into metadata's labels or annotations.
func (p *pod) setMetadataValue(kind, name, value string) {
	m, ok := p.meta[kind].(map[string]any)
	if !ok {
		m = map[string]any{}
		p.meta[kind] = m
	}
	m[name] = value
}

// removeMetadataValue removes a key from the labels or annotations.
func (p *pod) removeMetadataValue(kind, name string) {
	if m, ok := p.meta[kind].(map[string]any); ok {
		delete(m, name)
	}
}

// dropEmpty drops labels or annotations that have become empty.
func (p *pod) dropEmpty(kind string) {
	if m, ok := p.meta[kind].(map[string]any); ok && len(m) == 0 {
		delete(p.meta, kind)
	}
}

// specListMaps returns a list of maps of the spec, such as the containers.
func (p *pod) specListMaps(key string) []any {
	l, _ := p.spec[key].([]any)
	return l
}

// setList sets a list of the spec. It does not create an empty list.
func (p *pod) setList(key string, l []any) {
	if _, there := p.spec[key]; len(l) > 0 || there {
		p.spec[key] = l
	}
}

// setOrDrop is setList that drops a list that has become empty.
func (p *pod) setOrDrop(key string, l []any) {
	if len(l) == 0 && len(p.specListMaps(key)) > 0 {
		delete(p.spec, key)
		return
	}
	p.setList(key, l)
}

// findProxyContainer returns the istio-proxy container. It searches only the containers if native is false, and the
// init containers too otherwise.
func (p *pod) findProxyContainer(native bool) map[string]any {
	if c := podmap.Find(p.specListMaps(containersKey), proxyContainer); c != nil || !native {
		return c
	}
	return podmap.Find(p.specListMaps(initContainersKey), proxyContainer)
}

// findContainerNamed returns the pod's container or init container that has the name of another one, or nil.
func (p *pod) findContainerNamed(other any) map[string]any {
	m, _ := other.(map[string]any)
	name, _ := m["name"].(string)
	if c := podmap.Find(p.specListMaps(containersKey), name); c != nil {
		return c
	}
	return podmap.Find(p.specListMaps(initContainersKey), name)
}
