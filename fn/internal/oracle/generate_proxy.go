// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

// addProxyNamedContainers adds containers to the pod that have the names of Istio's.
func (d draw) addProxyNamedContainers(pod object) {
	spec := childObject(pod, "spec")
	if d.happensWithProbability(0.14) {
		c := d.proxyContainer("istio-proxy")
		if d.happensWithProbability(0.2) {
			if d.happensWithProbability(0.6) {
				c["restartPolicy"] = "Always"
			} else {
				for _, field := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
					delete(c, field)
				}
			}
			d.insertContainerAnywhere(spec, "initContainers", c)
		} else {
			d.insertContainerAnywhere(spec, "containers", c)
		}
	}
	if d.happensWithProbability(0.04) {
		c := d.proxyContainer(pick(d, "istio-init", "istio-validation", "enable-core-dump", "grpc-bootstrap-init", "first"))
		for _, field := range []string{"livenessProbe", "readinessProbe", "startupProbe", "lifecycle"} {
			delete(c, field)
		}
		d.insertContainerAnywhere(spec, "initContainers", c)
	}
}

// insertContainerAnywhere puts a container at some place of a list.
func (d draw) insertContainerAnywhere(spec object, field string, c object) {
	had, _ := spec[field].([]any)
	at := d.IntN(len(had) + 1)
	out := append([]any{}, had[:at]...)
	spec[field] = append(append(out, c), had[at:]...)
}

// proxyContainer makes a container with any of the fields that users set on the proxy.
func (d draw) proxyContainer(name string) object {
	c := object{"name": name, "image": pick(d, "auto", "auto", "auto", "registry.example/proxyv2:own", "")}
	if c["image"] == "" {
		c["image"] = "proxyv2"
	}
	set := map[string]func() any{
		"resources":       func() any { return drawResources(d) },
		"securityContext": func() any { return drawSecurity(d) },
		"lifecycle":       func() any { return drawLifecycle(d) },
		"readinessProbe":  func() any { return drawProbe(d, "readinessProbe") },
		"livenessProbe":   func() any { return drawProbe(d, "livenessProbe") },
		"startupProbe":    func() any { return drawProbe(d, "startupProbe") },
		"ports":           func() any { return drawPorts(d) },
		"volumeMounts":    func() any { return drawMounts(d) },
		"args":            func() any { return jsonList("proxy", "router", "--own") },
		"command":         func() any { return jsonList("own") },
		"imagePullPolicy": func() any { return pick(d, "Always", "Never") },
		"env": func() any {
			return append(jsonList[any](object{"name": "OWN", "value": "1"}), pickSome[any](d, 0.3,
				object{"name": "ISTIO_META_CLUSTER_ID", "value": "own"},
				object{"name": "ENVOY_SECURE_MERGED_METRICS_PORT", "value": pick(d, "15091", "0", "", "abc")},
				object{"name": "ISTIO_KUBE_APP_PROBERS", "value": pick(d, "{}", "no JSON")},
				object{"name": "POD_NAME", "value": "fixed"},
				object{"name": "PROXY_CONFIG", "value": "{}"},
				object{"name": "HOST_IP", "valueFrom": object{"fieldRef": object{"fieldPath": "status.hostIP"}}},
				object{"name": "GOMEMLIMIT", "valueFrom": object{"resourceFieldRef": object{"resource": "limits.memory"}}},
				object{"name": "ISTIO_PROMETHEUS_ANNOTATIONS",
					"value": pick(d, "{}", "no JSON", `{"scrape":"true","path":"/own","port":"1"}`)},
				object{"name": "ISTIO_META_NETWORK", "value": "own"})...)
		},
		"envFrom":      func() any { return jsonList(object{"secretRef": object{"name": "own"}}) },
		"resizePolicy": func() any { return jsonList(object{"resourceName": "memory", "restartPolicy": "RestartContainer"}) },
		"restartPolicyRules": func() any {
			return jsonList(object{"action": "Restart", "exitCodes": object{"operator": "NotIn", "values": jsonList(0)}})
		},
		"volumeDevices":            func() any { return jsonList(object{"name": "block", "devicePath": "/dev/block"}) },
		"terminationMessagePolicy": func() any { return "FallbackToLogsOnError" },
		"workingDir":               func() any { return "/own" },
		"tty":                      func() any { return true },
	}
	fields := []string{"resources", "securityContext", "lifecycle", "readinessProbe", "livenessProbe", "startupProbe",
		"ports", "volumeMounts",
		"args", "command", "imagePullPolicy", "env", "terminationMessagePolicy", "workingDir", "tty"}
	for _, field := range pickSome(d, 0.06, "envFrom", "resizePolicy", "restartPolicyRules", "volumeDevices") {
		c[field] = set[field]()
	}
	d.writeEmptyFields(c, 0.06, nothingsOfContainers)
	for _, field := range pickSome(d, 0.2, fields...) {
		c[field] = set[field]()
	}
	return c
}
