// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "strings"

// overrides returns a text for the annotation proxy.istio.io/overrides: as an injection leaves it, or as a user
// writes it by hand.
func (d draw) overrides() string {
	if d.chance(0.1) {
		return pick(d, "{}", "{", "[]", "", "null", " ", `"x"`, `{"containers":{}}`, `{"containers":null}`, `{"containers":[]}`,
			`{"containers":"istio-proxy"}`, `{"initContainers":null,"volumes":[{"name":"v"}]}`, `{"containers":[],"containers":[{"name":"istio-proxy","tty":true}]}`,
			"containers: [{name: istio-proxy, tty: true}]", `{"containers":[{"name":"istio-proxy"}]} x`)
	}
	out := object{}
	for _, field := range some(d, 0.6, "containers", "initContainers") {
		var list []any
		for range d.between(0, 2) {
			list = append(list, d.overriding(field))
		}
		out[field] = list
	}
	text := string(toJSON(out))
	if d.chance(0.05) {
		text = strings.NewReplacer(`"containers"`, `"Containers"`, `"image"`, `"IMAGE"`).Replace(text)
	}
	return text
}

// overriding makes a container of the annotation; null is one too.
func (d draw) overriding(field string) any {
	if d.chance(0.07) {
		return pick[any](d, nil, object{}, 1, "istio-proxy", list[any]())
	}
	c := d.proxyContainer(pick(d, "istio-proxy", "istio-proxy", "istio-init", "istio-validation", "elsewhere", "app0", "", "custom"))
	if field == "initContainers" {
		for _, f := range some(d, 0.8, "livenessProbe", "readinessProbe", "startupProbe", "lifecycle") {
			delete(c, f)
		}
	}
	if d.chance(0.3) {
		delete(c, "image")
	}
	if d.chance(0.7) {
		c["resources"] = object{}
	}
	if d.chance(0.2) {
		d.misshape(c)
	}
	return c
}

// misshape sets a field of a container to a value of the wrong type or to null, or adds a field that Kubernetes
// does not know.
func (d draw) misshape(c object) {
	odd := pick(d, []struct {
		field string
		value any
	}{
		{"name", nil}, {"name", 1}, {"image", nil}, {"image", 3}, {"args", "proxy"}, {"args", list[any](1)}, {"args", list[any](nil)}, {"env", object{}},
		{"env", list[any](nil)}, {"env", list(object{"name": "OWN", "value": 1})}, {"env", list(object{"value": "nameless"})}, {"ports", list(object{"containerPort": "80"})},
		{"ports", list(object{"containerPort": 80.5})}, {"ports", list(object{"containerPort": 80.0, "protocol": nil})}, {"ports", list[any](nil)}, {"tty", "true"}, {"tty", nil},
		{"resources", object{"limits": object{"cpu": "lots"}}}, {"resources", object{"limits": object{"cpu": 2}}}, {"resources", object{"limits": object{"cpu": nil}}},
		{"resources", list[any]()}, {"securityContext", object{"runAsUser": "1000"}}, {"securityContext", object{"runAsUser": 3000000000}},
		{"readinessProbe", object{"httpGet": object{"port": object{}}}}, {"readinessProbe", object{"grpc": object{"port": 1}}}, {"readinessProbe", object{"tcpSocket": object{"port": "http"}, "timeoutSeconds": nil}},
		{"volumeMounts", list(object{"name": "data"})}, {"volumeMounts", list[any](nil)}, {"unknown", object{"a": 1}}, {"fsGroup", 1337}, {"lifecycle", object{"preStop": nil}},
		{"lifecycle", object{"stopSignal": "SIGTERM", "postStop": object{}}}, {"securityContext", object{"unknown": true}}, {"$patch", "delete"}, {"$setElementOrder/env", list("A")},
	}...)
	c[odd.field] = odd.value
}
