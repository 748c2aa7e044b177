// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// admitSet is a namespace with what changes the pods in it.
type admitSet struct {
	namespace string
	objects   []map[string]any
}

// admitMaker makes up namespaces, policies and pods.
type admitMaker struct {
	*rand.Rand

	n, pods int
	version string // of MutatingAdmissionPolicy
}

// mutatingAPI is the apiVersion of MutatingAdmissionPolicies.
func (m *admitMaker) mutatingAPI() string { return admissionGroup + "/" + m.version }

func (m *admitMaker) maybe(p float64) bool { return m.Float64() < p }

func pick[T any](m *admitMaker, list ...T) T { return list[m.IntN(len(list))] }

func object(apiVersion, kind, namespace, name string, fields map[string]any) map[string]any {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	out := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		out[key] = value
	}
	return out
}

// classes are the PriorityClasses and RuntimeClasses of all namespaces.
func classes() []map[string]any {
	runtime := func(name string, fields map[string]any) map[string]any {
		fields["handler"] = "runsc"
		return object("node.k8s.io/v1", "RuntimeClass", "", name, fields)
	}
	return []map[string]any{
		object("scheduling.k8s.io/v1", "PriorityClass", "", "high", map[string]any{"value": 1000}),
		object("scheduling.k8s.io/v1", "PriorityClass", "", "calm", map[string]any{"value": 7, "preemptionPolicy": "Never", "globalDefault": true}),
		runtime("plain", map[string]any{}),
		runtime("heavy", map[string]any{"overhead": map[string]any{"podFixed": map[string]any{"cpu": "250m", "memory": "100Mi"}}}),
		runtime("placed", map[string]any{
			"overhead": map[string]any{"podFixed": map[string]any{"cpu": "0.25"}},
			"scheduling": map[string]any{"nodeSelector": map[string]any{"sandbox": "yes"}, "tolerations": []any{
				map[string]any{"key": "sandbox", "operator": "Exists", "effect": "NoSchedule"},
				map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
			}},
		}),
	}
}

// set makes up a namespace with its objects.
func (m *admitMaker) set() admitSet {
	m.n++
	s := admitSet{namespace: fmt.Sprintf("n%d", m.n)}
	ns := object("v1", "Namespace", "", s.namespace, nil)
	ns["metadata"].(map[string]any)["labels"] = map[string]any{"team": pick(m, "red", "blue"), "istio-injection": pick(m, "enabled", "disabled", "enabled")}
	if m.maybe(0.3) {
		ns["metadata"].(map[string]any)["annotations"] = map[string]any{"scheduler.alpha.kubernetes.io/node-selector": pick(m, "zone=a", "zone=a,disk=ssd")}
	}
	s.objects = append(s.objects, ns)
	for _, name := range []string{"default", "web", "bare"} {
		account := object("v1", "ServiceAccount", s.namespace, name, nil)
		if m.maybe(0.4) {
			account["imagePullSecrets"] = []any{map[string]any{"name": "regcred"}, map[string]any{"name": "other"}}
		}
		if m.maybe(0.3) {
			account["automountServiceAccountToken"] = m.maybe(0.5)
		}
		if m.maybe(0.1) {
			account["metadata"].(map[string]any)["annotations"] = map[string]any{"kubernetes.io/enforce-mountable-secrets": "true"}
			account["secrets"] = []any{map[string]any{"name": "mine"}}
		}
		s.objects = append(s.objects, account)
	}
	for i := range m.IntN(3) {
		s.objects = append(s.objects, m.limitRange(s.namespace, fmt.Sprintf("limits-%d", i)))
	}
	s.objects = append(s.objects, object("v1", "ConfigMap", s.namespace, "params", map[string]any{"data": map[string]any{"tier": pick(m, "gold", "tin"), "image": "example.com/extra:1"}}))
	if m.maybe(0.5) {
		more := object("v1", "ConfigMap", s.namespace, "params-more", map[string]any{"data": map[string]any{"tier": "iron", "image": "example.com/extra:2"}})
		more["metadata"].(map[string]any)["labels"] = map[string]any{"role": "params"}
		s.objects = append(s.objects, more)
	}
	for i := range 1 + m.IntN(4) {
		s.objects = append(s.objects, m.policy(s.namespace, fmt.Sprintf("%s-p%d", s.namespace, i))...)
	}
	return s
}

func (m *admitMaker) limitRange(namespace, name string) map[string]any {
	item := map[string]any{"type": "Container"}
	if m.maybe(0.7) {
		item["default"] = map[string]any{"cpu": pick(m, "500m", "1"), "memory": "256Mi"}
	}
	if m.maybe(0.6) {
		item["defaultRequest"] = map[string]any{"cpu": "50m"}
	}
	if m.maybe(0.3) {
		item["max"] = map[string]any{"cpu": "2"}
	}
	if m.maybe(0.2) {
		item["min"] = map[string]any{"cpu": "10m"}
	}
	if m.maybe(0.1) {
		item["maxLimitRequestRatio"] = map[string]any{"cpu": "20"}
	}
	limits := []any{item}
	if m.maybe(0.2) {
		limits = append(limits, map[string]any{"type": "Pod", "max": map[string]any{"memory": "1Gi"}})
	}
	return object("v1", "LimitRange", namespace, name, map[string]any{"spec": map[string]any{"limits": limits}})
}

