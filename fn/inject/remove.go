// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/workload"
)

// RemoveRequest is one pod to take an injection out of.
type RemoveRequest struct {
	// Pod has the keys metadata and spec. It is not changed.
	Pod map[string]any
	// Owner is the workload that the pod belongs to; its name tells an injected label from the pod's own.
	Owner workload.Owner
	// Injector is the configuration that injected the pod, where it is known. It tells more of what is the injection's: what
	// injecting without a label, an annotation or dnsConfig sets to the same value is taken out.
	Injector *istio.Injector
	// Namespace is the one that the pod was injected in; it counts with an Injector only.
	Namespace Namespace
}

// Removed is a pod without injection.
type Removed struct {
	// Pod is the pod as it was before it was injected, as far as that can be known. It shares nothing with the request.
	Pod map[string]any
	// Injected says that the pod had been injected. Where it had not, Pod is a copy of the request's.
	Injected bool
	// Exact says that the pod comes from its record and is what it was to the last field.
	Exact bool
	// Assumed are the fields whose value is the one that injection sets, and that were taken for the injection's although
	// the pod may have had the same value before.
	Assumed []Note
	// Unknown are the fields whose former value cannot be known any more.
	Unknown []Note
	// Listed are the containers that the status annotation lists and that none of Istio's own templates has: a template of
	// the user's own added them, or the annotation is not true and they are the application's.
	Listed []string
}

// Note is about one field of a pod.
type Note struct {
	// Field is its path, such as spec.containers[app].livenessProbe.httpGet.port, and Reason a sentence without a full stop.
	Field, Reason string
}

// String is the field and the reason.
func (n Note) String() string { return n.Field + ": " + n.Reason }

// Remove takes an injection of any version of Istio out of a pod: by the record that RecordOriginal left in it, else by
// what every injection leaves (the status annotation, the probes and Prometheus settings in the proxy's environment, the
// user's own containers in an annotation) and by the values that injection is known to set.
func Remove(req RemoveRequest) (Removed, error) {
	p, err := newPod(req.Pod)
	if err != nil {
		return Removed{}, err
	}
	if out, ok, err := restoreRecord(p); ok || err != nil {
		return out, err
	}
	if _, ok := p.annotation(statusAnnotation); !ok {
		return Removed{Pod: p.object()}, nil
	}
	injected := p.copy()
	r := &removal{pod: p, owner: req.Owner, certain: map[string]bool{}}
	if err := r.run(); err != nil {
		return Removed{}, err
	}
	if req.Injector != nil {
		r.compare(req, injected)
	}
	return Removed{Pod: p.object(), Injected: true, Assumed: r.assumed, Unknown: r.unknown, Listed: r.listed}, nil
}

// removal takes one injection out.
type removal struct {
	pod   *pod
	owner workload.Owner
	// status is what the injection says it added. appended says that it is of Istio up to 1.8, which added at the end of
	// lists and did not merge.
	status   status
	appended bool
	// proxy is the injected proxy's container, with its environment as it was found.
	proxy map[string]any
	env   map[string]string

	// certain are the annotations whose former value the proxy knew.
	certain map[string]bool

	assumed, unknown []Note
	listed           []string
}

func (r *removal) assume(field, reason string) {
	r.assumed = append(r.assumed, Note{field, reason})
}

func (r *removal) cannotKnow(field, reason string) {
	r.unknown = append(r.unknown, Note{field, reason})
}

func (r *removal) run() error {
	r.readStatus()
	r.readProxy()
	own, err := overridesOf(r.pod)
	if err != nil {
		return err
	}
	r.noteReplaced()
	r.noteOpenShift(own)
	for i := range own.Containers {
		own.Containers[i] = asWritten(own.Containers[i])
	}
	for i := range own.InitContainers {
		own.InitContainers[i] = asWritten(own.InitContainers[i])
	}
	r.removeContainers(own)
	if err := r.restoreProbes(); err != nil {
		return err
	}
	r.removeVolumes()
	r.removePullSecrets()
	r.restoreSecurity()
	r.restoreDNS()
	if err := r.restoreAnnotations(); err != nil {
		return err
	}
	r.restoreLabels()
	return nil
}

