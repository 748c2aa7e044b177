// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// exception is a difference that stays, with its reason.
type exception struct {
	name, reason string
	// explains reports whether a difference of the case is this one.
	explains func(k *Case, d Difference) bool
}

// exceptions are all that a difference alone shows; afterRemoval is one more. Each is narrow, and its cases are
// counted.
var exceptions = []exception{
	{
		"labels of controllers", "a template of the user's prints all labels of the pod, and the controller has added its own, whose hashes and ids exist in the cluster only",
		func(k *Case, d Difference) bool {
			return strings.HasPrefix(k.Installation, "helpers") &&
				strings.HasPrefix(d.Place, "metadata.annotations.") && k.withoutControllers(d.Cluster) == d.Prerig
		},
	},
	{
		"names of a StatefulSet's pods", "a template of the user's prints the pod's name, and a StatefulSet has one for each of its pods",
		func(k *Case, d Difference) bool {
			meta, _ := k.Webhook["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			return k.Workload["kind"] == "StatefulSet" && d.Place == "metadata.annotations.h" &&
				d.Cluster == string(toJSON(name)) && d.Prerig == `"no-name"`
		},
	},
	{
		"requests of the whole pod", "the API server fills in spec.resources.requests from what the pod has before the webhook adds the proxy; Prerig writes no defaults into the user's part, so they are filled in from what it has afterwards",
		func(k *Case, d Difference) bool {
			name, ok := strings.CutPrefix(d.Place, "spec.resources.requests.")
			spec, _ := templateOf(k.Workload)["spec"].(map[string]any)
			resources, _ := spec["resources"].(map[string]any)
			requests, _ := resources["requests"].(map[string]any)
			return ok && resources != nil && requests[name] == nil
		},
	},
	{
		"records in bare Pods", "the pod has a sidecar.istio.io/status that no injection wrote, or a template deletes a container of it; Prerig records the original of a bare Pod in an annotation, where a second injection would not be the first without it",
		func(k *Case, d Difference) bool {
			_, there := statusAnnotation(k.Webhook)
			return (there || k.losesContainer()) && k.Workload["kind"] == "Pod" &&
				d.Place == "metadata.annotations.prerig.dev/original" && d.Cluster == ""
		},
	},
	{
		"images in bare Pods", "the image of the pod's own istio-proxy was replaced by the template's; Prerig records it in an annotation, which of a bare Pod is one of the pod",
		func(k *Case, d Difference) bool {
			return k.Workload["kind"] == "Pod" && d.Place == "metadata.annotations.prerig.dev/undo" &&
				d.Cluster == "" && strings.HasPrefix(d.Prerig, `"{\"(images)\":{`)
		},
	},
	{
		"nulls in bare Pods", "the pod's own istio-proxy has a field that is null; Prerig notes it in proxy.istio.io/overrides of a bare Pod, to have it when the injection is taken out, and the webhook reads it as no field",
		func(k *Case, d Difference) bool {
			return k.Workload["kind"] == "Pod" && d.Place == "metadata.annotations."+overridesAnnotation &&
				canonicalOverrides(d.Cluster) == withoutNulls(d.Prerig)
		},
	},
}

// losesContainer reports whether the webhook's templates delete a container of the pod.
func (k *Case) losesContainer() bool {
	before, _ := k.Webhook["spec"].(map[string]any)
	after, _ := k.Cluster["spec"].(map[string]any)
	var now []string
	for _, key := range []string{"initContainers", "containers"} {
		now = append(now, podmap.Names(anyList(after[key]))...)
	}
	for _, key := range []string{"initContainers", "containers"} {
		if slices.ContainsFunc(podmap.Names(anyList(before[key])), func(name string) bool { return !slices.Contains(now, name) }) {
			return true
		}
	}
	return false
}

// explainingExceptions returns the exceptions that explain all differences of a case, or none.
func (k *Case) explainingExceptions() []string {
	if len(k.Differences) == 0 {
		return nil
	}
	var out []string
	seen := map[string]bool{}
	for _, d := range k.Differences {
		name := k.exceptionOf(d)
		if name == "" {
			return nil
		}
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

func (k *Case) exceptionOf(d Difference) string {
	for _, e := range exceptions {
		if e.explains(k, d) {
			return e.name
		}
	}
	return ""
}

// withoutControllers removes the labels that the pod's controller has added from a text that contains all labels.
func (k *Case) withoutControllers(text string) string {
	own := podLabels(templateOf(k.Workload))
	for key, value := range podLabels(k.Webhook) {
		if _, ok := own[key]; ok {
			continue
		}
		quoted := string(toJSON(string(toJSON(key)) + ":" + string(toJSON(value))))
		inner := quoted[1 : len(quoted)-1]
		text = strings.ReplaceAll(text, inner+",", "")
		text = strings.ReplaceAll(text, ","+inner, "")
		text = strings.ReplaceAll(text, inner, "")
	}
	return text
}

// overridesAnnotation keeps the user's own containers of the names of Istio's.
const overridesAnnotation = "proxy.istio.io/overrides"

// withoutNulls returns the annotation, as a JSON string, without the fields that are null, and with the 0 that a null
// quantity is.
func withoutNulls(text string) string {
	return editOverrides(text, func(overrides any) any { return dropNulls("", overrides) })
}

// canonicalOverrides returns the annotation with its keys in order.
func canonicalOverrides(text string) string {
	return editOverrides(text, func(overrides any) any { return overrides })
}

// editOverrides changes the JSON that the annotation holds; one that cannot be read stays.
func editOverrides(text string, edit func(any) any) string {
	var annotation string
	var overrides any
	if json.Unmarshal([]byte(text), &annotation) != nil || json.Unmarshal([]byte(annotation), &overrides) != nil {
		return text
	}
	return string(toJSON(string(toJSON(edit(overrides)))))
}

// dropNulls removes the fields that are null from a value, which is that of a field.
func dropNulls(field string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			switch {
			case one != nil:
				v[key] = dropNulls(key, one)
			case field == "requests" || field == "limits":
				v[key] = "0"
			default:
				delete(v, key)
			}
		}
	case []any:
		for i, one := range v {
			v[i] = dropNulls(field, one)
		}
	}
	return value
}

// repeatedVariable is the exception for a container that no list with one entry of each name describes. Prerig reports
// that, as server-side apply would reject the manifest.
var repeatedVariable = exception{
	"variable read between its values", "a variable has several entries, and another reads it in between: a webhook writes all of them into a Pod, and in a manifest server-side apply would reject them, so Prerig reports an error",
	func(*Case, Difference) bool { return false },
}

// isRefusedForRepeatedVariable reports whether Prerig rejects the pod for a variable that the webhook writes several
// times.
func (k *Case) isRefusedForRepeatedVariable() bool {
	name, ok := strings.CutPrefix(k.PrerigRefused, "the variable ")
	name, _, _ = strings.Cut(name, " ")
	if !ok || k.ClusterRefused != "" || !strings.Contains(k.PrerigRefused, "no list with one entry of this name") {
		return false
	}
	spec, _ := k.Cluster["spec"].(map[string]any)
	for _, c := range append(append([]any{}, anyList(spec["containers"])...), anyList(spec["initContainers"])...) {
		container, _ := c.(map[string]any)
		entries := 0
		for _, e := range anyList(container["env"]) {
			if m, _ := e.(map[string]any); m["name"] == name {
				entries++
			}
		}
		if entries > 1 {
			return true
		}
	}
	return false
}

func podLabels(pod map[string]any) map[string]any {
	meta, _ := pod["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels
}

func anyList(v any) []any {
	l, _ := v.([]any)
	return l
}
