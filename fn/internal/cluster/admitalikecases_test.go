// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// alikeSet is a few namespaces of which the same is known, or nearly so, with policies for them and workloads in them that are alike in groups.
type alikeSet struct {
	name       string
	namespaces []string
	objects    []map[string]any
	// fields are the numbers of those in which the workloads differ, beside their names.
	fields []int
	// workloads are documents in block style.
	workloads []string
}

// slotReads are expressions that yield a text: of values in which workloads that are alike differ, and of what they have in common.
var slotReads = []string{
	`object.metadata.generateName`,
	`has(object.metadata.name) ? object.metadata.name : "unnamed"`,
	`object.metadata.labels["app"]`,
	`object.metadata.labels[?"tier"].orValue("none")`,
	`object.metadata.?annotations[?"checksum/config"].orValue("none")`,
	`object.metadata.ownerReferences[0].name`,
	`object.metadata.ownerReferences.map(o, o.kind).join("-")`,
	`object.spec.containers[0].image`,
	`object.spec.containers.map(c, c.name).join("-")`,
	`object.spec.containers.filter(c, c.image.endsWith(":1.3")).map(c, c.name).join("-")`,
	`object.spec.?serviceAccountName.orValue("none")`,
	`string(size(object.spec.containers))`,
	`object.spec.containers.exists(c, has(c.env) && c.env.exists(e, e.name == "MODE" && e.?value.orValue("") == "loud")) ? "on" : "off"`,
	`object.spec.containers.exists(c, "--debug" in c.?args.orValue([])) ? "debug" : "plain"`,
	`object.spec.containers.all(c, quantity(string(c.?resources.?requests[?"cpu"].orValue("0"))).isLessThan(quantity("500m"))) ? "small" : "big"`,
	`object.spec.?volumes.orValue([]).exists(v, v.?configMap.?name.orValue("") == "settings-3") ? "third" : "other"`,
	`namespaceObject.metadata.labels["team"]`,
	`namespaceObject.metadata.name`,
	`request.namespace + "-" + request.?name.orValue("")`,
	`request.userInfo.username`,
	`variables.first.image`,
	`variables.named`,
	`variables.every.map(c, c.image).join(",")`,
	`string(variables.busy)`,
	`"constant"`,
}

// slotConditions are true of some workloads that are alike, and not of others.
var slotConditions = []string{
	`object.metadata.labels["app"] == "web-3"`,
	`object.metadata.labels[?"tier"].orValue("none") == "gold"`,
	`object.metadata.generateName.startsWith("web-3-")`,
	`size(object.metadata.ownerReferences[0].kind) > 5`,
	`object.spec.containers.exists(c, c.name == "main-2")`,
	`object.spec.containers.exists_one(c, c.image == "registry.example.com/web:1.3")`,
	`object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.?value.orValue("") == "loud"))`,
	`object.spec.?serviceAccountName.orValue("default") in ["web", "api"]`,
	`namespaceObject.metadata.labels["team"] == "red"`,
	`request.namespace.endsWith("-1")`,
	`size(object.spec.containers) > 1`,
	`has(object.spec.volumes) && object.spec.volumes.exists(v, has(v.configMap))`,
	`object.metadata.labels.exists(k, object.metadata.labels[k] == "web-2")`,
}

// fieldConditions are conditions of the field that change sets by its number.
var fieldConditions = [slotFields]string{
	`object.metadata.labels["app"] in ["web-2", "web-3", "web-4"]`,
	`object.metadata.labels[?"tier"].orValue("none") == "gold"`,
	`object.spec.?serviceAccountName.orValue("none") == "api"`,
	`object.spec.containers.exists(c, c.name in ["main-2", "main-4"])`,
	`object.spec.containers.exists(c, c.name == "added" || c.name.startsWith("aside"))`,
	`object.spec.containers.exists(c, c.image.endsWith(":1.3") || c.image.contains("nginx"))`,
	`object.spec.containers.exists(c, c.?env.orValue([]).exists(e, e.?value.orValue("") in ["on", "loud"]))`,
	`object.spec.containers.exists(c, "--debug" in c.?args.orValue([]))`,
	`object.spec.containers.exists(c, quantity(string(c.?resources.?requests[?"cpu"].orValue("0"))).isGreaterThan(quantity("500m")))`,
	`object.spec.containers.exists(c, string(c.?resources.?requests[?"memory"].orValue("0")) == "2Gi")`,
	`object.spec.?volumes.orValue([]).exists(v, v.?configMap.?name.orValue("") in ["settings-2", "settings-3"])`,
	`object.metadata.?annotations[?"checksum/config"].orValue("none") in ["cafe2", "cafe3", "cafe4"]`,
	`object.metadata.labels[?"sidecar.istio.io/inject"].orValue("none") == "true"`,
}

