// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "fmt"

var images = []string{
	"nginx", "nginx:latest", "nginx:1.21", "registry.example:5000/team/app:v1.2.3", "registry.example/app",
	"nginx@sha256:" + digest, "nginx:1.21@sha256:" + digest, "auto",
}

const digest = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

func drawContainer(d draw, name string) object {
	c := object{"name": name, "image": pick(d, images...)}
	if d.happensWithProbability(0.6) {
		c["ports"] = drawPorts(d)
	}
	setContainerProbes(d, c)
	setContainerLimits(d, c)
	if d.happensWithProbability(0.15) {
		c["lifecycle"] = drawLifecycle(d)
	}
	setContainerProcess(d, c)
	if d.happensWithProbability(0.2) {
		c["volumeMounts"] = drawMounts(d)
	}
	if d.happensWithProbability(0.15) {
		c["imagePullPolicy"] = pick(d, "Always", "IfNotPresent", "Never")
	}
	if d.happensWithProbability(0.05) {
		c["terminationMessagePath"], c["terminationMessagePolicy"] = "/tmp/end", pick(d, "File",
			"FallbackToLogsOnError")
	}
	if d.happensWithProbability(0.03) {
		c["resizePolicy"] = jsonList(object{"resourceName": "cpu", "restartPolicy": "NotRequired"})
	}
	if d.happensWithProbability(0.02) {
		c["restartPolicy"] = "Never"
		c["restartPolicyRules"] = jsonList(object{"action": "Restart", "exitCodes": object{"operator": "In", "values": jsonList(42)}})
	}
	if d.happensWithProbability(0.02) {
		c["volumeDevices"] = jsonList(object{"name": "block", "devicePath": "/dev/block"})
	}
	d.writeEmptyFields(c, 0.06, nothingsOfContainers)
	return c
}

// setContainerLimits sets what a container may use and do.
func setContainerLimits(d draw, c object) {
	if d.happensWithProbability(0.3) {
		c["resources"] = drawResources(d)
	}
	if d.happensWithProbability(0.2) {
		c["securityContext"] = drawSecurity(d)
	}
}

// setContainerProcess sets what the container runs and with which environment.
func setContainerProcess(d draw, c object) {
	for _, field := range pickSome(d, 0.2, "command", "args") {
		c[field] = pick(d, jsonList("sh", "-c", "sleep 1d"), jsonList("$(NAME)", ""), jsonList[any]())
	}
	if d.happensWithProbability(0.3) {
		env := []any{object{"name": "MODE", "value": "prod"}, object{"name": "EMPTY", "value": ""},
			object{"name": "BARE"}}
		env = append(env, pickSome[any](d, 0.3,
			object{"name": "POD", "valueFrom": object{"fieldRef": object{"fieldPath": "metadata.name"}}},
			object{"name": "KEY", "valueFrom": object{"secretKeyRef": object{"name": "s", "key": "k"}}},
			object{"name": "CPU", "valueFrom": object{"resourceFieldRef": object{"resource": "limits.cpu", "divisor": pick(d, "1", "1m")}}},
			object{"name": "MAP", "valueFrom": object{"configMapKeyRef": object{"name": "m", "key": "k", "optional": true}}},
			object{"name": "SAME", "value": "1"}, object{"name": "SAME", "value": "2"},
			object{"name": "ISTIO_META_OWN", "value": "x"})...)
		c["env"] = env
	}
	if d.happensWithProbability(0.05) {
		c["envFrom"] = jsonList(object{"configMapRef": object{"name": "env"}})
	}
	if d.happensWithProbability(0.05) {
		c["workingDir"] = "/srv"
	}
	for _, field := range pickSome(d, 0.03, "stdin", "tty", "stdinOnce") {
		c[field] = true
	}
}

func drawInitContainer(d draw, i int) object {
	c := object{"name": fmt.Sprintf("%s%d", pick(d, "init", "migrate"), i), "image": pick(d, images...)}
	if d.happensWithProbability(0.3) {
		c["restartPolicy"] = "Always"
		c["ports"] = drawPorts(d)
		setContainerProbes(d, c)
		if d.happensWithProbability(0.3) {
			c["lifecycle"] = drawLifecycle(d)
		}
	}
	setContainerLimits(d, c)
	setContainerProcess(d, c)
	return c
}

