// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"cmp"

	"github.com/prerig/prerig/fn/quantity"
	"github.com/prerig/prerig/fn/workload"
)

// container is one of a pod template.
type container struct {
	// at distinguishes it from others of the object: the field of the template, and the name.
	at       string
	image    string
	injected bool
	// runs reports whether it runs as long as the pod: it is no init container, or a native sidecar.
	runs             bool
	requests, limits amounts
}

// amounts are processor cores and bytes of memory.
type amounts struct{ cpu, memory float64 }

func (a *amounts) addScaledAmounts(b amounts, times float64) {
	a.cpu += b.cpu * times
	a.memory += b.memory * times
}

// containersOfObject returns the containers of an object, none where it has no pod.
func containersOfObject(registry *workload.Registry, s *side) []container {
	if s == nil {
		return nil
	}
	templates, err := registry.Templates(s.value)
	if err != nil {
		return nil
	}
	own := map[string]bool{}
	if s.bare != nil {
		bare, _ := registry.Templates(s.bare)
		for _, t := range bare {
			for _, c := range templateContainers(t) {
				own[c.at] = true
			}
		}
	}
	var out []container
	for _, t := range templates {
		for _, c := range templateContainers(t) {
			c.injected = !own[c.at]
			out = append(out, c)
		}
	}
	return out
}

func templateContainers(t workload.Template) (out []container) {
	spec, _ := t.Pod["spec"].(map[string]any)
	for _, list := range []string{"initContainers", "containers"} {
		elements, _ := spec[list].([]any)
		for _, element := range elements {
			value, _ := element.(map[string]any)
			name, _ := value["name"].(string)
			image, _ := value["image"].(string)
			resources, _ := value["resources"].(map[string]any)
			c := container{at: t.Field + "\x00" + name, image: image, requests: amountsOf(resources["requests"]),
				limits: amountsOf(resources["limits"])}
			// What has a limit and no request requests the limit.
			c.requests.cpu, c.requests.memory = cmp.Or(c.requests.cpu, c.limits.cpu), cmp.Or(c.requests.memory,
				c.limits.memory)
			c.runs = list == "containers" || value["restartPolicy"] == "Always"
			out = append(out, c)
		}
	}
	return out
}

func amountsOf(value any) amounts {
	values, _ := value.(map[string]any)
	return amounts{cpu: quantityOf(values["cpu"]), memory: quantityOf(values["memory"])}
}

// quantityOf is 0 for what is none.
func quantityOf(value any) float64 {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int:
		return max(0, float64(v))
	case int64:
		return max(0, float64(v))
	case float64:
		return max(0, v)
	default:
		return 0
	}
	if len(text) > 64 {
		return 0
	}
	q, err := quantity.Parse(text)
	if err != nil {
		return 0
	}
	return max(0, q.AsApproximateFloat64())
}

// scale is the number of pods of an object, as far as manifests specify it.
type scale struct {
	pods float64
	// perNode reports whether one pod runs on each matching node; then pods is 1.
	perNode bool
	// scaled reports whether an autoscaler decides, unset whether the number is not specified, and onDemand whether
	// they run only at times.
	scaled, unset, onDemand bool
}

// scaleOf returns the number of pods of a workload. least is the minimum of its autoscaler, or nil if it has none.
func scaleOf(s *side, least *float64) scale {
	spec, _ := s.value["spec"].(map[string]any)
	switch s.meta.Kind {
	case "DaemonSet":
		return scale{pods: 1, perNode: true}
	case "Pod":
		return scale{pods: 1}
	case "CronJob":
		template, _ := spec["jobTemplate"].(map[string]any)
		spec, _ = template["spec"].(map[string]any)
		fallthrough
	case "Job":
		pods, ok := countOf(spec["parallelism"])
		if !ok {
			pods = 1
		}
		return scale{pods: pods, onDemand: true}
	}
	if least != nil {
		return scale{pods: *least, scaled: true}
	}
	if pods, ok := countOf(spec["replicas"]); ok {
		return scale{pods: pods}
	}
	return scale{pods: 1, unset: true}
}

func countOf(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return max(0, float64(v)), true
	case int64:
		return max(0, float64(v)), true
	case float64:
		return max(0, v), true
	}
	return 0, false
}

// minimumAutoscaledReplicas returns the least numbers of pods that autoscalers may choose on one side, by what they
// scale.
func (r *review) minimumAutoscaledReplicas(pick func(*object) *side) map[string]float64 {
	out := map[string]float64{}
	for _, list := range [][]*object{r.objects, r.unchanged} {
		for _, o := range list {
			s := pick(o)
			if s == nil || s.meta.Kind != "HorizontalPodAutoscaler" && s.meta.Kind != "ScaledObject" {
				continue
			}
			spec, _ := s.value["spec"].(map[string]any)
			target, _ := spec["scaleTargetRef"].(map[string]any)
			name, _ := target["name"].(string)
			kind, _ := target["kind"].(string)
			least, ok := countOf(spec["minReplicas"])
			if s.meta.Kind == "ScaledObject" {
				kind = cmp.Or(kind, "Deployment")
				least, ok = countOf(spec["minReplicaCount"])
			}
			if !ok || least < 1 {
				least = 1
			}
			out[scaleKey(o.pipeline, s.meta.Namespace, kind, name)] = least
		}
	}
	return out
}

func scaleKey(pipeline, namespace, kind, name string) string {
	return pipeline + "\x00" + namespace + "\x00" + kind + "\x00" + name
}