// condition returns a condition, mostly of one of the fields in which workloads of the set differ.
func (m *admitMaker) condition(s *alikeSet) string {
	if m.maybe(0.7) {
		return fieldConditions[pick(m, s.fields...)]
	}
	return pick(m, slotConditions...)
}

// slotVariables are variables of the policies.
var slotVariables = []any{
	map[string]any{"name": "first", "expression": `object.spec.containers[0]`},
	map[string]any{"name": "every", "expression": `object.spec.containers`},
	map[string]any{"name": "named", "expression": `variables.first.name + "-" + object.metadata.labels["app"]`},
	map[string]any{"name": "busy", "expression": `size(variables.every) > 1`},
}

// alike makes up namespaces with policies, and workloads in them.
func (m *admitMaker) alike(name string, workloads int) *alikeSet {
	s := &alikeSet{name: name, fields: []int{m.IntN(slotFields), m.IntN(slotFields)}}
	team, limits := pick(m, "red", "blue"), m.maybe(0.5)
	limit := m.limitRange("", "limits")
	for i := range 3 {
		namespace := fmt.Sprintf("%s-%d", name, i)
		s.namespaces = append(s.namespaces, namespace)
		ns := object("v1", "Namespace", "", namespace, nil)
		labels := map[string]any{"set": name, "team": team, "istio-injection": "enabled"}
		ns["metadata"].(map[string]any)["labels"] = labels
		if m.maybe(0.2) {
			labels["team"] = "green"
		}
		s.objects = append(s.objects, ns)
		for _, account := range []string{"default", "web", "api"} {
			one := object("v1", "ServiceAccount", namespace, account, nil)
			if m.maybe(0.2) {
				one["imagePullSecrets"] = []any{map[string]any{"name": "regcred"}}
			}
			s.objects = append(s.objects, one)
		}
		if limits {
			s.objects = append(s.objects, object("v1", "LimitRange", namespace, "limits", map[string]any{"spec": limit["spec"]}))
		}
		s.objects = append(s.objects, object("v1", "ConfigMap", namespace, "params", map[string]any{"data": map[string]any{"tier": pick(m, "gold", "tin", "gold")}}))
	}
	if isReadForCertain(name) {
		s.fields = []int{0}
		s.objects = append(s.objects, m.boundPolicy(s, name+"-p", apply, `Object{metadata: Object.metadata{labels: {"drawn": `+fieldConditions[0]+` ? "a" : "b"}}}`)...)
	} else {
		for i := range pick(m, 0, 1, 1, 1, 2, 3) {
			s.objects = append(s.objects, m.slotPolicy(s, fmt.Sprintf("%s-p%d", name, i))...)
		}
		for i := range m.IntN(2) {
			s.objects = append(s.objects, m.slotValidation(s, fmt.Sprintf("%s-v%d", name, i))...)
		}
	}
	for len(s.workloads) < workloads {
		s.workloads = append(s.workloads, m.copies(s, min(12, workloads-len(s.workloads)))...)
	}
	return s
}

// isReadForCertain reports whether a set is the one in which a policy reads what Deployments that are alike have differently.
func isReadForCertain(set string) bool { return strings.HasSuffix(set, "-0") }

