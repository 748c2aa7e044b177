// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// annotationRestorer takes the injected annotations out of a pod, and restores the pod's own.
type annotationRestorer struct {
	pod    *pod
	writer *writer
	proxy  injectedProxy
	*removalNotes
}

// restoreAnnotations removes the injected annotations and restores the pod's own.
func (r *annotationRestorer) restoreAnnotations() {
	injected := r.injectedAnnotations()
	before, known := r.proxy.formerAnnotations(r.writer.appended)
	if known {
		r.addTraffic(injected)
	}
	for _, name := range podmap.SortedKeys(injected) {
		own := injected[name]
		if known {
			value, had := before[name]
			own = formerAnnotation{value: value, had: had}
		}
		field := "metadata.annotations[" + name + "]"
		switch {
		case own.note != "" && !r.takeKnownField(field, own.note):
		case own.had:
			r.pod.setMetadataValue("annotations", name, own.value)
		default:
			r.pod.removeMetadataValue("annotations", name)
		}
	}
	if known {
		r.recordLaterAnnotations(before, injected)
		for _, name := range podmap.SortedKeys(before) {
			if _, ok := r.pod.annotation(name); !ok && strings.HasPrefix(asLabelName(name), "prometheus_io_") {
				r.pod.setMetadataValue("annotations", name, before[name])
			}
		}
	}
	r.removeAppArmorProfiles(before)
	r.pod.removeMetadataValue("annotations", statusAnnotation)
	r.pod.removeMetadataValue("annotations", overridesAnnotation)
	if own, had := before[statusAnnotation]; had && !listsSomething(own) {
		r.pod.setMetadataValue("annotations", statusAnnotation, own) // it existed before and no injection wrote it
	}
	r.pod.dropEmpty("annotations")
	if !known && len(r.pod.annotations()) > 0 && !r.writer.surelyOutsideVersions(4, newestWriter) {
		r.recordAssumption("metadata.annotations", "those that the configuration puts on every pod (injectedAnnotations) look like the pod's own, and stay")
	}
}

// removeAppArmorProfiles removes the annotations about containers that were taken out, which the configuration puts on pods: the API
// server rejects those of containers that the pod lacks. before are the annotations that the pod is known to have had.
func (r *annotationRestorer) removeAppArmorProfiles(before map[string]string) {
	for _, container := range slices.Concat(r.writer.status.InitContainers, r.writer.status.Containers) {
		name := podmap.AppArmorPrefix + container
		_, has := r.pod.annotation(name)
		_, had := before[name]
		isLeft := func(key string) bool { return podmap.Find(r.pod.specListMaps(key), container) != nil }
		if !has || had || isLeft(containersKey) || isLeft(initContainersKey) {
			continue
		}
		if r.takeKnownField("metadata.annotations["+name+"]", "it is about a container that was taken out") {
			r.pod.removeMetadataValue("annotations", name)
		}
	}
}

// recordLaterAnnotations names annotations that the pod did not have when it was injected, and that are not known to be
// an injection's.
func (r *annotationRestorer) recordLaterAnnotations(before map[string]string, injected map[string]formerAnnotation) {
	for _, name := range podmap.SortedKeys(r.pod.annotations()) {
		_, had := before[name]
		_, ours := injected[name]
		if !had && !ours && name != statusAnnotation && name != overridesAnnotation {
			r.recordUnknownValue("metadata.annotations["+name+"]", "it stays; the configuration set it (injectedAnnotations), or it came after the injection")
		}
	}
}

// listsSomething reports whether a status annotation is like those that injections write.
func listsSomething(text string) bool {
	var s status
	err := json.Unmarshal([]byte(text), &s)
	return err == nil && s.listsAnything()
}

// formerAnnotation is what an annotation was before.
type formerAnnotation struct {
	value string
	had   bool
	// note explains why an annotation was attributed to the injection if it could have been the pod's own.
	note string
}