const (
	jsonPatch = "JSONPatch"
	apply     = "ApplyConfiguration"
)

// mistakes are mutations that the API server refuses, or rejects many pods for.
var mistakes = []struct{ kind, expression string }{
	{apply, `Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "extra", args: ["a"]}]}}`},
	{apply, `Object{spec: Object.spec{tolerations: [Object.spec.tolerations{key: "a", operator: "Exists"}]}}`},
	{apply, `Object{spec: Object.spec.wrong{terminationGracePeriodSeconds: 40}}`},
	{apply, `Object{spec: Object.spec{unknownField: 1}}`},
	{apply, `Object{spec: Object.spec{terminationGracePeriodSeconds: "text"}}`},
	{jsonPatch, `has(object.metadata.annotations) ? [JSONPatch{op: "remove", path: "/metadata/annotations/note"}] : []`},
	{jsonPatch, `[JSONPatch{op: "replace", path: "/spec/priorityClassName", value: "high"}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/priorityClassName", value: "high"}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/noSuchField", value: 1}]`},
	{jsonPatch, `[JSONPatch{op: "remove", path: "/spec/noSuchField"}]`},
	{jsonPatch, `object.spec.containers[5].name == "x" ? [] : [JSONPatch{op: "remove", path: "/spec"}]`},
}

