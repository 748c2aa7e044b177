// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// allowsControllerLabel allows the labels that controllers add, as far as it can be checked with the values that they
// have.
func (p *compared) allowsControllerLabel(c change) bool {
	if c.found == nil {
		return false
	}
	owner := p.origin.direct
	switch key := c.lastPathKey(); key {
	case "pod-template-hash", "rollouts-pod-template-hash":
		hash, _ := c.found.(string)
		return owner.Kind == "ReplicaSet" && strings.HasSuffix(owner.Name, "-"+hash)
	case "controller-revision-hash", "pod-template-generation":
		return owner.Kind == "DaemonSet" || owner.Kind == "StatefulSet" || !owner.builtIn()
	case "statefulset.kubernetes.io/pod-name":
		return owner.Kind == "StatefulSet" && c.found == podmap.TextAt(p.pod, "metadata", "name")
	case "apps.kubernetes.io/pod-index":
		index, _ := c.found.(string)
		return owner.Kind == "StatefulSet" && strings.HasSuffix(podmap.TextAt(p.pod, "metadata", "name"), "-"+index)
	case "controller-uid", "batch.kubernetes.io/controller-uid":
		return owner.Kind == "Job" && c.found == podmap.TextAt(controllerRef(p.pod), "uid")
	case "job-name", "batch.kubernetes.io/job-name":
		return owner.Kind == "Job" && c.found == owner.Name
	case jobIndexAnnotation:
		return owner.Kind == "Job" && c.found == podmap.TextAt(p.pod, "metadata", "annotations", jobIndexAnnotation)
	case "topology.kubernetes.io/zone", "topology.kubernetes.io/region":
		return c.want == nil && podmap.TextAt(p.pod, "spec", "nodeName") != "" // of the node, when the pod is bound
	}
	return c.want == nil && p.controllerSet(c) || p.isRolloutMetadata(c)
}

// runtimeAnnotations are written to running pods by their runtime: network plugins record addresses in them.
var runtimeAnnotations = []string{
	"cni.projectcalico.org/containerID", "cni.projectcalico.org/podIP", "cni.projectcalico.org/podIPs", "k8s.v1.cni.cncf.io/network-status",
	"k8s.v1.cni.cncf.io/networks-status", "k8s.ovn.org/pod-networks", "vpc.amazonaws.com/pod-ips",
}

// ambientRedirection is the annotation in which Istio's CNI agent records the progress of a pod into an ambient
// mesh, and redirections its values (source: cni/pkg/util/podutil.go of istio/istio).
const ambientRedirection = "ambient.istio.io/redirection"

var redirections = []any{"enabled", "pending"}

// jobFailureAnnotations are counted by the controller of Jobs with backoffLimitPerIndex (source: pkg/controller/job of k8s.io/kubernetes).
var jobFailureAnnotations = []string{"batch.kubernetes.io/job-index-failure-count", "batch.kubernetes.io/job-index-ignored-failure-count"}

func (p *compared) allowsControllerAnnotation(c change) bool {
	if c.found == nil {
		return false
	}
	key := c.lastPathKey()
	switch {
	case key == limitRangerAnnotation && c.want == nil:
		return p.limitRanger() != ""
	case key == lastApplied:
		return p.origin.direct.Kind == "Pod" // kubectl apply
	case key == "kubectl.kubernetes.io/restartedAt":
		return true // kubectl rollout restart
	case key == jobIndexAnnotation:
		return p.origin.direct.Kind == "Job"
	case slices.Contains(jobFailureAnnotations, key):
		return p.origin.direct.Kind == "Job" && c.want == nil
	case key == "batch.kubernetes.io/cronjob-scheduled-timestamp":
		return p.origin.direct.Kind == "Job" && c.want == nil
	case slices.Contains(runtimeAnnotations, key):
		return c.want == nil
	case key == ambientRedirection:
		return c.want == nil && slices.Contains(redirections, c.found) && p.origin.lacksField(c)
	case strings.HasPrefix(key, appArmorAnnotation):
		return sameAppArmor(p.want, p.found, strings.TrimPrefix(key, appArmorAnnotation))
	}
	return c.want == nil && p.controllerSet(c) || p.isRolloutMetadata(c)
}

// controllerSet reports whether a pod's own controller, which is not one of Kubernetes', has set a field when it made the
// pod: what such a controller adds cannot be known here. Its object is the committed one, or was read.
func (p *compared) controllerSet(c change) bool {
	if p.origin.direct.builtIn() || p.origin.direct != p.version.Ref && p.origin.owner == nil {
		return false
	}
	by := creatingManagerEntry(managersByTime(p.pod), p.pod)
	return by != nil && by.ownsFieldAt(c.path)
}

// appArmorAnnotation begins the annotation that was the field appArmorProfile before Kubernetes 1.30, followed by the name
// of a container. The API server keeps both alike.
const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/"

func (p *compared) appArmorField(c change) bool {
	for _, s := range c.path {
		if s.element {
			return sameAppArmor(p.want, p.found, s.key)
		}
	}
	return false
}

// sameAppArmor reports whether a container has the same profile in both pods, in whichever way it is written.
func sameAppArmor(want, found map[string]any, container string) bool {
	profile := func(pod map[string]any) string {
		for _, key := range []string{"containers", "initContainers"} {
			for _, c := range mapsAtPath(pod, "spec", key) {
				if c["name"] != container {
					continue
				}
				if field := podmap.MapAt(c, "securityContext", "appArmorProfile"); field != nil {
					return appArmorText(field)
				}
			}
		}
		if said := podmap.TextAt(pod, "metadata", "annotations", appArmorAnnotation+container); said != "" {
			return said
		}
		return appArmorText(podmap.MapAt(pod, "spec", "securityContext", "appArmorProfile"))
	}
	return profile(want) == profile(found)
}

// appArmorText writes a profile as the annotation does.
func appArmorText(field map[string]any) string {
	switch podmap.TextAt(field, "type") {
	case "Unconfined":
		return "unconfined"
	case "RuntimeDefault":
		return "runtime/default"
	case "Localhost":
		return "localhost/" + podmap.TextAt(field, "localhostProfile")
	}
	return ""
}