// slotPolicy makes up a MutatingAdmissionPolicy with its binding.
func (m *admitMaker) slotPolicy(s *alikeSet, name string) []map[string]any {
	read := pick(m, pick(m, slotReads...), `"constant"`)
	annotation := `"example.com/` + name + `"`
	one := pick(m, []struct{ kind, expression string }{
		{apply, `Object{metadata: Object.metadata{annotations: {` + annotation + `: ` + read + `}}}`},
		{apply, `Object{metadata: Object.metadata{labels: {"drawn": ` + m.condition(s) + ` ? "gold" : "tin"}}}`},
		{apply, `Object{spec: Object.spec{containers: [Object.spec.containers{name: object.spec.containers[0].name, env: [Object.spec.containers.env{name: "DRAWN", value: ` + read + `}]}]}}`},
		{apply, `Object{spec: Object.spec{initContainers: [Object.spec.initContainers{name: "main-2", image: "example.com/extra:1", restartPolicy: "Always"}]}}`},
		{apply, `Object{spec: Object.spec{containers: [Object.spec.containers{name: "main-2", image: "example.com/other:1", env: [Object.spec.containers.env{name: "SET", value: "yes"}]}]}}`},
		{apply, `Object{spec: Object.spec{containers: object.spec.containers.map(c, Object.spec.containers{name: c.name, imagePullPolicy: "Always"})}}`},
		{jsonPatch, `[JSONPatch{op: "add", path: "/metadata/labels/" + jsonpatch.escapeKey("example.com/drawn"), value: (` + m.condition(s) + `) ? "a" : "b"}]`},
		{jsonPatch, `(` + m.condition(s) + `) ? [JSONPatch{op: "add", path: "/spec/containers/0/resources", value: {"requests": {"cpu": "1500m"}}}] : []`},
		{jsonPatch, `[JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{name: "added", image: object.spec.containers[0].image}}]`},
		{jsonPatch, `[JSONPatch{op: "test", path: "/metadata/labels/app", value: "web-3"}, JSONPatch{op: "replace", path: "/spec/dnsPolicy", value: "Default"}]`},
		{jsonPatch, `[JSONPatch{op: "copy", from: "/metadata/labels/app", path: "/metadata/labels/copied"}]`},
		{jsonPatch, `[JSONPatch{op: "replace", path: "/spec/containers/0/image", value: "mirror.example.com/" + object.spec.containers[0].image}]`},
	}...)
	out := m.boundPolicy(s, name, one.kind, one.expression)
	spec, binding := out[0]["spec"].(map[string]any), out[1]["spec"].(map[string]any)
	if m.maybe(0.5) {
		spec["matchConditions"] = []any{map[string]any{"name": "some", "expression": m.condition(s)}}
	}
	binding["matchResources"] = m.slotResources(s)
	m.addParams(spec, binding, s, `params.data.tier == object.metadata.labels[?"tier"].orValue("gold")`)
	addVariables(spec)
	return out
}

// boundPolicy returns a MutatingAdmissionPolicy with its binding to the namespaces of a set.
func (m *admitMaker) boundPolicy(s *alikeSet, name, kind, expression string) []map[string]any {
	field := strings.ToLower(kind[:1]) + kind[1:]
	if kind == jsonPatch {
		field = "jsonPatch"
	}
	spec := m.slotSpec()
	spec["reinvocationPolicy"] = pick(m, "Never", "IfNeeded")
	spec["mutations"] = []any{map[string]any{"patchType": kind, field: map[string]any{"expression": expression}}}
	binding := map[string]any{"policyName": name, "matchResources": map[string]any{"namespaceSelector": map[string]any{"matchLabels": map[string]any{"set": s.name}}}}
	return []map[string]any{
		object(m.mutatingAPI(), "MutatingAdmissionPolicy", "", name, map[string]any{"spec": spec}),
		object(m.mutatingAPI(), "MutatingAdmissionPolicyBinding", "", name, map[string]any{"spec": binding}),
	}
}

// slotSpec makes up what policies of both kinds have.
func (m *admitMaker) slotSpec() map[string]any {
	return map[string]any{
		"failurePolicy": pick(m, "Ignore", "Fail"),
		"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
			"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"pods"},
		}}},
	}
}

// slotResources makes up what a binding matches in the namespaces of a set.
func (m *admitMaker) slotResources(s *alikeSet) map[string]any {
	namespaces := map[string]any{"matchLabels": map[string]any{"set": s.name}}
	if m.maybe(0.1) {
		namespaces["matchExpressions"] = []any{map[string]any{"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": []any{s.namespaces[0]}}}
	}
	out := map[string]any{"namespaceSelector": namespaces}
	if m.maybe(0.25) {
		out["objectSelector"] = pick(m, map[string]any{"matchLabels": map[string]any{"tier": "gold"}},
			map[string]any{"matchLabels": map[string]any{"drawn": "gold"}},
			map[string]any{"matchExpressions": []any{map[string]any{"key": "app", "operator": "In", "values": []any{"web-2", "web-3", "web-5"}}}},
			map[string]any{"matchExpressions": []any{map[string]any{"key": "service.istio.io/canonical-name", "operator": "NotIn", "values": []any{"web-2", "web-4"}}}},
			map[string]any{"matchExpressions": []any{map[string]any{"key": "tier", "operator": "Exists"}}})
	}
	return out
}