// readStatus reads the status annotation. One that lists nothing is of an injection before lists were written, whose names
// have never changed.
func (r *removal) readStatus() {
	text, _ := r.pod.annotation(statusAnnotation)
	var version struct {
		Version *string `json:"version"`
	}
	s, ok := r.pod.status()
	if ok {
		_ = json.Unmarshal([]byte(text), &version)
	}
	if !ok || len(s.InitContainers)+len(s.Containers)+len(s.Volumes)+len(s.ImagePullSecrets) == 0 {
		s = status{InitContainers: legacyNames[initContainersKey], Containers: legacyNames[containersKey], Volumes: legacyNames["volumes"]}
		r.appended = true
	}
	r.status, r.appended = s, r.appended || version.Version != nil
}

// readProxy keeps what the injected proxy knows about the pod.
func (r *removal) readProxy() {
	r.env = map[string]string{}
	r.proxy = r.pod.proxy(true)
	if r.proxy == nil {
		return
	}
	env, _ := r.proxy["env"].([]any)
	for _, e := range env {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if value, ok := m["value"].(string); ok {
			r.env[name] = value
		}
	}
}

// noteReplaced says what Istio up to 1.8 keeps nothing of.
func (r *removal) noteReplaced() {
	if !r.appended {
		return
	}
	const reason = "Istio up to 1.8 replaces %s of the pod's own without a trace"
	r.assume("spec.containers", fmt.Sprintf(reason, "a container istio-proxy"))
	r.assume("spec.initContainers", fmt.Sprintf(reason, "containers istio-init and enable-core-dump"))
}

// sharedUsers begins the range of the user ids that OpenShift gives to namespaces.
const sharedUsers = 1_000_000

// noteOpenShift says that the user id of the pod's own proxy settings is lost where it was the namespace's.
func (r *removal) noteOpenShift(own overrides) {
	context, _ := r.proxy["securityContext"].(map[string]any)
	user, _ := context["runAsUser"].(int64)
	for key, list := range map[string][]any{containersKey: own.Containers, initContainersKey: own.InitContainers} {
		if user >= sharedUsers && find(list, proxyContainer) != nil {
			r.cannotKnow("spec."+key+"[istio-proxy].securityContext", "on OpenShift injection takes out the user and group that the cluster gave to the namespace")
		}
	}
}

// asWritten gives a container of the overrides annotation as the user wrote it: without what Go's types print, and with the
// image that means the template's own.
func asWritten(v any) any {
	c, _ := v.(map[string]any)
	c = copyMap(c)
	if resources, ok := c["resources"].(map[string]any); ok && len(resources) == 0 {
		delete(c, "resources")
	}
	if _, ok := c["image"]; !ok {
		c["image"] = autoImage
	}
	return c
}

// removeContainers takes the injected containers out and puts those of the user back that they stood over.
func (r *removal) removeContainers(own overrides) {
	lists := map[string][]string{containersKey: r.status.Containers, initContainersKey: r.status.InitContainers}
	back := map[string][]any{containersKey: own.Containers, initContainersKey: own.InitContainers}
	for _, key := range []string{containersKey, initContainersKey} {
		for _, name := range lists[key] {
			if mine := find(back[key], name); mine != nil {
				r.putBack(key, name, mine)
				continue
			}
			if !isIstios(name) && name != bootstrapContainer && find(r.pod.list(key), name) != nil {
				r.listed = append(r.listed, name)
			}
			r.setOrDrop(key, r.withoutOne(r.pod.list(key), name))
		}
	}
}

