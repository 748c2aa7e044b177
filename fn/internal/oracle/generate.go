// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"strings"
)

// kinds are those that hold pods, the frequent ones more than once.
var kinds = []string{
	"Pod", "Pod", "Pod", "Deployment", "Deployment", "Deployment", "StatefulSet", "StatefulSet", "DaemonSet",
	"ReplicaSet", "ReplicationController", "Job", "CronJob", "CronJob",
}

// apiVersions are those of the kinds that are not in v1.
var apiVersions = map[string]string{
	"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1",
	"Job": "batch/v1", "CronJob": "batch/v1",
}

// Generate generates the workload of a case. Most are accepted by the API server and injected.
func Generate(seed uint64, installation string, number int) map[string]any {
	d := newDraw(seed, installation, number)
	kind := pick(d, kinds...)
	name := d.workloadName(kind, number)
	meta := object{"name": name, "namespace": d.namespace()}
	d.objectMetadata(meta)
	pod := d.podTemplate(kind, name)
	obj := object{"apiVersion": "v1", "kind": kind, "metadata": meta}
	if v, ok := apiVersions[kind]; ok {
		obj["apiVersion"] = v
	}
	if kind == "Pod" {
		inner, _ := pod["metadata"].(object)
		for _, key := range []string{"labels", "annotations"} {
			if v, ok := inner[key]; ok {
				meta[key] = v
			}
		}
		if d.happensWithProbability(0.1) {
			delete(meta, "name")
			meta["generateName"] = name + "-"
		}
		obj["spec"] = pod["spec"]
		return obj
	}
	obj["spec"] = d.workloadSpec(kind, name, pod)
	return obj
}

// workloadName returns a name; some look like those from which Istio infers another owner.
func (d draw) workloadName(kind string, number int) string {
	switch {
	case kind == "Job" && d.happensWithProbability(0.3):
		return fmt.Sprintf("backup-%d", pick(d, 27890123, 1700000000, 1234567, 123456789, 12345678901))
	case d.happensWithProbability(0.03):
		return fmt.Sprintf("a-very-long-name-that-goes-on-until-there-is-no-room-left-%d", number)
	case d.happensWithProbability(0.02):
		return fmt.Sprintf("%s-%d", strings.Repeat("longer.than-a.label-", 4), number)
	case d.happensWithProbability(0.05):
		return fmt.Sprintf("v1.web.%d", number)
	}
	return fmt.Sprintf("%s-%d", pick(d, "web", "shop", "cart", "db"), number)
}

// namespace returns one of the namespaces of the installations, mostly the one that is injected.
func (d draw) namespace() string {
	if d.happensWithProbability(0.9) {
		return "shop"
	}
	return pick(d, "plain", "off", "revised", "kube-system", "config", "1234", "both", "ambient", "ambient-injected",
		"local-path-storage")
}

// objectMetadata puts labels and annotations on the workload itself, which are none of the pod's.
func (d draw) objectMetadata(meta object) {
	if d.happensWithProbability(0.3) {
		meta["labels"] = object{"app": "outer", "sidecar.istio.io/inject": pick(d, "true", "false")}
	}
	if d.happensWithProbability(0.2) {
		meta["annotations"] = object{"sidecar.istio.io/proxyCPU": "3", "note": "of the workload"}
	}
}

func (d draw) workloadSpec(kind, name string, pod object) object {
	selector := object{"pick": name}
	labelsOf(pod)["pick"] = name
	spec := object{"template": pod}
	switch kind {
	case "ReplicationController":
		spec["selector"] = selector
	case "Job":
		d.jobSpec(spec)
	case "CronJob":
		d.jobSpec(spec)
		job := object{"spec": spec}
		if d.happensWithProbability(0.3) {
			job["metadata"] = object{"labels": object{"of": "the-job"},
				"annotations": object{"sidecar.istio.io/inject": "false"}}
		}
		out := object{"schedule": "0 3 * * *", "jobTemplate": job}
		if d.happensWithProbability(0.2) {
			out["timeZone"] = "Etc/UTC"
		}
		return out
	default:
		spec["selector"] = object{"matchLabels": selector}
	}
	if kind == "StatefulSet" {
		d.statefulSetSpec(spec)
	}
	if d.happensWithProbability(0.3) && (kind == "Deployment" || kind == "ReplicaSet" || kind == "StatefulSet") {
		spec["replicas"] = d.IntN(4)
	}
	return spec
}