// mutations are made up of what people write.
var mutations = []struct{ kind, expression string }{
	{apply, `Object{metadata: Object.metadata{labels: {"team": namespaceObject.metadata.labels["team"]}}}`},
	{apply, `Object{metadata: Object.metadata{annotations: {"user": request.userInfo.username}}}`},
	{apply, `Object{metadata: Object.metadata{labels: {"count": string(size(object.spec.containers))}}}`},
	{apply, `Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, env: [Object.spec.containers.env{name: "EXTRA", value: c.image}]})}}`},
	{apply, `Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "extra", image: "example.com/extra:1", restartPolicy: "Always"}]}}`},
	{apply, `Object{spec: Object.spec{terminationGracePeriodSeconds: 40}}`},
	{apply, `Object{spec: Object.spec{nodeSelector: {"zone": "a"}}}`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "added", image: "example.com/added"}}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/patched"), value: "yes"}]`},
	{jsonPatch, `[JSONPatch{op: "test", path: "/spec/restartPolicy", value: "Never"}, JSONPatch{op: "replace", path: "/spec/dnsPolicy", value: "Default"}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/runtimeClassName", value: "placed"}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/containers/0/resources", value: {"requests": {"cpu": "1500m"}}}]`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "data", emptyDir: Object.spec.volumes.emptyDir{}}}]`},
}

// ofParams are mutations that read parameters.
var ofParams = []struct{ kind, expression string }{
	{apply, `Object{metadata: Object.metadata{labels: {"tier": params.data.tier}}}`},
	{jsonPatch, `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: params.data.tier, image: params.data.image}}]`},
	{apply, `Object{metadata: Object.metadata{annotations: {"tier": params.data.tier + "-" + object.metadata.namespace}}}`},
}

// policy makes up a policy with its bindings.
func (m *admitMaker) policy(namespace, name string) []map[string]any {
	spec := map[string]any{
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{pick(m, "v1", "*")}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
		}}},
		"reinvocationPolicy": pick(m, "Never", "IfNeeded"),
	}
	if m.maybe(0.5) {
		spec["failurePolicy"] = pick(m, "Ignore", "Fail")
	}
	if m.maybe(0.3) {
		spec["matchConstraints"].(map[string]any)["objectSelector"] = map[string]any{"matchLabels": map[string]any{"app": pick(m, "a", "b")}}
	}
	if m.maybe(0.3) {
		spec["matchConditions"] = []any{map[string]any{"name": "once", "expression": pick(m,
			`!object.spec.containers.exists(c, c.name == "added")`, `object.metadata.labels["app"] == "a"`,
			`!has(object.spec.priority) || object.spec.priority < 100`)}}
		if m.maybe(0.05) {
			spec["matchConditions"] = []any{map[string]any{"name": "fails", "expression": `object.spec.noSuchField == 1`}}
		}
	}
	spec["variables"] = []any{map[string]any{"name": "busy", "expression": "size(object.spec.containers) > 1"}}
	from := mutations
	withParams := m.maybe(0.3)
	if withParams {
		from = ofParams
		spec["paramKind"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	}
	var list []any
	for range 1 + m.IntN(2) {
		one := pick(m, from...)
		if m.maybe(0.08) {
			one = pick(m, mistakes...)
		}
		field := strings.ToLower(one.kind[:1]) + one.kind[1:]
		if one.kind == jsonPatch {
			field = "jsonPatch"
		}
		list = append(list, map[string]any{"patchType": one.kind, field: map[string]any{"expression": one.expression}})
	}
	spec["mutations"] = list
	out := []map[string]any{object(m.mutatingAPI(), "MutatingAdmissionPolicy", "", name, map[string]any{"spec": spec})}
	binding := map[string]any{"policyName": name, "matchResources": map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": namespace}},
	}}
	if withParams {
		ref := map[string]any{"parameterNotFoundAction": pick(m, "Allow", "Allow", "Deny")}
		if m.maybe(0.6) {
			ref["name"] = pick(m, "params", "params", "params", "params-missing")
		} else {
			ref["selector"] = map[string]any{"matchLabels": map[string]any{"role": "params"}}
		}
		binding["paramRef"] = ref
	}
	return append(out, object(m.mutatingAPI(), "MutatingAdmissionPolicyBinding", "", name, map[string]any{"spec": binding}))
}

// pod makes up a pod.
func (m *admitMaker) pod(namespace, name string) map[string]any {
	labels := map[string]any{"app": pick(m, "a", "b")}
	if m.maybe(0.1) {
		labels["sidecar.istio.io/inject"] = pick(m, "true", "false")
	}
	metadata := map[string]any{"labels": labels, "namespace": namespace, "name": name}
	if m.maybe(0.3) {
		delete(metadata, "name")
		metadata["generateName"] = name + "-"
	}
	if m.maybe(0.3) {
		metadata["annotations"] = pick(m, map[string]any{"note": "1"}, map[string]any{"note": "1", "sidecar.istio.io/proxyCPU": "20m"})
	}
	var containers []any
	for i := range 1 + m.IntN(2) {
		containers = append(containers, m.container(fmt.Sprintf("c%d", i)))
	}
	spec := map[string]any{"containers": containers}
	set := func(p float64, key string, values ...any) {
		if m.maybe(p) {
			spec[key] = pick(m, values...)
		}
	}
	set(0.4, "serviceAccountName", "web", "bare", "default")
	set(0.02, "serviceAccountName", "none")
	set(0.2, "automountServiceAccountToken", true, false)
	set(0.3, "priorityClassName", "high", "calm", "system-node-critical")
	set(0.02, "priorityClassName", "missing")
	set(0.03, "priority", int64(1000), int64(7))
	set(0.03, "preemptionPolicy", "Never", "PreemptLowerPriority")
	set(0.3, "runtimeClassName", "plain", "heavy", "placed")
	set(0.02, "runtimeClassName", "missing")
	set(0.02, "overhead", map[string]any{"cpu": "250m", "memory": "100Mi"}, map[string]any{"cpu": "1"})
	set(0.2, "nodeSelector", map[string]any{"sandbox": "yes"}, map[string]any{"zone": "a"}, map[string]any{"disk": "ssd"})
	set(0.04, "nodeSelector", map[string]any{"sandbox": "no"}, map[string]any{"zone": "b"})
	set(0.2, "imagePullSecrets", []any{map[string]any{"name": "own"}}, []any{})
	set(0.2, "restartPolicy", "Never", "Always")
	set(0.3, "tolerations", []any{map[string]any{"operator": "Exists"}}, []any{map[string]any{"key": "sandbox", "effect": "NoSchedule", "value": "x"}},
		[]any{map[string]any{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": int64(30)}})
	if m.maybe(0.3) {
		spec["initContainers"] = []any{m.container("init")}
	}
	if m.maybe(0.2) {
		spec["topologySpreadConstraints"] = []any{map[string]any{
			"maxSkew": int64(1), "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": []any{"app"},
			"labelSelector": map[string]any{"matchLabels": map[string]any{"x": "y"}},
		}}
	}
	return map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
}

func (m *admitMaker) container(name string) map[string]any {
	c := map[string]any{"name": name, "image": pick(m, "example.com/a:1", "example.com/a", "nginx:latest")}
	switch m.IntN(5) {
	case 0:
		c["resources"] = map[string]any{"requests": map[string]any{"cpu": pick(m, "200m", "100m", "0.1", "3")}}
	case 1:
		c["resources"] = map[string]any{"limits": map[string]any{"cpu": pick(m, "1", "4"), "memory": "1Gi"}}
	}
	if m.maybe(0.2) {
		c["env"] = []any{map[string]any{"name": "EXTRA", "value": "own"}}
	}
	if m.maybe(0.1) {
		c["env"] = []any{map[string]any{"name": "S", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": pick(m, "mine", "other"), "key": "k"}}}}
	}
	return c
}
