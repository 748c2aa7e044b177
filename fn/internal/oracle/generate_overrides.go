// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "strings"

// overrides returns a text for the annotation proxy.istio.io/overrides: as an injection leaves it, or as a user
// writes it by hand.
func (d draw) overrides() string {
	if d.happensWithProbability(0.1) {
		return pick(d, "{}", "{", "[]", "", "null", " ", `"x"`, `{"containers":{}}`, `{"containers":null}`,
			`{"containers":[]}`,
			`{"containers":"istio-proxy"}`, `{"initContainers":null,"volumes":[{"name":"v"}]}`,
			`{"containers":[],"containers":[{"name":"istio-proxy","tty":true}]}`,
			"containers: [{name: istio-proxy, tty: true}]", `{"containers":[{"name":"istio-proxy"}]} x`)
	}
	out := object{}
	for _, field := range pickSome(d, 0.6, "containers", "initContainers") {
		var list []any
		for range d.intBetween(0, 2) {
			list = append(list, d.drawOverrideContainer(field))
		}
		out[field] = list
	}
	text := string(toJSON(out))
	if d.happensWithProbability(0.05) {
		text = strings.NewReplacer(`"containers"`, `"Containers"`, `"image"`, `"IMAGE"`).Replace(text)
	}
	return text
}

// drawOverrideContainer makes a container of the annotation; null is one too.
func (d draw) drawOverrideContainer(field string) any {
	if d.happensWithProbability(0.07) {
		return pick[any](d, nil, object{}, 1, "istio-proxy", jsonList[any]())
	}
	c := d.proxyContainer(pick(d, "istio-proxy", "istio-proxy", "istio-init", "istio-validation", "elsewhere", "app0", "", "custom"))
	if field == "initContainers" {
		for _, f := range pickSome(d, 0.8, "livenessProbe", "readinessProbe", "startupProbe", "lifecycle") {
			delete(c, f)
		}
	}
	if d.happensWithProbability(0.3) {
		delete(c, "image")
	}
	if d.happensWithProbability(0.7) {
		c["resources"] = object{}
	}
	if d.happensWithProbability(0.2) {
		d.misshapeContainerField(c)
	}
	return c
}

// misshapeContainerField sets a field of a container to a value of the wrong type or to null, or adds a field that
// Kubernetes does not know.
func (d draw) misshapeContainerField(c object) {
	odd := pick(d, []struct {
		field string
		value any
	}{
		{"name", nil}, {"name", 1}, {"image", nil}, {"image", 3}, {"args", "proxy"}, {"args", jsonList[any](1)},
		{"args", jsonList[any](nil)}, {"env", object{}},
		{"env", jsonList[any](nil)}, {"env", jsonList(object{"name": "OWN", "value": 1})},
		{"env", jsonList(object{"value": "nameless"})}, {"ports", jsonList(object{"containerPort": "80"})},
		{"ports", jsonList(object{"containerPort": 80.5})},
		{"ports", jsonList(object{"containerPort": 80.0, "protocol": nil})}, {"ports", jsonList[any](nil)},
		{"tty", "true"}, {"tty", nil},
		{"resources", object{"limits": object{"cpu": "lots"}}}, {"resources", object{"limits": object{"cpu": 2}}},
		{"resources", object{"limits": object{"cpu": nil}}},
		{"resources", jsonList[any]()}, {"securityContext", object{"runAsUser": "1000"}},
		{"securityContext", object{"runAsUser": 3000000000}},
		{"readinessProbe", object{"httpGet": object{"port": object{}}}},
		{"readinessProbe", object{"grpc": object{"port": 1}}},
		{"readinessProbe", object{"tcpSocket": object{"port": "http"}, "timeoutSeconds": nil}},
		{"volumeMounts", jsonList(object{"name": "data"})}, {"volumeMounts", jsonList[any](nil)},
		{"unknown", object{"a": 1}}, {"fsGroup", 1337}, {"lifecycle", object{"preStop": nil}},
		{"lifecycle", object{"stopSignal": "SIGTERM", "postStop": object{}}},
		{"securityContext", object{"unknown": true}}, {"$patch", "delete"}, {"$setElementOrder/env", jsonList("A")},
	}...)
	c[odd.field] = odd.value
}
