// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"slices"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// origin is where a pod comes from.
type origin struct {
	// workloads are what may be committed for the pod, the likeliest first: the object at the top of its owners, and those
	// on the way, since a ReplicaSet or a Job can be committed too.
	workloads []Ref
	// direct is what made the pod, or the pod itself.
	direct Ref
	// owner is direct as it was read, or nil.
	owner map[string]any
	// top is the workload as it was read, or nil.
	top map[string]any
	// template is the template that the owner made the pod of, or nil where it was not read.
	template map[string]any
	// forged reports whether the owner's uid differs from the one in the pod.
	forged bool
}

// maxOwners bounds how far owners are followed.
const maxOwners = 8

// resolveOwnerChain follows the owners of a pod.
func (s *Snapshot) resolveOwnerChain(pod map[string]any, registry *workload.Registry) origin {
	self := refOf(pod)
	o := origin{direct: self}
	ref := controllerRef(pod)
	if ref == nil {
		o.workloads = []Ref{self}
		return o
	}
	var above []Ref
	for i := 0; ref != nil && i < maxOwners; i++ {
		r := newRef(podmap.TextAt(ref, "apiVersion"), podmap.TextAt(ref, "kind"), self.Namespace, podmap.TextAt(ref, "name"))
		above = append(above, r)
		obj := s.objects[r]
		if i == 0 {
			o.direct, o.owner = r, obj
			if obj != nil && podmap.TextAt(obj, "metadata", "uid") != podmap.TextAt(ref, "uid") {
				// A pod that is being deleted outlives its owner, which may have been recreated by now.
				o.owner, o.forged = nil, podmap.ValueAt(pod, "metadata", "deletionTimestamp") == nil
			}
		}
		if obj == nil {
			above = append(above, guessOwnersByName(pod, r)...)
			break
		}
		o.top = obj
		ref = controllerRef(obj)
	}
	slices.Reverse(above)
	o.workloads = above
	o.template = s.ownersTemplate(pod, o, registry)
	return o
}

// guessOwnersByName returns the possible owners of an owner that was not read, by the naming schemes of controllers. An
// owner that is not built into Kubernetes is not resolved: a made-up group could otherwise pass for any workload.
func guessOwnersByName(pod map[string]any, owner Ref) []Ref {
	if !owner.builtIn() {
		return nil
	}
	o := workload.OfPod(pod)
	if o.Name == "" || o.Name == owner.Name && o.Kind == owner.Kind {
		return nil
	}
	group := map[string]string{"Deployment": "apps/v1", "CronJob": "batch/v1", "Rollout": "argoproj.io/v1alpha1", "DeploymentConfig": "apps.openshift.io/v1"}[o.Kind]
	if group == "" {
		return nil
	}
	return []Ref{newRef(group, o.Kind, owner.Namespace, o.Name)}
}

// ownersTemplate returns the template that a pod's owner has, or had when it made the pod, as metadata and spec.
func (s *Snapshot) ownersTemplate(pod map[string]any, o origin, registry *workload.Registry) map[string]any {
	hash := podmap.TextAt(pod, "metadata", "labels", "controller-revision-hash")
	switch o.direct.Kind {
	case "StatefulSet", "DaemonSet":
		if revision := s.controllerRevision(o.direct, hash); revision != nil {
			return podmap.MapAt(revision, "data", "spec", "template")
		}
		if hash != "" {
			return nil // the owner's template may be newer than the pod
		}
	}
	if o.owner == nil || o.forged {
		return nil
	}
	templates, err := registry.Templates(o.owner)
	if err != nil || len(templates) != 1 {
		return nil
	}
	return templates[0].Pod
}