// addParams has some policies read parameters: those of each namespace, or of one of them.
func (m *admitMaker) addParams(spec, binding map[string]any, s *alikeSet, condition string) {
	if !m.maybe(0.25) {
		return
	}
	spec["paramKind"] = map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}
	ref := map[string]any{"name": "params", "parameterNotFoundAction": "Allow"}
	if m.maybe(0.5) {
		ref["namespace"] = s.namespaces[0]
	}
	binding["paramRef"] = ref
	spec["matchConditions"] = []any{map[string]any{"name": "tier", "expression": pick(m, condition, `params.data.tier == "gold"`)}}
}

// addVariables adds the variables to a policy that uses any.
func addVariables(spec map[string]any) {
	if strings.Contains(fmt.Sprint(spec), "variables.") {
		spec["variables"] = slotVariables
	}
}

// slotValidation makes up a ValidatingAdmissionPolicy, which rejects some of the pods with a message of their values.
func (m *admitMaker) slotValidation(s *alikeSet, name string) []map[string]any {
	spec := m.slotSpec()
	if m.maybe(0.5) {
		spec["matchConditions"] = []any{map[string]any{"name": "some", "expression": m.condition(s)}}
	}
	validation := map[string]any{"expression": "!(" + m.condition(s) + ")", "message": "no such pods"}
	if m.maybe(0.7) {
		validation["messageExpression"] = `"refused: " + ` + "(" + pick(m, slotReads...) + ")"
	}
	spec["validations"] = []any{validation}
	binding := map[string]any{"policyName": name, "matchResources": m.slotResources(s), "validationActions": []any{"Deny"}}
	m.addParams(spec, binding, s, `params.data.tier == "gold"`)
	addVariables(spec)
	return []map[string]any{
		object(admissionGroup+"/v1", "ValidatingAdmissionPolicy", "", name, map[string]any{"spec": spec}),
		object(admissionGroup+"/v1", "ValidatingAdmissionPolicyBinding", "", name, map[string]any{"spec": binding}),
	}
}

// slotValues are the values of one workload in the places where others like it may have other ones.
type slotValues struct {
	namespace, name, app, tier, account, main, side, image, mode, argument, cpu, memory, settings, checksum, inject string
}

// copies makes up workloads of one structure. Some have a name of their own and no other value, and some one further value.
func (m *admitMaker) copies(s *alikeSet, n int) []string {
	structure := m.Uint64()
	kind := pick(m, "Deployment", "Deployment", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "StatefulSet", "DaemonSet", "DaemonSet",
		"DaemonSet", "DaemonSet", "Job", "CronJob")
	base := slotValues{
		namespace: s.namespaces[0], app: pick(m, "", "shop", "shop", "shop"), tier: "tin", account: "web", main: pick(m, "", "main-1", "main-1"), side: "side-1",
		image: pick(m, "registry.example.com/web:1.1", "registry.example.com/web"), mode: "calm", argument: "--quiet", cpu: "100m", memory: "64Mi",
		settings: "settings-1", checksum: "a1b2c3d4", inject: "true",
	}
	if isReadForCertain(s.name) {
		kind, base.app = "Deployment", "shop"
	}
	var out []string
	for i := range n {
		m.pods++
		v := base
		v.name = fmt.Sprintf("%s-%d", pick(m, "web", "web", "web", "web", "api"), i+1)
		if m.maybe(0.1) {
			v.name = fmt.Sprintf("a-longer-name-%d", i+1)
		}
		for _, field := range []*string{&v.app, &v.main} { // of which "" is the name of the workload
			if *field == "" {
				*field = v.name
			}
		}
		if m.maybe(0.4) {
			v.namespace = pick(m, s.namespaces...)
		}
		if m.maybe(0.6) {
			m.change(&v, i, pick(m, s.fields...))
		}
		out = append(out, writeAlike(rand.New(rand.NewPCG(structure, 0)), kind, v)) //nolint:gosec // made-up input
	}
	return out
}

// slotFields is how many fields change may set.
const slotFields = 13

