// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// compared is a pod on its way through the rules.
type compared struct {
	v       *verifier
	pod     map[string]any // as the cluster has it
	origin  origin
	version *Workload      // that was committed
	want    map[string]any // the pod derived from the committed template
	found   map[string]any // the pod as it is compared
}

// rules describe what Kubernetes itself adds to pods, by the place in the pod. A change that no rule allows is
// reported as a change.
var rules = map[string]func(*compared, change) bool{
	"spec.nodeName":           added,
	"spec.serviceAccountName": addedDefaultAccount,
	"spec.serviceAccount":     addedDefaultAccount,
	"spec.tolerations":        (*compared).toleration,
	"spec.priority":           (*compared).priority,
	"spec.priorityClassName":  (*compared).priority,
	"spec.preemptionPolicy":   (*compared).priority,
	"spec.imagePullSecrets":   (*compared).pullSecret,
	"spec.volumes":            (*compared).accountVolume,
	"spec.overhead":           (*compared).runtimeClass,
	"spec.readinessGates":     (*compared).readinessGate,
	"spec.schedulingGates":    func(_ *compared, c change) bool { return c.found == nil && !c.order }, // they exist to be removed
	"metadata.finalizers":     (*compared).finalizer,
	"metadata.labels":         (*compared).label,
	"metadata.annotations":    (*compared).annotation,

	"spec.containers.volumeMounts":     (*compared).accountMount,
	"spec.initContainers.volumeMounts": (*compared).accountMount,
}

// allowed reports whether Kubernetes itself explains a change.
func (p *compared) allowed(c change) bool {
	place := c.place()
	if strings.HasPrefix(place, "metadata.labels.") || strings.HasPrefix(place, "metadata.annotations.") {
		place = strings.Join(strings.SplitN(place, ".", 3)[:2], ".")
	}
	if rule := rules[place]; rule != nil {
		return rule(p, c) || p.droppedByOlder(c)
	}
	switch {
	case strings.HasPrefix(place, "spec.nodeSelector."):
		return p.runtimeClass(c)
	case place == "spec.affinity", strings.HasPrefix(place, "spec.affinity.podAntiAffinity"):
		return p.rolloutAffinity(c)
	case strings.Contains(place, "ontainers.resources"):
		return p.limitRange(c)
	case strings.HasSuffix(place, "appArmorProfile"), strings.HasSuffix(place, ".securityContext") && onlyField(c, "appArmorProfile"):
		return p.appArmorField(c)
	}
	return droppedFeature(place, c) || p.droppedByOlder(c)
}

// onlyField reports whether a change adds or removes a map with one field.
func onlyField(c change, name string) bool {
	m, _ := c.found.(map[string]any)
	if c.found == nil {
		m, _ = c.want.(map[string]any)
	}
	_, ok := m[name]
	return ok && len(m) == 1
}

func added(_ *compared, c change) bool { return c.want == nil }

func addedDefaultAccount(_ *compared, c change) bool { return c.want == nil && c.found == "default" }

// daemonTolerations are those that the controller of DaemonSets adds, by key and effect.
var daemonTolerations = []string{
	"node.kubernetes.io/not-ready/NoExecute", "node.kubernetes.io/unreachable/NoExecute", "node.kubernetes.io/disk-pressure/NoSchedule",
	"node.kubernetes.io/memory-pressure/NoSchedule", "node.kubernetes.io/pid-pressure/NoSchedule",
	"node.kubernetes.io/unschedulable/NoSchedule", "node.kubernetes.io/network-unavailable/NoSchedule",
}

// daemonTolerates reports whether the controller of DaemonSets adds a toleration, whatever seconds it has.
func daemonTolerates(t map[string]any, hostNetwork bool) bool {
	return tolerates(t, daemonTolerations) && (hostNetwork || t["key"] != "node.kubernetes.io/network-unavailable")
}

// tolerates reports whether a toleration is for all values of one of these keys and effects.
func tolerates(t map[string]any, keys []string) bool {
	return t["operator"] == "Exists" && t["value"] == nil && slices.Contains(keys, fmt.Sprintf("%v/%v", t["key"], t["effect"]))
}

func (p *compared) toleration(c change) bool {
	t, ok := c.found.(map[string]any)
	if !ok {
		return false
	}
	// Admission adds the first two to every pod, with the seconds that the API server is configured with.
	seconds, timed := t["tolerationSeconds"]
	if timed && seconds != nil && tolerates(t, daemonTolerations[:2]) {
		return true
	}
	hostNetwork := at(p.want, "spec", "hostNetwork") == true
	if !timed && p.origin.direct.Kind == "DaemonSet" && daemonTolerates(t, hostNetwork) {
		return true
	}
	class := p.runtimeClassObject()
	for _, other := range list(class, "scheduling", "tolerations") {
		if reflect.DeepEqual(other, t) {
			return true
		}
	}
	return p.ofEarlierClass(c, class)
}

