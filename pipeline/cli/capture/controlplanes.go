// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/pipeline/verify/live"
)

// Reduced lists what a capture keeps a part of: see Reduce.
func Reduced() []live.Resource {
	return []live.Resource{
		{GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}, Kind: "Deployment", Cluster: true},
		{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, Kind: "Node", Cluster: true},
	}
}

// controlPlaneContainer is the container of istiod.
const controlPlaneContainer = "discovery"

// Reduce returns of Deployments and Nodes what prerig import reads: the image and variables of Istio's control planes, and
// the oldest version of the kubelets, as one Node. Other Deployments, and changes of Nodes, do not count.
func Reduce(objects []map[string]any) (out []map[string]any) {
	var oldest *version.Version
	var kubelet string
	for _, o := range objects {
		if o["kind"] == "Deployment" {
			if reduced := reduceControlPlane(o); reduced != nil {
				out = append(out, reduced)
			}
			continue
		}
		text := textOf(podmap.MapAt(o, "status", "nodeInfo")["kubeletVersion"])
		if v, err := version.ParseGeneric(text); err == nil && (oldest == nil || v.LessThan(oldest)) {
			oldest, kubelet = v, text
		}
	}
	if oldest != nil {
		out = append(out, map[string]any{
			"apiVersion": "v1", "kind": "Node", "metadata": map[string]any{"name": "oldest-kubelet"},
			"status": map[string]any{"nodeInfo": map[string]any{"kubeletVersion": kubelet}},
		})
	}
	return out
}

// reduceControlPlane returns the Deployment of a control plane with its container's image and variables; nil for another.
func reduceControlPlane(o map[string]any) map[string]any {
	list, _ := podmap.MapAt(o, "spec", "template", "spec")["containers"].([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		if c["name"] != controlPlaneContainer {
			continue
		}
		kept := map[string]any{}
		for _, key := range []string{"name", "image", "env"} {
			if v, ok := c[key]; ok {
				kept[key] = v
			}
		}
		return map[string]any{
			"apiVersion": o["apiVersion"], "kind": o["kind"], "metadata": o["metadata"],
			"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"containers": []any{kept}}}},
		}
	}
	return nil
}