func (d draw) statefulSetSpec(spec object) {
	spec["serviceName"] = "web"
	if d.happensWithProbability(0.2) {
		spec["volumeClaimTemplates"] = jsonList(object{"metadata": object{"name": "claimed"}, "spec": object{
			"accessModes": jsonList("ReadWriteOnce"), "resources": object{"requests": object{"storage": "1Gi"}}}})
	}
	if d.happensWithProbability(0.1) {
		spec["ordinals"] = object{"start": 5}
	}
}

func (d draw) jobSpec(spec object) {
	if d.happensWithProbability(0.4) {
		spec["backoffLimit"] = d.IntN(5)
	}
	if d.happensWithProbability(0.2) {
		spec["completions"], spec["parallelism"] = 3, 2
		if d.happensWithProbability(0.3) {
			spec["completionMode"] = "Indexed"
		}
	}
	if d.happensWithProbability(0.1) {
		spec["ttlSecondsAfterFinished"], spec["suspend"] = 60, true
	}
	pod, _ := spec["template"].(object)
	podSpec, _ := pod["spec"].(object)
	podSpec["restartPolicy"] = pick(d, "Never", "OnFailure")
}

// labelsOf returns the labels of a template, which may be added to.
func labelsOf(template object) object {
	return childObject(childObject(template, "metadata"), "labels")
}

// childObject returns the object at a key, creating it if missing.
func childObject(of object, key string) object {
	c, ok := of[key].(object)
	if !ok {
		c = object{}
		of[key] = c
	}
	return c
}

func (d draw) podTemplate(kind, name string) object {
	pod := object{"metadata": object{}, "spec": drawPodSpec(d, kind)}
	if d.happensWithProbability(0.85) {
		l := labelsOf(pod)
		for _, key := range pickSome(d, 0.3, "app", "version", "app.kubernetes.io/name", "app.kubernetes.io/version") {
			l[key] = pick(d, name, "v1", "payments", "Shop_1.0")
		}
		d.istioLabels(l)
	}
	d.addPodAnnotations(pod)
	d.addProxyNamedContainers(pod)
	d.writeEmptyFields(childObject(pod, "metadata"), 0.04, nothingsOfMetadata)
	d.nullValues(childObject(pod, "metadata"))
	if kind != "Pod" && d.happensWithProbability(0.02) {
		childObject(pod, "metadata")["namespace"] = "of-the-template" // no controller reads it
	}
	return pod
}

// istioLabels are the labels that Istio reads.
func (d draw) istioLabels(l object) {
	if d.happensWithProbability(0.12) {
		l["sidecar.istio.io/inject"] = pick(d, "true", "true", "true", "false", "yes", "")
	}
	if d.happensWithProbability(0.04) {
		l["istio.io/rev"] = pick(d, "default", "stable", "canary", "1-31")
	}
	d.chooseKeyValues(l, 0.03, istioLabels)
}

// choice is a key and the values that it may have.
type choice struct {
	key    string
	values []string
}

// chooseKeyValues sets each of the keys with the probability p to one of its values.
func (d draw) chooseKeyValues(to object, p float64, choices []choice) {
	for _, c := range choices {
		if d.happensWithProbability(p) {
			to[c.key] = pick(d, c.values...)
		}
	}
}

var istioLabels = []choice{
	{"service.istio.io/canonical-name", []string{"canonical", "odd.one", "x"}},
	{"service.istio.io/canonical-revision", []string{"v9"}},
	{"security.istio.io/tlsMode", []string{"disabled", "istio"}},
	{"topology.istio.io/network", []string{"own-network", ""}},
	{"networking.istio.io/tunnel", []string{"none"}},
	{"istio.io/gateway-name", []string{"gw"}},
	{"gateway.networking.k8s.io/gateway-name", []string{"gw"}},
	{"istio.io/dataplane-mode", []string{"ambient", "none"}},
	{"istio.io/use-waypoint", []string{"waypoint", "none"}},
	{"topology.istio.io/cluster", []string{"own-cluster"}},
	{"topology.istio.io/subzone", []string{"sub"}},
	{"service.istio.io/workload-name", []string{"own-workload"}},
	{"istio-injection", []string{"enabled", "disabled"}},
	{"inject-always", []string{"yes"}},
	{"inject-never", []string{"yes"}},
}
