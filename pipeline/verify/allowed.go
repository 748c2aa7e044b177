// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
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
	"spec.nodeName":           isAddedField,
	"spec.serviceAccountName": addedDefaultAccount,
	"spec.serviceAccount":     addedDefaultAccount,
	"spec.tolerations":        (*compared).allowsInjectedToleration,
	"spec.priority":           (*compared).allowsResolvedPriority,
	"spec.priorityClassName":  (*compared).allowsResolvedPriority,
	"spec.preemptionPolicy":   (*compared).allowsResolvedPriority,
	"spec.imagePullSecrets":   (*compared).pullSecret,
	"spec.volumes":            (*compared).accountVolume,
	"spec.overhead":           (*compared).runtimeClass,
	"spec.readinessGates":     (*compared).readinessGate,
	"spec.schedulingGates":    func(_ *compared, c change) bool { return c.found == nil && !c.order }, // they exist to be removed
	"metadata.finalizers":     (*compared).allowsJobFinalizer,
	"metadata.labels":         (*compared).allowsControllerLabel,
	"metadata.annotations":    (*compared).allowsControllerAnnotation,

	"spec.containers.volumeMounts":     (*compared).accountMount,
	"spec.initContainers.volumeMounts": (*compared).accountMount,
}

// isAllowedChange reports whether Kubernetes itself explains a change.
func (p *compared) isAllowedChange(c change) bool {
	place := c.placeWithoutIdentities()
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

func isAddedField(_ *compared, c change) bool { return c.want == nil }

func addedDefaultAccount(_ *compared, c change) bool { return c.want == nil && c.found == "default" }

// daemonTolerations are those that the controller of DaemonSets adds, by key and effect.
var daemonTolerations = []string{
	"node.kubernetes.io/not-ready/NoExecute", "node.kubernetes.io/unreachable/NoExecute", "node.kubernetes.io/disk-pressure/NoSchedule",
	"node.kubernetes.io/memory-pressure/NoSchedule", "node.kubernetes.io/pid-pressure/NoSchedule",
	"node.kubernetes.io/unschedulable/NoSchedule", "node.kubernetes.io/network-unavailable/NoSchedule",
}

// daemonTolerates reports whether the controller of DaemonSets adds a toleration, whatever seconds it has.
func daemonTolerates(t map[string]any, hostNetwork bool) bool {
	return toleratesAllKeys(t, daemonTolerations) && (hostNetwork || t["key"] != "node.kubernetes.io/network-unavailable")
}

// toleratesAllKeys reports whether a toleration is for all values of one of these keys and effects.
func toleratesAllKeys(t map[string]any, keys []string) bool {
	return t["operator"] == "Exists" && t["value"] == nil && slices.Contains(keys, fmt.Sprintf("%v/%v", t["key"], t["effect"]))
}

func (p *compared) allowsInjectedToleration(c change) bool {
	t, ok := c.found.(map[string]any)
	if !ok {
		return false
	}
	// Admission adds the first two to every pod, with the seconds that the API server is configured with.
	seconds, timed := t["tolerationSeconds"]
	if timed && seconds != nil && toleratesAllKeys(t, daemonTolerations[:2]) {
		return true
	}
	hostNetwork := podmap.ValueAt(p.want, "spec", "hostNetwork") == true
	if !timed && p.origin.direct.Kind == "DaemonSet" && daemonTolerates(t, hostNetwork) {
		return true
	}
	class := p.runtimeClassObject()
	for _, other := range mapsAtPath(class, "scheduling", "tolerations") {
		if reflect.DeepEqual(other, t) {
			return true
		}
	}
	return p.ofEarlierClass(c, class)
}

// runtimeClassObject returns the class that the committed pod names, or nil.
func (p *compared) runtimeClassObject() map[string]any {
	name := podmap.TextAt(p.want, "spec", "runtimeClassName")
	if name == "" {
		return nil
	}
	return p.v.snapshot.objects[newRef("node.k8s.io/v1", "RuntimeClass", "", name)]
}

func (p *compared) runtimeClass(c change) bool {
	if c.want != nil || podmap.TextAt(p.want, "spec", "runtimeClassName") == "" {
		return false
	}
	class := p.runtimeClassObject()
	says := podmap.ValueAt(class, "scheduling", "nodeSelector", c.lastPathKey())
	if c.lastPathKey() == "overhead" {
		says = podmap.ValueAt(class, "overhead", "podFixed")
	}
	return says != nil && sameJSON(c.found, says) || p.ofEarlierClass(c, class)
}

// ofEarlierClass reports whether what was added may be of the RuntimeClass that the committed pod names, as it was when the pod was made:
// the class was written to since, or was not read.
func (p *compared) ofEarlierClass(c change, class map[string]any) bool {
	if c.want != nil || podmap.TextAt(p.want, "spec", "runtimeClassName") == "" || class == nil && p.v.snapshot.hasReadKind("RuntimeClass") {
		return false
	}
	return (class == nil || lastWriteTime(class).After(creationTime(p.pod))) && p.origin.lacksField(c)
}

// allowsResolvedPriority allows what admission resolves the class of a pod to.
func (p *compared) allowsResolvedPriority(c change) bool {
	if c.want != nil {
		return false
	}
	name := podmap.TextAt(p.want, "spec", "priorityClassName")
	class := p.v.priorityClass(name)
	if name == "" {
		class = p.defaultClass(class)
	}
	if class == nil {
		if !p.v.snapshot.hasReadKind("PriorityClass") {
			return c.lastPathKey() != "priorityClassName" || name == "" && p.origin.lacksField(c)
		}
		system := map[string]int64{"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}[name]
		return c.lastPathKey() == "priority" && sameJSON(c.found, system) || c.lastPathKey() == "preemptionPolicy" && c.found == "PreemptLowerPriority"
	}
	switch c.lastPathKey() {
	case "priority":
		// If a class is replaced by another one of its name, existing pods keep the old value.
		return sameJSON(c.found, class["value"]) || creationTime(class).After(creationTime(p.pod))
	case "priorityClassName":
		return c.found == podmap.TextAt(class, "metadata", "name")
	}
	policy := podmap.TextAt(class, "preemptionPolicy")
	return c.found == policy || policy == "" && c.found == "PreemptLowerPriority"
}

// defaultClass returns the class that a pod without one got when it was made: the default one of today, unless that was made the default
// since, or one that was it then. nil means none.
func (p *compared) defaultClass(now map[string]any) map[string]any {
	named := podmap.TextAt(p.found, "spec", "priorityClassName")
	if named == "" && lastWriteTime(now).After(creationTime(p.pod)) {
		return nil
	}
	if named != "" && named != podmap.TextAt(now, "metadata", "name") {
		if other := p.v.priorityClass(named); lastWriteTime(other).After(creationTime(p.pod)) {
			return other
		}
	}
	return now
}

// lacksField reports whether a field that was added is not of the pod's workload, as far as that was read: then it was
// set when the pod was made, or later.
func (o origin) lacksField(c change) bool {
	return valueAt(o.template, c.path) == nil
}

// committedServiceAccount returns the service account of the committed pod, or nil.
func (p *compared) committedServiceAccount() map[string]any {
	name := podmap.TextAt(p.want, "spec", "serviceAccountName")
	if name == "" {
		name = "default"
	}
	return p.v.snapshot.objects[newRef("v1", "ServiceAccount", refOf(p.pod).Namespace, name)]
}

// mountsToken reports whether the pod gets the token of its account: as specified by the pod, or otherwise by the
// account, unless that was changed since.
func (p *compared) mountsToken() bool {
	if says := podmap.ValueAt(p.want, "spec", "automountServiceAccountToken"); says != nil {
		return says != false
	}
	account := p.committedServiceAccount()
	return podmap.ValueAt(account, "automountServiceAccountToken") != false || lastWriteTime(account).After(creationTime(p.pod))
}

// secretTokens is the minor version of Kubernetes since which accounts have no Secrets with tokens of their own accord.
const secretTokens = 24

func (p *compared) pullSecret(c change) bool {
	if c.want != nil || len(mapsAtPath(p.want, "spec", "imagePullSecrets")) > 0 {
		return false
	}
	obj := p.committedServiceAccount()
	if obj == nil {
		return !p.v.snapshot.hasReadKind("ServiceAccount")
	}
	if slices.ContainsFunc(mapsAtPath(obj, "imagePullSecrets"), func(s map[string]any) bool { return sameJSON(s, c.found) }) {
		return true
	}
	// Existing pods keep the values that it had before it was written to.
	return lastWriteTime(obj).After(creationTime(p.pod)) && p.origin.lacksField(c)
}

// accountVolumePrefix begins the name of the volume with the token of the service account.
const accountVolumePrefix = "kube-api-access-"

// accountVolume allows the volume that the service account admission adds, if that is its only content.
func (p *compared) accountVolume(c change) bool {
	volume, ok := c.found.(map[string]any)
	if !ok || c.want != nil || !p.mountsToken() {
		return false
	}
	name := podmap.TextAt(volume, "name")
	if secret := podmap.TextAt(volume, "secret", "secretName"); secret == name {
		account := podmap.TextAt(p.found, "spec", "serviceAccountName")
		return p.v.snapshot.olderThan(secretTokens) && strings.HasPrefix(name, account+"-token-") && len(volume) == 2
	}
	if !strings.HasPrefix(name, accountVolumePrefix) || len(volume) != 2 {
		return false
	}
	for _, source := range mapsAtPath(volume, "projected", "sources") {
		switch {
		case len(source) != 1:
			return false
		case source["serviceAccountToken"] != nil:
			if podmap.TextAt(source, "serviceAccountToken", "audience") != "" || podmap.TextAt(source, "serviceAccountToken", "path") != "token" {
				return false
			}
		case source["downwardAPI"] != nil:
			items := mapsAtPath(source, "downwardAPI", "items")
			if len(items) != 1 || podmap.TextAt(items[0], "fieldRef", "fieldPath") != "metadata.namespace" {
				return false
			}
		default:
			// OpenShift adds the second one.
			if name := podmap.TextAt(source, "configMap", "name"); name != "kube-root-ca.crt" && name != "openshift-service-ca.crt" {
				return false
			}
		}
	}
	return true
}

func (p *compared) accountMount(c change) bool {
	mount, ok := c.found.(map[string]any)
	if !ok || c.want != nil || podmap.TextAt(mount, "mountPath") != "/var/run/secrets/kubernetes.io/serviceaccount" || mount["readOnly"] != true || len(mount) != 3 {
		return false
	}
	name := podmap.TextAt(mount, "name")
	return slices.ContainsFunc(mapsAtPath(p.found, "spec", "volumes"), func(volume map[string]any) bool {
		return volume["name"] == name && p.accountVolume(change{found: volume})
	})
}

func (p *compared) allowsJobFinalizer(c change) bool {
	return p.origin.direct.Kind == "Job" && c.want == nil && c.found == "batch.kubernetes.io/job-tracking"
}

// limitRangerAnnotation is the annotation in which LimitRanger lists what it has set in a pod.
const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// limitRanger returns what LimitRanger reports to have set in the pod. It annotates pods only: trusting a template
// with its text would allow any value to be forged.
func (p *compared) limitRanger() string {
	if podmap.MapAt(p.origin.template, "metadata", "annotations")[limitRangerAnnotation] != nil {
		return ""
	}
	return podmap.TextAt(p.pod, "metadata", "annotations", limitRangerAnnotation)
}

// limitRange allows requests and limits that LimitRanger has set, if it reports that in the pod and a LimitRange
// was written to since, or none is left. Values of LimitRanges that existed then and still exist are already in the
// committed pod.
func (p *compared) limitRange(c change) bool {
	said := p.limitRanger()
	if said == "" || c.want != nil || !p.origin.lacksField(c) {
		return false
	}
	limits := p.v.limits[refOf(p.pod).Namespace]
	if p.v.snapshot.hasReadKind("LimitRange") && len(limits) > 0 && len(p.v.limitsFor(p.pod)) == len(limits) {
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
				return limitRangerListsResource(said, container, kind, c.lastPathKey())
			}
		}
	}
	values, _ := c.found.(map[string]any)
	for name := range values {
		if kind == "" || !limitRangerListsResource(said, container, kind, name) {
			return false
		}
	}
	return len(values) > 0
}

// limitRangerListsResource reports whether LimitRanger lists a resource of a container as set by it.
func limitRangerListsResource(said, container, kind, resource string) bool {
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
