// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/workload"
)

// Usage is what containers ask for together: processors in thousandths, memory in bytes.
type Usage struct {
	CPURequests    int64 `json:"cpuRequestsMilli"`
	CPULimits      int64 `json:"cpuLimitsMilli"`
	MemoryRequests int64 `json:"memoryRequestsBytes"`
	MemoryLimits   int64 `json:"memoryLimitsBytes"`
	// Pods is the number of pods. Workloads without a number of replicas, and each node of a DaemonSet, count as one.
	Pods int64 `json:"pods"`
}

// waypointUsage is what one pod of a waypoint requests by default. Source: global.waypoint.resources in values.yaml of the chart istiod 1.31.
var waypointUsage = Usage{CPURequests: 100, CPULimits: 2000, MemoryRequests: 128 << 20, MemoryLimits: 1 << 30, Pods: 1}

func (u *Usage) add(resources map[string]any, pods int64) {
	amount := func(kind, name string, milli bool) int64 {
		var q resource.Quantity
		var err error
		switch v := podmap.MapAt(resources, kind)[name].(type) {
		case string:
			q, err = quantity.Parse(v)
		case int64:
			q = *resource.NewQuantity(v, resource.DecimalSI)
		case int:
			q = *resource.NewQuantity(int64(v), resource.DecimalSI)
		}
		if err != nil {
			return 0
		}
		if milli {
			return q.MilliValue() * pods
		}
		return q.Value() * pods
	}
	u.CPURequests += amount("requests", "cpu", true)
	u.CPULimits += amount("limits", "cpu", true)
	u.MemoryRequests += amount("requests", "memory", false)
	u.MemoryLimits += amount("limits", "memory", false)
	u.Pods += pods
}

// SidecarUsage returns what the sidecars in documents ask for, by namespace.
func SidecarUsage(docs []*manifest.Document, defaultNamespace string) (map[string]Usage, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	of := map[[2]string]Usage{} // by the namespace and the object, which several files may hold: the one with the most pods counts
	for _, d := range docs {
		items, isList, err := d.Items()
		if err != nil || !isList {
			items = []*manifest.Document{d}
		}
		for _, item := range items {
			value, err := item.Object()
			if err != nil || value == nil {
				continue // what cannot be read was reported before
			}
			meta := podmap.MapAt(value, "metadata")
			key := [2]string{cmp.Or(text(meta["namespace"]), defaultNamespace), text(value["kind"]) + "/" + text(meta["name"])}
			templates, _ := registry.Templates(value)
			var u Usage
			for _, template := range templates {
				u.addPod(template.Pod, podsOf(value))
			}
			if u.Pods > of[key].Pods {
				of[key] = u
			}
		}
	}
	out := map[string]Usage{}
	for key, u := range of {
		out[key[0]] = out[key[0]].plus(u)
	}
	return out, nil
}

func (u *Usage) addPod(pod map[string]any, pods int64) {
	if !hasSidecar(pod) {
		return
	}
	spec := podmap.MapAt(pod, "spec")
	for _, c := range append(podmap.Maps(spec["containers"]), podmap.Maps(spec["initContainers"])...) {
		if text(c["name"]) == "istio-proxy" {
			u.add(podmap.MapAt(c, "resources"), pods)
		}
	}
}

func podsOf(value map[string]any) int64 {
	if n := lint.Replicas(value); n != nil {
		return *n
	}
	return 1
}
