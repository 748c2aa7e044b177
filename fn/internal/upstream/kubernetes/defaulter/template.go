// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
)

// templates are the paths of the pod templates.
var templates = map[string][]string{
	"Pod":                   {},
	"PodTemplate":           {"template"},
	"ReplicationController": {"spec", "template"},
	"Deployment":            {"spec", "template"},
	"ReplicaSet":            {"spec", "template"},
	"StatefulSet":           {"spec", "template"},
	"DaemonSet":             {"spec", "template"},
	"Job":                   {"spec", "template"},
	"CronJob":               {"spec", "jobTemplate", "spec", "template"},
}

// podOf is the Pod that a controller makes of a defaulted object: the template's labels, annotations, finalizers and spec
// in the object's namespace. What a controller adds of its own, such as its hash, the owner and the generated name, is not
// in it.
func podOf(text []byte) ([]byte, error) {
	var obj map[string]any
	if err := json.Unmarshal(text, &obj); err != nil {
		return nil, fmt.Errorf("reading the defaulted object: %w", err)
	}
	kind, _ := obj["kind"].(string)
	path, ok := templates[kind]
	if !ok {
		return nil, fmt.Errorf("finding the pod template: %q has none", kind)
	}
	template := obj
	for _, key := range path {
		template, _ = template[key].(map[string]any)
	}
	if len(path) == 0 {
		return text, nil
	}
	from, _ := template["metadata"].(map[string]any)
	meta := map[string]any{}
	for _, key := range []string{"labels", "annotations", "finalizers"} {
		if v, ok := from[key]; ok {
			meta[key] = v
		}
	}
	outer, _ := obj["metadata"].(map[string]any)
	if ns, ok := outer["namespace"]; ok {
		meta["namespace"] = ns
	}
	return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]})
}