func drawPorts(d draw) []any {
	var out []any
	for i := range 1 + d.IntN(3) {
		p := object{"containerPort": pick(d, 80, 8080, 9090, 15020, 15090, 50051) + i}
		if d.happensWithProbability(0.7) {
			p["name"] = fmt.Sprintf("%s%d", pick(d, "http", "grpc", "p"), i)
		}
		if d.happensWithProbability(0.4) {
			p["protocol"] = pick(d, "TCP", "UDP", "SCTP")
		}
		if d.happensWithProbability(0.04) {
			p["hostPort"] = 31000 + i
		}
		if d.happensWithProbability(0.03) {
			p["hostIP"] = "127.0.0.1"
		}
		out = append(out, p)
	}
	return out
}

var cpus = []string{"100m", "0.1", "1", "1000m", "2", "250m", "1e-1"}
var memories = []string{"64Mi", "128Mi", "1Gi", "1024Mi", "0.5Gi", "1e9", "100M", "128974848"}

func drawResources(d draw) object {
	out := object{}
	for _, part := range pickSome(d, 0.7, "requests", "limits") {
		amounts := object{}
		if d.happensWithProbability(0.8) {
			amounts["cpu"] = pick(d, cpus...)
		}
		if d.happensWithProbability(0.7) {
			amounts["memory"] = pick(d, memories...)
		}
		if d.happensWithProbability(0.1) {
			amounts["ephemeral-storage"] = "1Gi"
		}
		if d.happensWithProbability(0.05) && part == "limits" {
			amounts["example.com/gpu"] = "1"
		}
		if d.happensWithProbability(0.06) {
			amounts[pick(d, "cpu", "memory", "ephemeral-storage")] = nil
		}
		out[part] = amounts
	}
	if d.happensWithProbability(0.03) {
		out["claims"] = jsonList(object{"name": "gpu"})
	}
	return out
}

func drawSecurity(d draw) object {
	out := object{}
	for _, field := range pickSome(d, 0.3, "runAsUser", "runAsGroup") {
		out[field] = pick(d, 0, 1000, 1337, 2000, 1000620000)
	}
	for _, field := range pickSome(d, 0.25, "privileged", "readOnlyRootFilesystem", "runAsNonRoot", "allowPrivilegeEscalation") {
		out[field] = d.happensWithProbability(0.5)
	}
	if d.happensWithProbability(0.3) {
		out["capabilities"] = pick(d, object{"drop": jsonList("ALL")},
			object{"add": jsonList("NET_BIND_SERVICE"), "drop": jsonList("ALL")}, object{"add": jsonList("SYS_TIME")})
	}
	if d.happensWithProbability(0.15) {
		out["seccompProfile"] = object{"type": "RuntimeDefault"}
	}
	if d.happensWithProbability(0.05) {
		out["procMount"] = "Default"
	}
	for _, field := range pickSome(d, 0.04, "seLinuxOptions", "appArmorProfile", "windowsOptions") {
		out[field] = map[string]object{"seLinuxOptions": {"level": "s0:c1"},
			"appArmorProfile": {"type": "RuntimeDefault"},
			"windowsOptions":  {"runAsUserName": "app"}}[field]
	}
	return out
}

func drawLifecycle(d draw) object {
	handlers := []object{
		{"exec": object{"command": jsonList("sleep", "5")}},
		{"httpGet": object{"path": "/stop", "port": pick[any](d, 8080, "http0")}},
		{"httpGet": object{"port": 80, "scheme": pick(d, "HTTP", "HTTPS"), "host": "h.example"}},
		{"tcpSocket": object{"port": 8080}},
		{"sleep": object{"seconds": 3}},
	}
	out := object{}
	for _, hook := range pickSome(d, 0.6, "preStop", "postStart") {
		out[hook] = pick(d, handlers...)
	}
	if d.happensWithProbability(0.08) {
		out["stopSignal"] = "SIGUSR1"
	}
	return out
}

func drawMounts(d draw) []any {
	out := jsonList[any](object{"name": "data", "mountPath": "/data"})
	return append(out, pickSome[any](d, 0.2,
		object{"name": "data", "mountPath": "/sub", "subPath": "a", "readOnly": true},
		object{"name": "istio-token", "mountPath": "/tokens"},
		object{"name": "data", "mountPath": "/var/run/secrets/istio"},
		object{"name": "istio-envoy", "mountPath": "/etc/istio/proxy"},
		object{"name": "data", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true},
		object{"name": "data", "mountPath": "/expr/$(POD)", "subPathExpr": "$(POD)", "recursiveReadOnly": "Disabled"},
		object{"name": "data", "mountPath": "/newest", "bindMountOptions": jsonList("noexec")},
		object{"name": "data", "mountPath": "/prop", "mountPropagation": "HostToContainer"})...)
}
