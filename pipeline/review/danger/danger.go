// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package danger

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// Of returns the dangers of a change from before to after, either of which may be nil, in words.
func Of(before, after map[string]any) []string {
	object := after
	if object == nil {
		object = before
	}
	c := &change{before: before, after: after, kind: podmap.TextAt(object, "kind"), group: groupOf(object)}
	switch {
	case before != nil && after == nil:
		c.deletion()
	case after != nil:
		c.podRights()
		c.podVersions()
		c.objectItself()
	}
	return c.found
}

// change is one object.
type change struct {
	before, after map[string]any
	group, kind   string
	found         []string
}

func (c *change) add(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

// is reports whether the object is of a group and one of the kinds.
func (c *change) is(group string, kinds ...string) bool {
	for _, kind := range kinds {
		if c.group == group && c.kind == kind {
			return true
		}
	}
	return false
}

// deletion finds what the deletion of an object takes away, beside what is deleted with it (gate.Identity.Destroys).
func (c *change) deletion() {
	switch {
	case c.is("networking.k8s.io", "NetworkPolicy"):
		c.add("a NetworkPolicy is removed: what it keeps apart may connect")
	case c.is("policy", "PodDisruptionBudget"):
		c.add("a PodDisruptionBudget is removed: a drain may stop all pods at once")
	case c.is("apps", "StatefulSet"):
		c.add("a StatefulSet is deleted: its pods stop, and its claims stay or go with them by its retention policy")
	case c.is("apps", "DaemonSet"):
		c.add("a DaemonSet is deleted: its pods stop on every node")
	default:
		c.ownerDeleted()
	}
}

// objectItself finds what concerns no pod.
func (c *change) objectItself() {
	switch {
	case c.is("rbac.authorization.k8s.io", "ClusterRoleBinding", "RoleBinding"):
		c.binding()
	case c.is("rbac.authorization.k8s.io", "ClusterRole", "Role"):
		if hasWildcard(c.after) && !hasWildcard(c.before) {
			c.add("a rule permits every verb or every resource (*)")
		}
	case c.is("", "Service"):
		c.service()
	case c.is("", "Namespace"):
		c.namespace()
	}
	if c.before == nil {
		return
	}
	if c.is("apps", "StatefulSet") {
		old, now := podmap.ValueAt(c.before, "spec", "volumeClaimTemplates"), podmap.ValueAt(c.after, "spec", "volumeClaimTemplates")
		if !reflect.DeepEqual(old, now) {
			c.add("volumeClaimTemplates cannot change: the StatefulSet has to be created again")
		}
	}
	if c.is("apps", "Deployment", "StatefulSet", "ReplicaSet") || c.is("argoproj.io", "Rollout") {
		if number(podmap.ValueAt(c.after, "spec", "replicas")) == "0" && number(podmap.ValueAt(c.before, "spec", "replicas")) != "0" {
			c.add("replicas: 0 stops all of its pods")
		}
	}
	if podmap.ValueAt(c.after, "spec", "suspend") == true && podmap.ValueAt(c.before, "spec", "suspend") != true {
		c.add("suspend: true stops it")
	}
}

// binding finds rights over the cluster.
func (c *change) binding() {
	role := podmap.TextAt(c.after, "roleRef", "name")
	if podmap.TextAt(c.after, "roleRef", "kind") != "ClusterRole" || role != "cluster-admin" {
		return
	}
	if c.before != nil && podmap.TextAt(c.before, "roleRef", "name") == role &&
		reflect.DeepEqual(c.before["subjects"], c.after["subjects"]) {
		return
	}
	where := "the whole cluster"
	if c.kind == "RoleBinding" {
		where = "the namespace"
	}
	c.add("binds to cluster-admin, with every right in %s", where)
}

// hasWildcard reports whether a role permits all verbs, or all resources of a group.
func hasWildcard(role map[string]any) bool {
	for _, one := range list(role, "rules") {
		rule, _ := one.(map[string]any)
		for _, field := range []string{"verbs", "resources"} {
			for _, value := range list(rule, field) {
				if value == "*" {
					return true
				}
			}
		}
	}
	return false
}

// service finds other addresses, and a way in from outside.
func (c *change) service() {
	old, now := podmap.TextAt(c.before, "spec", "type"), podmap.TextAt(c.after, "spec", "type")
	exposes := func(kind string) bool { return kind == "LoadBalancer" || kind == "NodePort" }
	switch {
	case c.before == nil && exposes(now):
		c.add("a Service of type %s opens it to the outside of the cluster", now)
	case c.before != nil && old != now:
		c.add("spec.type changes from %s to %s, and with it who reaches the Service", orDefault(old), orDefault(now))
	}
	if c.before == nil {
		return
	}
	if old, now := podmap.TextAt(c.before, "spec", "clusterIP"), podmap.TextAt(c.after, "spec", "clusterIP"); old != now {
		c.add("spec.clusterIP cannot change: the Service has to be created again")
	}
}

func orDefault(kind string) string {
	if kind == "" {
		return "ClusterIP"
	}
	return kind
}

// injectionLabels have sidecars injected into the pods of a namespace.
var injectionLabels = []string{"istio-injection", "istio.io/rev", "linkerd.io/inject"}

// namespace finds labels that pods lose their sidecars or limits by.
func (c *change) namespace() {
	for _, label := range injectionLabels {
		old, now := podmap.TextAt(c.before, "metadata", "labels", label), podmap.TextAt(c.after, "metadata", "labels", label)
		if old != "" && old != "disabled" && (now == "" || now == "disabled") {
			c.add("without the label %s, new pods get no sidecar", label)
		}
	}
	const enforce = "pod-security.kubernetes.io/enforce"
	old, now := podmap.TextAt(c.before, "metadata", "labels", enforce), podmap.TextAt(c.after, "metadata", "labels", enforce)
	strict := map[string]int{"privileged": 0, "": 0, "baseline": 1, "restricted": 2}
	if c.before != nil && strict[now] < strict[old] {
		c.add("Pod Security enforces %s in the place of %s", orNone(now), old)
	}
}

func orNone(level string) string {
	if level == "" {
		return "nothing"
	}
	return level
}

func groupOf(object map[string]any) string {
	group, _, found := strings.Cut(podmap.TextAt(object, "apiVersion"), "/")
	if !found {
		return ""
	}
	return group
}

func list(object map[string]any, path ...string) []any {
	value, _ := podmap.ValueAt(object, path...).([]any)
	return value
}

func number(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
