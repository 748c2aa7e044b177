// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "fmt"

// drawPodSpec makes the spec of a pod without what is Istio's.
func drawPodSpec(d draw, kind string) object {
	spec := object{}
	containers := []any{}
	for i := range 1 + d.IntN(3)*d.IntN(2) {
		containers = append(containers, drawContainer(d, fmt.Sprintf("%s%d", pick(d, "app", "app", "side", "web"), i)))
	}
	spec["containers"] = containers
	if d.happensWithProbability(0.3) {
		var init []any
		for i := range 1 + d.IntN(2) {
			init = append(init, drawInitContainer(d, i))
		}
		spec["initContainers"] = init
	}
	if d.happensWithProbability(0.3) {
		spec["volumes"] = drawVolumes(d)
	}
	setPodNetwork(d, spec)
	setPodFields(d, spec, kind)
	setRareFields(d, spec)
	d.writeEmptyFields(spec, 0.04, nothingsOfPods)
	return spec
}

// setRareFields sets fields that few pods have.
func setRareFields(d draw, spec object) {
	if d.happensWithProbability(0.03) {
		spec["os"] = object{"name": pick(d, "linux", "windows")}
	}
	for _, field := range pickSome(d, 0.02, "setHostnameAsFQDN", "hostUsers") {
		spec[field] = d.happensWithProbability(0.5)
	}
	if d.happensWithProbability(0.02) {
		spec["hostnameOverride"] = "h2"
	}
	if d.happensWithProbability(0.02) {
		spec["securityContext"] = object{"supplementalGroupsPolicy": pick(d, "Merge", "Strict"),
			"seLinuxChangePolicy": "MountOption"}
	}
	if d.happensWithProbability(0.02) {
		spec["schedulingGates"] = jsonList(object{"name": "example.com/wait"})
	}
	if d.happensWithProbability(0.02) {
		spec["resourceClaims"] = jsonList(object{"name": "gpu", "resourceClaimTemplateName": "gpu"})
	}
	if d.happensWithProbability(0.02) {
		spec["preemptionPolicy"] = pick(d, "Never", "PreemptLowerPriority")
	}
	if d.happensWithProbability(0.02) {
		spec["activeDeadlineSeconds"] = 600
	}
	if d.happensWithProbability(0.02) {
		spec["ephemeralContainers"] = jsonList(object{"name": "debugger", "image": "busybox", "targetContainerName": "app0"})
	}
}

// setPodNetwork sets what concerns the pod's network and names.
func setPodNetwork(d draw, spec object) {
	if d.happensWithProbability(0.03) {
		spec["hostNetwork"] = pick(d, true, true, false)
	}
	if d.happensWithProbability(0.1) {
		spec["dnsPolicy"] = pick(d, "ClusterFirst", "Default", "ClusterFirstWithHostNet")
	}
	if d.happensWithProbability(0.1) {
		spec["dnsConfig"] = object{
			"searches": jsonList("own.example"), "options": jsonList(object{"name": "ndots", "value": "2"}, object{"name": "edns0"}),
		}
		if d.happensWithProbability(0.5) {
			childObject(spec, "dnsConfig")["nameservers"] = jsonList("10.0.0.10")
		}
	}
	if d.happensWithProbability(0.05) {
		spec["hostAliases"] = jsonList(object{"ip": "10.1.2.3", "hostnames": jsonList("a.example")})
	}
	if d.happensWithProbability(0.05) {
		spec["hostname"], spec["subdomain"] = "h1", "sub"
	}
}

// setPodFields sets the other fields of a pod.
func setPodFields(d draw, spec object, kind string) {
	if d.happensWithProbability(0.25) {
		spec["securityContext"] = drawPodSecurity(d)
	}
	if d.happensWithProbability(0.2) {
		spec["serviceAccountName"] = pick(d, "web", "default")
	}
	if d.happensWithProbability(0.03) {
		spec["serviceAccount"] = "old-name"
	}
	if d.happensWithProbability(0.15) {
		spec["imagePullSecrets"] = pick(d, jsonList(object{"name": "own"}),
			jsonList(object{"name": "own"}, object{"name": "regcred"}), jsonList(object{"name": "regcred"}),
			jsonList(object{"name": "other"}, object{"name": "own"}), jsonList[any](),
			jsonList(object{"name": ""}), jsonList(object{"name": nil}, object{"name": "own"}), jsonList(object{}))
	}
	if d.happensWithProbability(0.15) {
		spec["terminationGracePeriodSeconds"] = d.IntN(100)
	}
	if d.happensWithProbability(0.05) && kind != "Job" && kind != "CronJob" {
		spec["restartPolicy"] = "Always"
	}
	if d.happensWithProbability(0.1) {
		spec["nodeSelector"] = object{"kubernetes.io/os": "linux"}
	}
	if d.happensWithProbability(0.1) {
		spec["tolerations"] = jsonList(object{"key": "only", "operator": "Exists", "effect": "NoSchedule"},
			object{"operator": "Exists"})
	}
	if d.happensWithProbability(0.05) {
		spec["affinity"] = object{"podAntiAffinity": object{"requiredDuringSchedulingIgnoredDuringExecution": jsonList(
			object{"topologyKey": "kubernetes.io/hostname",
				"labelSelector": object{"matchLabels": object{"app": "web"}}})}}
	}
	if d.happensWithProbability(0.05) {
		spec["topologySpreadConstraints"] = jsonList(object{
			"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
			"labelSelector": object{"matchLabels": object{"app": "web"}}})
	}
	for _, field := range pickSome(d, 0.05, "shareProcessNamespace", "automountServiceAccountToken", "enableServiceLinks", "hostPID", "hostIPC") {
		spec[field] = d.happensWithProbability(0.5)
	}
	for _, field := range pickSome(d, 0.04, "priorityClassName", "schedulerName", "runtimeClassName") {
		spec[field] = "own"
	}
	if d.happensWithProbability(0.03) {
		spec["readinessGates"] = jsonList(object{"conditionType": "example.com/ready"})
	}
	if d.happensWithProbability(0.03) {
		spec["resources"] = object{"limits": object{"cpu": "2", "memory": "1Gi"}}
	}
}

