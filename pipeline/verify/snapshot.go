// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/fn/podmap"
)

// Snapshot is what was read of a cluster. The zero value is an empty one.
type Snapshot struct {
	// KubernetesVersion of the API server, such as v1.34.2; "" where it is not known.
	KubernetesVersion string
	// Unread lists the resources that could not be read or were not requested, such as serviceaccounts: checks that
	// depend on them are skipped.
	Unread []string

	pods      []map[string]any
	objects   map[Ref]map[string]any
	revisions map[string][]map[string]any // ControllerRevisions by namespace
	limits    map[string][]map[string]any // LimitRanges by namespace
	classes   []map[string]any            // PriorityClasses
	webhooks  []map[string]any            // MutatingWebhookConfigurations
	policies  []map[string]any            // MutatingAdmissionPolicies
	kinds     map[string]bool
}

// Kinds are those that a Snapshot makes use of, beside custom kinds that own pods: all others can be left out.
var Kinds = []string{
	"Pod", "ReplicationController", "Namespace", "LimitRange", "ServiceAccount", "PriorityClass", "RuntimeClass", "Deployment", "ReplicaSet",
	"StatefulSet", "DaemonSet", "ControllerRevision", "Job", "CronJob", "MutatingWebhookConfiguration", "MutatingAdmissionPolicy", "Rollout",
}

// Add adds an object as returned by the API server, with integers as int64. Add does not modify the object, which
// must not be modified later.
func (s *Snapshot) Add(obj map[string]any) {
	if s.objects == nil {
		s.objects = map[Ref]map[string]any{}
		s.revisions, s.limits = map[string][]map[string]any{}, map[string][]map[string]any{}
	}
	ref := refOf(obj)
	s.Read(ref.Kind)
	switch ref.Kind {
	case "Pod":
		s.pods = append(s.pods, obj)
	case "ControllerRevision":
		s.revisions[ref.Namespace] = append(s.revisions[ref.Namespace], obj)
	case "LimitRange":
		s.limits[ref.Namespace] = append(s.limits[ref.Namespace], obj)
	case "PriorityClass":
		s.classes = append(s.classes, obj)
	case "MutatingWebhookConfiguration":
		s.webhooks = append(s.webhooks, obj)
	case "MutatingAdmissionPolicy":
		s.policies = append(s.policies, obj)
	default:
		s.objects[ref] = obj
	}
}

// Read records that a resource was read, even if it has no objects.
func (s *Snapshot) Read(kind string) {
	if s.kinds == nil {
		s.kinds = map[string]bool{}
	}
	s.kinds[kind] = true
}

// Pods returns the number of pods.
func (s *Snapshot) Pods() int { return len(s.pods) }

// hasReadKind reports whether the objects of a kind were read.
func (s *Snapshot) hasReadKind(kind string) bool { return s.kinds[kind] }

// olderThan reports whether the API server is known to be of a version before 1.MINOR.
func (s *Snapshot) olderThan(minor int) bool {
	its := 0
	_, err := fmt.Sscanf(strings.TrimPrefix(s.KubernetesVersion, "v"), "1.%d", &its)
	return err == nil && its < minor
}

// unreadKinds returns what was not read, for the report.
func (s *Snapshot) unreadKinds() []string {
	out := slices.Clone(s.Unread)
	needed := map[string]string{"ReplicaSet": "replicasets", "ServiceAccount": "serviceaccounts", "PriorityClass": "priorityclasses"}
	// Many clusters have none of these, so their absence from saved objects is irrelevant unless a pod depends on
	// one.
	for _, pod := range s.pods {
		if podmap.TextAt(pod, "spec", "runtimeClassName") != "" {
			needed["RuntimeClass"] = "runtimeclasses"
		}
		if podmap.TextAt(pod, "metadata", "annotations", limitRangerAnnotation) != "" {
			needed["LimitRange"] = "limitranges"
		}
	}
	for kind, resource := range needed {
		if !s.hasReadKind(kind) && !slices.Contains(out, resource) {
			out = append(out, resource)
		}
	}
	slices.Sort(out)
	return out
}

// controllerRevision returns the revision of an owner that a pod was made of, by the hash in its label, or nil.
func (s *Snapshot) controllerRevision(owner Ref, hash string) map[string]any {
	for _, r := range s.revisions[owner.Namespace] {
		if ref := controllerRef(r); ref == nil || newRef(podmap.TextAt(ref, "apiVersion"), podmap.TextAt(ref, "kind"), owner.Namespace, podmap.TextAt(ref, "name")) != owner {
			continue
		}
		// Pods of a StatefulSet have the revision's name, those of a DaemonSet the hash in its label.
		if podmap.TextAt(r, "metadata", "name") == hash || podmap.TextAt(r, "metadata", "labels", "controller-revision-hash") == hash {
			return r
		}
	}
	return nil
}

// controllerRef returns the owner reference that controls an object, or nil.
func controllerRef(obj map[string]any) map[string]any {
	for _, ref := range mapsAtPath(obj, "metadata", "ownerReferences") {
		if controls, _ := ref["controller"].(bool); controls {
			return ref
		}
	}
	return nil
}

// creationTime returns when an object was created.
func creationTime(obj map[string]any) time.Time {
	t, _ := time.Parse(time.RFC3339, podmap.TextAt(obj, "metadata", "creationTimestamp"))
	return t
}

// lastWriteTime returns when an object was last written to, as far as it is recorded.
func lastWriteTime(obj map[string]any) time.Time {
	last := creationTime(obj)
	for _, entry := range mapsAtPath(obj, "metadata", "managedFields") {
		if t, err := time.Parse(time.RFC3339, podmap.TextAt(entry, "time")); err == nil && t.After(last) {
			last = t
		}
	}
	return last
}
