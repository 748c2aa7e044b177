// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"reflect"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
)

// removeSidecars takes what asks for sidecars from the namespace and its pods, and the sidecars themselves from the manifests.
func (m move) removeSidecars() error {
	if ns := m.namespaceObject(m.namespace); ns != nil && (ns.labels[injectionLabel] == "enabled" || ns.labels[revisionLabel] != "") {
		value := podmap.CopyMap(ns.value)
		labels := child(child(value, "metadata"), "labels")
		delete(labels, injectionLabel)
		delete(labels, revisionLabel)
		m.change(ns, value)
	}
	for _, o := range m.of[m.namespace] {
		if len(o.templates)+len(o.custom) > 0 {
			if err := m.cleanWorkload(o); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m move) cleanWorkload(o *object) error {
	value, templates := o.value, o.templates
	if clean := m.cleanOf(o); clean != nil {
		object, err := clean.Object()
		if err != nil {
			return err
		}
		if !reflect.DeepEqual(object, o.value) {
			value = object
			if templates, err = m.registry.Templates(value); err != nil {
				return err
			}
		}
	}
	for _, template := range slices.Concat(templates, o.custom) {
		meta := podmap.MapAt(template.Pod, "metadata")
		if isGateway(template.Pod) || podmap.StringMap(meta["labels"])[injectKey] != "true" && podmap.StringMap(meta["annotations"])[injectKey] != "true" {
			continue
		}
		pod := podmap.CopyMap(template.Pod)
		for _, key := range []string{"labels", "annotations"} {
			fields := podmap.MapAt(pod, "metadata", key)
			if text(fields[injectKey]) == "true" {
				delete(fields, injectKey)
			}
			if fields != nil && len(fields) == 0 {
				delete(podmap.MapAt(pod, "metadata"), key)
			}
		}
		value = template.Write(value, pod)
	}
	if !reflect.DeepEqual(value, o.value) {
		m.change(o, value)
	}
	return nil
}

// cleanOf returns the document of an object without its sidecar, as the engine has it, or nil if that is not known.
func (m move) cleanOf(o *object) *manifest.Document {
	clean := m.files[o.file].Clean
	if o.doc >= len(clean) || clean[o.doc] == nil {
		return nil
	}
	if o.element < 0 {
		return clean[o.doc]
	}
	items, isList, err := clean[o.doc].Items()
	if err != nil || !isList || o.element >= len(items) {
		return nil
	}
	return items[o.element]
}