func drawPodSecurity(d draw) object {
	out := object{}
	for _, field := range pickSome(d, 0.35, "runAsUser", "runAsGroup", "fsGroup") {
		out[field] = pick(d, 0, 1000, 1337, 2000)
	}
	if d.happensWithProbability(0.3) {
		out["runAsNonRoot"] = d.happensWithProbability(0.5)
	}
	if d.happensWithProbability(0.2) {
		out["supplementalGroups"] = jsonList(1337, 5)
	}
	if d.happensWithProbability(0.2) {
		out["seccompProfile"] = object{"type": pick(d, "RuntimeDefault", "Unconfined")}
	}
	if d.happensWithProbability(0.2) {
		out["sysctls"] = jsonList(object{"name": "net.core.somaxconn", "value": "1024"})
	}
	if d.happensWithProbability(0.1) {
		out["fsGroupChangePolicy"] = "OnRootMismatch"
	}
	return out
}

// istioVolumes are the names of the volumes that Istio's templates add.
var istioVolumes = []string{
	"istio-envoy", "istio-data", "istio-podinfo", "istio-token", "istiod-ca-cert", "istio-ca-crl", "workload-socket",
	"credential-socket", "workload-certs", "custom-bootstrap-volume", "istio-certs", "extra",
}

func drawVolumes(d draw) []any {
	out := jsonList[any](object{"name": "data", "emptyDir": object{}})
	more := []any{
		object{"name": "cache", "emptyDir": object{"medium": "Memory", "sizeLimit": pick(d, "64Mi", "0.5Gi", "1e6")}},
		object{"name": "config", "configMap": object{"name": "web", "items": jsonList(object{"key": "a", "path": "b"})}},
		object{"name": "secret", "secret": object{"secretName": "web", "optional": true}},
		object{"name": "claim", "persistentVolumeClaim": object{"claimName": "web"}},
		object{"name": "host", "hostPath": object{"path": "/var/log"}},
		object{"name": "info", "downwardAPI": object{"items": jsonList(object{"path": "l", "fieldRef": object{"fieldPath": "metadata.labels"}})}},
		object{"name": "proj", "projected": object{"sources": jsonList(object{"serviceAccountToken": object{"path": "t"}})}},
		object{"name": "tokens", "projected": object{"defaultMode": 256, "sources": jsonList(
			object{"serviceAccountToken": object{"path": "t", "audience": "istio-ca", "expirationSeconds": 43200}},
			object{"configMap": object{"name": "kube-root-ca.crt", "items": jsonList(object{"key": "ca.crt", "path": "ca.crt"})}},
			object{"downwardAPI": object{"items": jsonList(object{"path": "n", "fieldRef": object{"apiVersion": "v1", "fieldPath": "metadata.namespace"}})}})}},
		object{"name": "kube-api-access-x1y2z", "projected": object{"sources": jsonList(object{"serviceAccountToken": object{"path": "token"}})}},
		object{"name": "bundle", "projected": object{"sources": jsonList(object{"clusterTrustBundle": object{"name": "b", "path": "p"}})}},
		object{"name": "image", "image": object{"reference": "registry.example/data:1"}},
		object{"name": "pulled", "image": object{"reference": "registry.example/data", "pullPolicy": "IfNotPresent"}},
		object{"name": "certificate", "projected": object{"sources": jsonList(object{"podCertificate": object{
			"signerName": "example.com/s", "keyType": "ED25519", "credentialBundlePath": "b.pem"}})}},
		object{"name": "nfs", "nfs": object{"server": "s", "path": "/"}},
		object{"name": "bare"},
		object{"name": "csi", "csi": object{"driver": "d.example"}},
		object{"name": "ephemeral", "ephemeral": object{"volumeClaimTemplate": object{"spec": object{
			"accessModes": jsonList("ReadWriteOnce"), "resources": object{"requests": object{"storage": "1Gi"}}}}}},
	}
	out = append(out, pickSome(d, 0.2, more...)...)
	if d.happensWithProbability(0.15) {
		out = append(out, pick(d, object{"emptyDir": object{}}, object{"emptyDir": object{"medium": "Memory"}}, object{"hostPath": object{"path": "/own"}},
			object{"secret": object{"secretName": "own"}}, object{"configMap": object{"name": "istio-ca-root-cert"}},
			object{"projected": object{"sources": jsonList(object{"serviceAccountToken": object{"path": "istio-token", "audience": "own"}})}}))
		last, _ := out[len(out)-1].(object)
		last["name"] = pick(d, istioVolumes...)
	}
	return out
}