// injectedAnnotations are the pod's annotations that are an injection's, with what they were before.
func (r *annotationRestorer) injectedAnnotations() map[string]formerAnnotation {
	out := map[string]formerAnnotation{}
	r.prometheusAnnotations(out)
	r.containerAnnotations(out)
	r.trafficAnnotations(out)
	r.networksAnnotation(out)
	r.templatesAnnotations(out)
	own, ok := r.pod.annotation(istioRevision)
	revision := r.writer.status.Revision
	if ok && revision != nil && own == *revision && !r.writer.surelyWithinVersions(11, 15) {
		out[istioRevision] = formerAnnotation{note: "it names the revision, as the templates since 1.16 do"}
	}
	_, ok = r.pod.annotation(securePortAnnotation)
	if ok && strings.Contains(r.proxy.env["PROXY_CONFIG"], securePortEnv) {
		out[securePortAnnotation] = formerAnnotation{}
	}
	return out
}

// templatesAnnotations adds the annotations set by the templates for proxyless gRPC, and notes what other templates
// may have changed.
func (r *annotationRestorer) templatesAnnotations(out map[string]formerAnnotation) {
	for _, name := range r.writer.templates {
		if v, _ := r.pod.annotation(rewriteProbesAnnotation); v == "false" && strings.HasPrefix(name, "grpc-") {
			out[rewriteProbesAnnotation] = formerAnnotation{note: "the template " + name + " sets it"}
		}
		if !slices.Contains(stockTemplates, name) {
			r.recordUnknownValue("metadata", "the template "+name+" is not one of Istio's; what it sets beside containers, volumes and pull secrets stays")
		}
	}
}

// prometheusAnnotations adds the Prometheus annotations if they point to the agent.
func (r *annotationRestorer) prometheusAnnotations(out map[string]formerAnnotation) {
	path, _ := r.pod.annotation(prometheusPrefix + prometheusPath)
	scrape, _ := r.pod.annotation(prometheusPrefix + prometheusScrape)
	if path != mergedPath || scrape != "true" || r.writer.newest < 6 {
		return
	}
	own, had, err := r.proxy.originalPrometheus()
	if err != nil { // the pod's own value of the variable wins over the injection's, whatever it is
		r.recordUnknownValue("metadata.annotations["+prometheusPrefix+"*]", fmt.Sprintf("they point to the agent as injection sets them, and what they were cannot be read: %v; set them again", err))
		return
	}
	note := "it points to the agent, as injection sets it"
	if had {
		note = ""
		if !r.writer.appended && len(own.Targets) == 0 {
			r.recordAssumption("metadata.annotations["+prometheusPrefix+"*]", "the pod may have spelt them otherwise, such as prometheus_io_scrape, which Prometheus takes for the same")
		}
	}
	targets := len(own.Targets) > 0
	if targets {
		var list []string
		for _, t := range own.Targets {
			list = append(list, t.Port+":"+t.Path)
		}
		out[targetsAnnotation] = formerAnnotation{value: strings.Join(list, ","), had: true, note: "it was rewritten from what the proxy knows"}
	}
	for setting, value := range map[string]string{prometheusScrape: own.Scrape, prometheusPath: own.Path, prometheusPort: own.Port} {
		f := formerAnnotation{value: value, had: value != "", note: note}
		if targets && setting != prometheusScrape {
			f = formerAnnotation{note: "the settings came from " + targetsAnnotation}
		}
		out[prometheusPrefix+setting] = f
	}
}

// containerAnnotationNames are the annotations that name the application's first container.
var containerAnnotationNames = []string{"kubectl.kubernetes.io/default-container", "kubectl.kubernetes.io/default-logs-container"}

// appContainersEnv is a variable of the proxy that has the names of the application's containers as they were.
const appContainersEnv = "ISTIO_META_APP_CONTAINERS"

// containerAnnotations adds the annotations that name the application's first container, the present one or the one
// at the time of the injection. The latter is removed in any case, as it would name a container that may no longer
// exist.
func (r *annotationRestorer) containerAnnotations(out map[string]formerAnnotation) {
	if r.writer.appended {
		return
	}
	first, _, _ := strings.Cut(r.proxy.env[appContainersEnv], ",")
	var app string
	for _, name := range podmap.Names(r.pod.specListMaps(containersKey)) {
		if name != proxyContainer {
			app = name
			break
		}
	}
	for _, name := range containerAnnotationNames {
		field := "metadata.annotations[" + name + "]"
		v, ok := r.pod.annotation(name)
		switch {
		case !ok:
		case v == app:
			out[name] = formerAnnotation{note: "it names the first container, as injection sets it"}
		case v == first:
			out[name] = formerAnnotation{}
			r.recordAssumption(field, "it names the container that was the first one when the pod was injected")
		case podmap.Find(r.pod.specListMaps(containersKey), v) == nil:
			r.recordUnknowableValue(field, "it stays, and names a container that the pod does not have; take it out if injection set it")
		}
	}
}