// runtimeClassObject returns the class that the committed pod names, or nil.
func (p *compared) runtimeClassObject() map[string]any {
	name := text(p.want, "spec", "runtimeClassName")
	if name == "" {
		return nil
	}
	return p.v.snapshot.objects[newRef("node.k8s.io/v1", "RuntimeClass", "", name)]
}

func (p *compared) runtimeClass(c change) bool {
	if c.want != nil || text(p.want, "spec", "runtimeClassName") == "" {
		return false
	}
	class := p.runtimeClassObject()
	says := at(class, "scheduling", "nodeSelector", c.last())
	if c.last() == "overhead" {
		says = at(class, "overhead", "podFixed")
	}
	return says != nil && sameJSON(c.found, says) || p.ofEarlierClass(c, class)
}

// ofEarlierClass reports whether what was added may be of the RuntimeClass that the committed pod names, as it was when the pod was made:
// the class was written to since, or was not read.
func (p *compared) ofEarlierClass(c change, class map[string]any) bool {
	if c.want != nil || text(p.want, "spec", "runtimeClassName") == "" || class == nil && p.v.snapshot.knows("RuntimeClass") {
		return false
	}
	return (class == nil || changed(class).After(created(p.pod))) && p.byAdmission(c)
}

// priority allows what admission resolves the class of a pod to.
func (p *compared) priority(c change) bool {
	if c.want != nil {
		return false
	}
	name := text(p.want, "spec", "priorityClassName")
	class := p.v.priorityClass(name)
	if name == "" {
		class = p.defaultClass(class)
	}
	if class == nil {
		if !p.v.snapshot.knows("PriorityClass") {
			return c.last() != "priorityClassName" || name == "" && p.byAdmission(c)
		}
		system := map[string]int64{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}[name]
		return c.last() == "priority" && sameJSON(c.found, system) || c.last() == "preemptionPolicy" && c.found == "PreemptLowerPriority"
	}
	switch c.last() {
	case "priority":
		// If a class is replaced by another one of its name, existing pods keep the old value.
		return sameJSON(c.found, class["value"]) || created(class).After(created(p.pod))
	case "priorityClassName":
		return c.found == text(class, "metadata", "name")
	}
	policy := text(class, "preemptionPolicy")
	return c.found == policy || policy == "" && c.found == "PreemptLowerPriority"
}

// defaultClass returns the class that a pod without one got when it was made: the default one of today, unless that was made the default
// since, or one that was it then. nil means none.
func (p *compared) defaultClass(now map[string]any) map[string]any {
	named := text(p.found, "spec", "priorityClassName")
	if named == "" && changed(now).After(created(p.pod)) {
		return nil
	}
	if named != "" && named != text(now, "metadata", "name") {
		if other := p.v.priorityClass(named); changed(other).After(created(p.pod)) {
			return other
		}
	}
	return now
}

// byAdmission reports whether a field that was added is not of the pod's workload, as far as that was read: then it was set when the pod
// was made, or later.
func (p *compared) byAdmission(c change) bool {
	return valueAt(p.origin.template, c.path) == nil
}

// account returns the service account of the committed pod, or nil.
func (p *compared) account() map[string]any {
	name := text(p.want, "spec", "serviceAccountName")
	if name == "" {
		name = "default"
	}
	return p.v.snapshot.objects[newRef("v1", "ServiceAccount", refOf(p.pod).Namespace, name)]
}

// mountsToken reports whether the pod gets the token of its account: as specified by the pod, or otherwise by the
// account, unless that was changed since.
func (p *compared) mountsToken() bool {
	if says := at(p.want, "spec", "automountServiceAccountToken"); says != nil {
		return says != false
	}
	account := p.account()
	return at(account, "automountServiceAccountToken") != false || changed(account).After(created(p.pod))
}

// secretTokens is the minor version of Kubernetes since which accounts have no Secrets with tokens of their own accord.
const secretTokens = 24

func (p *compared) pullSecret(c change) bool {
	if c.want != nil || len(list(p.want, "spec", "imagePullSecrets")) > 0 {
		return false
	}
	obj := p.account()
	if obj == nil {
		return !p.v.snapshot.knows("ServiceAccount")
	}
	if slices.ContainsFunc(list(obj, "imagePullSecrets"), func(s map[string]any) bool { return sameJSON(s, c.found) }) {
		return true
	}
	// Existing pods keep the values that it had before it was written to.
	return changed(obj).After(created(p.pod)) && p.byAdmission(c)
}

