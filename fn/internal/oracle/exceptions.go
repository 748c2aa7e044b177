// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

// exception is a difference that stays, with its reason.
type exception struct {
	name, reason string
	// explains reports whether a difference of the case is this one.
	explains func(k *Case, d Difference) bool
}

// exceptions are all of them. Each is narrow, and its cases are counted.
var exceptions = []exception{
	{
		"labels of controllers", "a template of the user's prints all labels of the pod, and the controller has added its own, whose hashes and ids exist in the cluster only",
		func(k *Case, d Difference) bool {
			return strings.HasPrefix(k.Installation, "helpers") && strings.HasPrefix(d.Place, "metadata.annotations.") && k.withoutControllers(d.Cluster) == d.Prerig
		},
	},
	{
		"names of a StatefulSet's pods", "a template of the user's prints the pod's name, and a StatefulSet has one for each of its pods",
		func(k *Case, d Difference) bool {
			meta, _ := k.Webhook["metadata"].(map[string]any)
			name, _ := meta["name"].(string)
			return k.Workload["kind"] == "StatefulSet" && d.Place == "metadata.annotations.h" && d.Cluster == string(toJSON(name)) && d.Prerig == `"no-name"`
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
		"injected before", "sidecar.istio.io/status lists containers, volumes or pull secrets that the pod has: Prerig takes that injection out first, where the webhook keeps what it is given",
		func(k *Case, _ Difference) bool { return injectedBefore(k.Webhook) },
	},
	{
		"injected before lists were written", "sidecar.istio.io/status lists nothing, and the pod's own istio-proxy runs the agent: Prerig takes that for an injection of the first Istio versions and takes it out",
		func(k *Case, _ Difference) bool { return injectedWithoutList(k.Webhook) },
	},
}

// excepted gives the exceptions that explain all differences of a case, or none.
func (k *Case) excepted() []string {
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

// withoutControllers takes the labels that the pod's controller has added out of a text in which all labels are printed.
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

func podLabels(pod map[string]any) map[string]any {
	meta, _ := pod["metadata"].(map[string]any)
	labels, _ := meta["labels"].(map[string]any)
	return labels
}

// InjectedBefore reports whether the status annotation of a workload's pod lists something that the pod has: Prerig takes
// that injection out first, where the webhook keeps what it is given, so the results may differ.
func InjectedBefore(workload map[string]any) bool { return injectedBefore(templateOf(workload)) }

// injectedBefore reports whether the status annotation of the pod lists something that the pod has.
func injectedBefore(pod map[string]any) bool {
	spec, _ := pod["spec"].(map[string]any)
	for field, names := range listed(pod) {
		has, _ := keyed(append([]any{}, anyList(spec[field])...))
		for _, name := range names {
			if text, ok := name.(string); ok && has["["+text+"]"] != nil {
				return true
			}
		}
	}
	return false
}

// injectedWithoutList reports whether there is a status annotation that lists nothing, and a container istio-proxy that
// runs the agent as a proxy.
func injectedWithoutList(pod map[string]any) bool {
	if _, ok := status(pod); !ok || len(listed(pod)) > 0 {
		return false
	}
	spec, _ := pod["spec"].(map[string]any)
	for _, c := range anyList(spec["containers"]) {
		m, _ := c.(map[string]any)
		args, image := anyList(m["args"]), fmt.Sprint(m["image"])
		if m["name"] == "istio-proxy" && (len(args) > 0 && args[0] == "proxy" || strings.HasPrefix(path.Base(image), "proxy")) {
			return true
		}
	}
	return false
}

// status gives the pod's status annotation.
func status(pod map[string]any) (string, bool) {
	meta, _ := pod["metadata"].(map[string]any)
	annotations, _ := meta["annotations"].(map[string]any)
	text, ok := annotations["sidecar.istio.io/status"].(string)
	return text, ok
}

// listed gives what the status annotation lists, by field.
func listed(pod map[string]any) map[string][]any {
	text, _ := status(pod)
	var lists map[string]any
	if json.Unmarshal([]byte(text), &lists) != nil {
		return nil
	}
	out := map[string][]any{}
	for _, field := range []string{"containers", "initContainers", "volumes", "imagePullSecrets"} {
		if names := anyList(lists[field]); len(names) > 0 {
			out[field] = names
		}
	}
	return out
}

func anyList(v any) []any {
	l, _ := v.([]any)
	return l
}