const (
	interceptionAnnotation = "sidecar.istio.io/interceptionMode"
	trafficPrefix          = "traffic.sidecar.istio.io/"
)

// trafficAnnotations adds the annotations that configure what the CNI plugin redirects, if they have their defaults.
func (r *annotationRestorer) trafficAnnotations(out map[string]formerAnnotation) {
	if _, ok := r.pod.annotation(interceptionAnnotation); !ok || !r.writer.configuresTraffic() {
		return
	}
	ports := []string{"*", containerPorts(r.pod)}
	defaults := map[string][]string{
		interceptionAnnotation:                    {"REDIRECT"},
		trafficPrefix + "includeOutboundIPRanges": {"*"},
		trafficPrefix + "excludeOutboundIPRanges": {""},
		trafficPrefix + "includeInboundPorts":     ports,
		trafficPrefix + "includeOutboundPorts":    {""},
		trafficPrefix + "excludeOutboundPorts":    {""},
	}
	const note = "it has the value that injection sets for the CNI plugin"
	for name, values := range defaults {
		if v, ok := r.pod.annotation(name); ok && slices.Contains(values, v) {
			out[name] = formerAnnotation{note: note}
		}
	}
	const exclude = trafficPrefix + "excludeInboundPorts"
	if v, ok := r.pod.annotation(exclude); ok {
		own := withoutPort(v, ownStatusPort(r.pod))
		if own != v {
			out[exclude] = formerAnnotation{value: own, had: own != "", note: note}
		}
	}
}

// addTraffic adds the annotations for the CNI plugin whatever their value: what they were is known.
func (r *annotationRestorer) addTraffic(out map[string]formerAnnotation) {
	if !r.writer.configuresTraffic() {
		return
	}
	for name := range r.pod.annotations() {
		if name == interceptionAnnotation || strings.HasPrefix(name, trafficPrefix) {
			out[name] = formerAnnotation{}
		}
	}
}

// containerPorts are the TCP ports of the pod's containers, as includeInboundPorts of the templates lists them.
func containerPorts(p *pod) string {
	var out []string
	for _, e := range p.specListMaps(containersKey) {
		c, _ := e.(map[string]any)
		ports, _ := c["ports"].([]any)
		for _, e := range ports {
			m, _ := e.(map[string]any)
			if m["protocol"] != "UDP" && m["protocol"] != "SCTP" {
				out = append(out, fmt.Sprint(m["containerPort"]))
			}
		}
	}
	return strings.Join(out, ",")
}

// ownStatusPort is the agent's port according to the pod, as text.
func ownStatusPort(p *pod) string {
	if v, ok := p.annotation(statusPortAnnotation); ok {
		return v
	}
	return "15020"
}

// withoutPort is a list of ports without the last one, if that is port.
func withoutPort(list, port string) string {
	if list == port {
		return ""
	}
	return strings.TrimSuffix(list, ","+port)
}

const networksAnnotationName = "k8s.v1.cni.cncf.io/networks"

// networksAnnotation removes Istio's network from Multus' annotation, inverting how it was added.
func (r *annotationRestorer) networksAnnotation(out map[string]formerAnnotation) {
	v, ok := r.pod.annotation(networksAnnotationName)
	if !ok || !slices.Contains(r.writer.status.InitContainers, validationContainer) {
		return
	}
	for _, network := range []string{"istio-cni", "default/istio-cni"} {
		if v == network {
			out[networksAnnotationName] = formerAnnotation{note: "it names Istio's network only"}
			return
		}
		if own, ok := strings.CutSuffix(v, ", "+network); ok {
			out[networksAnnotationName] = formerAnnotation{value: own, had: true}
			return
		}
	}
	for _, entry := range []string{`, {"name": "istio-cni"}`, `, {"name": "istio-cni", "namespace": "default"}`} {
		if i := strings.LastIndex(v, entry); i >= 0 {
			out[networksAnnotationName] = formerAnnotation{value: v[:i] + v[i+len(entry):], had: true}
			return
		}
	}
}