// withoutOne is a list without the element of a name: from Istio 1.9 there is one, before the injected one is nearest to
// where it was added, which is the end, but for those that go first.
func (r *removal) withoutOne(list []any, name string) []any {
	if !r.appended {
		return without(list, name)
	}
	for i, e := range slices.Backward(list) {
		if m, _ := e.(map[string]any); m["name"] == name {
			return slices.Delete(slices.Clone(list), i, i+1)
		}
	}
	return list
}

// putBack replaces an injected container by the user's own of the same name.
func (r *removal) putBack(key, name string, own map[string]any) {
	list := r.pod.list(key)
	to := key
	if key == initContainersKey && name == proxyContainer && own["restartPolicy"] == nil {
		to = containersKey // injection moved it
	}
	if isIstios(name) {
		r.setOrDrop(key, without(list, name))
		r.pod.spec[to] = append(r.pod.list(to), own)
		if len(r.pod.list(to)) > 1 {
			r.assume("spec."+to, fmt.Sprintf("the container %s of the pod's own was put last; where it was cannot be known", name))
		}
		return
	}
	for i, e := range list {
		if m, _ := e.(map[string]any); m["name"] == name {
			list[i] = own
		}
	}
}

// isIstios says whether a container of that name is Istio's, so that injection decides where it goes.
func isIstios(name string) bool {
	switch name {
	case proxyContainer, initContainer, validationContainer, coreDumpContainer:
		return true
	default:
		return false
	}
}

// removePullSecrets takes the injected pull secrets out.
func (r *removal) removePullSecrets() {
	list := r.pod.list("imagePullSecrets")
	for _, name := range r.status.ImagePullSecrets {
		if !r.appended {
			r.assume("spec.imagePullSecrets["+name+"]", "injection names it; the pod may have named it too")
		}
		list = r.withoutOne(list, name)
	}
	r.setOrDrop("imagePullSecrets", list)
}

// setOrDrop sets a list of the spec, or drops it where injection has left nothing else in it.
func (r *removal) setOrDrop(key string, list []any) {
	if len(list) == 0 && len(r.pod.list(key)) > 0 {
		delete(r.pod.spec, key)
		return
	}
	r.pod.setList(key, list)
}

// restoreSecurity takes what injection sets out of the pod's security context.
func (r *removal) restoreSecurity() {
	context, ok := r.pod.spec["securityContext"].(map[string]any)
	if !ok {
		return
	}
	const field = "spec.securityContext"
	if context["fsGroup"] == istioGroup {
		delete(context, "fsGroup")
		if len(context) > 0 {
			r.cannotKnow(field+".fsGroup", "injection sets 1337; a group of the pod's own would have been replaced")
		} else {
			r.assume(field+".fsGroup", "1337 is the group that injection sets")
		}
	}
	if sysctls, ok := context["sysctls"].([]any); ok && len(sysctls) == 1 {
		s, _ := sysctls[0].(map[string]any)
		if s["name"] == "net.ipv4.ip_unprivileged_port_start" && s["value"] == "0" {
			delete(context, "sysctls")
			r.assume(field+".sysctls", "it is what the gateway template sets")
		}
	}
	if len(context) == 0 {
		delete(r.pod.spec, "securityContext")
	}
}

// restoreDNS takes search domains out that only Istio's templates add.
func (r *removal) restoreDNS() {
	dns, ok := r.pod.spec["dnsConfig"].(map[string]any)
	if !ok {
		return
	}
	searches, _ := dns["searches"].([]any)
	istios := len(dns) == 1 && len(searches) > 0
	for _, e := range searches {
		s, _ := e.(string)
		istios = istios && (s == "global" || strings.HasSuffix(s, ".global"))
	}
	if istios {
		delete(r.pod.spec, "dnsConfig")
		r.assume("spec.dnsConfig", "all of its searches are the kind that injection sets from podDNSSearchNamespaces")
		return
	}
	r.cannotKnow("spec.dnsConfig", "it stays; injection replaces it where podDNSSearchNamespaces is set, and that cannot be told from the pod's own")
}