// accountVolumePrefix begins the name of the volume with the token of the service account.
const accountVolumePrefix = "kube-api-access-"

// accountVolume allows the volume that the service account admission adds, if it contains nothing else.
func (p *compared) accountVolume(c change) bool {
	volume, ok := c.found.(map[string]any)
	if !ok || c.want != nil || !p.mountsToken() {
		return false
	}
	name := text(volume, "name")
	if secret := text(volume, "secret", "secretName"); secret == name {
		account := text(p.found, "spec", "serviceAccountName")
		return p.v.snapshot.olderThan(secretTokens) && strings.HasPrefix(name, account+"-token-") && len(volume) == 2
	}
	if !strings.HasPrefix(name, accountVolumePrefix) || len(volume) != 2 {
		return false
	}
	for _, source := range list(volume, "projected", "sources") {
		switch {
		case len(source) != 1:
			return false
		case source["serviceAccountToken"] != nil:
			if text(source, "serviceAccountToken", "audience") != "" || text(source, "serviceAccountToken", "path") != "token" {
				return false
			}
		case source["downwardAPI"] != nil:
			items := list(source, "downwardAPI", "items")
			if len(items) != 1 || text(items[0], "fieldRef", "fieldPath") != "metadata.namespace" {
				return false
			}
		default:
			// OpenShift adds the second one.
			if name := text(source, "configMap", "name"); name != "kube-root-ca.crt" && name != "openshift-service-ca.crt" {
				return false
			}
		}
	}
	return true
}

func (p *compared) accountMount(c change) bool {
	mount, ok := c.found.(map[string]any)
	if !ok || c.want != nil || text(mount, "mountPath") != "/var/run/secrets/kubernetes.io/serviceaccount" || mount["readOnly"] != true || len(mount) != 3 {
		return false
	}
	name := text(mount, "name")
	return slices.ContainsFunc(list(p.found, "spec", "volumes"), func(volume map[string]any) bool {
		return volume["name"] == name && p.accountVolume(change{found: volume})
	})
}

func (p *compared) finalizer(c change) bool {
	return p.origin.direct.Kind == "Job" && c.want == nil && c.found == "batch.kubernetes.io/job-tracking"
}

// limitRangerAnnotation is the annotation in which LimitRanger lists what it has set in a pod.
const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// limitRanger returns what LimitRanger reports to have set in the pod. It annotates pods only: trusting a template
// with its text would allow any value to be forged.
func (p *compared) limitRanger() string {
	if table(p.origin.template, "metadata", "annotations")[limitRangerAnnotation] != nil {
		return ""
	}
	return text(p.pod, "metadata", "annotations", limitRangerAnnotation)
}

// limitRange allows requests and limits that LimitRanger has set, if it reports that in the pod and a LimitRange
// was written to since, or none is left. Values of LimitRanges that existed then and still exist are already in the
// committed pod.
func (p *compared) limitRange(c change) bool {
	said := p.limitRanger()
	if said == "" || c.want != nil || !p.byAdmission(c) {
		return false
	}
	limits := p.v.limits[refOf(p.pod).Namespace]
	if p.v.snapshot.knows("LimitRange") && len(limits) > 0 && len(p.v.limitsFor(p.pod)) == len(limits) {
		return false
	}
	container, kind := "", ""
	for i, s := range c.path {
		if s.element {
			container = s.key
		}
		if s.key == "limits" || s.key == "requests" {
			kind = strings.TrimSuffix(s.key, "s")
			if i+1 < len(c.path) {
				return saidOf(said, container, kind, c.last())
			}
		}
	}
	values, _ := c.found.(map[string]any)
	for name := range values {
		if kind == "" || !saidOf(said, container, kind, name) {
			return false
		}
	}
	return len(values) > 0
}

// saidOf reports whether LimitRanger lists a resource of a container as set by it.
func saidOf(said, container, kind, resource string) bool {
	for part := range strings.SplitSeq(strings.TrimPrefix(said, "LimitRanger plugin set: "), "; ") {
		names, of, ok := strings.Cut(part, " "+kind+" for ")
		if ok && strings.HasSuffix(of, "container "+container) && slices.Contains(strings.Split(names, ", "), resource) {
			return true
		}
	}
	return false
}

// sameJSON reports whether two values are the same when written.
func sameJSON(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