// change sets one value to another one.
func (m *admitMaker) change(v *slotValues, i, field int) {
	number := fmt.Sprint(i%5 + 1)
	one := [slotFields]struct {
		field *string
		value string
	}{
		{&v.app, "web-" + number},
		{&v.tier, pick(m, "gold", "gold", "silver", "tier-"+number)},
		{&v.account, pick(m, "default", "api", "web")},
		{&v.main, "main-" + number},
		{&v.side, pick(m, "added", "side-"+number, "aside-"+number)},
		{&v.image, pick(m, "registry.example.com/web:1."+number, "nginx:latest", "nginx", "example.com/a@sha256:"+strings.Repeat("ab", 32))},
		{&v.mode, pick(m, "on", "loud", "on and "+number, "mode "+number, "true", number)},
		{&v.argument, pick(m, "--debug", "--level="+number)},
		{&v.cpu, pick(m, "10m", "900m", "1500m", "2500m", "1000m", number+"1m")},
		{&v.memory, pick(m, "2Gi", number+"00Mi", "1024Mi")},
		{&v.settings, "settings-" + number},
		{&v.checksum, "cafe" + number},
		{&v.inject, pick(m, "false", "true")},
	}[field]
	*one.field = one.value
}

// writeAlike writes a workload. Those of one structure have the same lines but for their values.
func writeAlike(structure *rand.Rand, kind string, v slotValues) string {
	has := func(p float64) bool { return structure.Float64() < p }
	var b strings.Builder
	indent := ""
	line := func(format string, args ...any) { fmt.Fprintf(&b, indent+format+"\n", args...) }
	apiVersion := "apps/v1"
	if kind == "Job" || kind == "CronJob" {
		apiVersion = "batch/v1"
	}
	line("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  namespace: %s\nspec:", apiVersion, kind, v.name, v.namespace)
	indent = "  "
	switch kind {
	case "StatefulSet", "Deployment", "DaemonSet":
		line("selector:\n    matchLabels:\n      app: %s", v.app)
	case "CronJob":
		line("schedule: 0 * * * *\n  jobTemplate:\n    spec:")
		indent = "      "
	}
	if kind == "StatefulSet" {
		line("serviceName: web")
	}
	line("template:")
	indent += "  "
	line("metadata:")
	line("  labels:")
	line("    app: %s", v.app)
	if has(0.7) {
		line("    tier: %s", v.tier)
	}
	if has(0.2) {
		line("    sidecar.istio.io/inject: %q", v.inject)
	}
	if has(0.4) {
		line("  annotations:")
		line("    checksum/config: %s", v.checksum)
	}
	line("spec:")
	indent += "  "
	if has(0.6) {
		line("serviceAccountName: %s", v.account)
	}
	if has(0.2) {
		line("priorityClassName: high")
	}
	if has(0.2) {
		line("runtimeClassName: placed")
	}
	if kind == "Job" || kind == "CronJob" {
		line("restartPolicy: Never")
	}
	if has(0.2) {
		line("topologySpreadConstraints:")
		for _, field := range []string{"- maxSkew: 1", "  topologyKey: zone", "  whenUnsatisfiable: ScheduleAnyway", "  matchLabelKeys: [app]", "  labelSelector: {}"} {
			line("%s", field)
		}
	}
	if has(0.15) {
		line("securityContext:")
		line("  runAsUser: 1000")
	}
	if has(0.25) {
		line("initContainers:")
		writeAlikeContainer(structure, line, "prepare", v)
	}
	line("containers:")
	writeAlikeContainer(structure, line, v.main, v)
	if has(0.4) {
		writeAlikeContainer(structure, line, v.side, v)
	}
	if has(0.5) {
		line("volumes:")
		line("- name: settings")
		line("  configMap:")
		line("    name: %s", v.settings)
	}
	return b.String()
}

func writeAlikeContainer(structure *rand.Rand, line func(format string, args ...any), name string, v slotValues) {
	has := func(p float64) bool { return structure.Float64() < p }
	line("- name: %s", name)
	line("  image: %s", v.image)
	if has(0.5) {
		line("  args:")
		line("  - %s", v.argument)
	}
	if has(0.6) {
		line("  env:")
		line("  - name: MODE")
		line("    value: %q", v.mode)
	}
	if has(0.6) {
		line("  resources:")
		line("    requests:")
		line("      cpu: %s", v.cpu)
		if has(0.5) {
			line("      memory: %s", v.memory)
		}
		if has(0.3) {
			line("    limits:")
			line("      cpu: %s", v.cpu)
		}
	}
}
