// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// removePullSecrets removes the injected pull secrets. From Istio 1.9 they are merged by name, so one of the pod's
// own looks the same.
func (r *removal) removePullSecrets() {
	list := r.pod.specListMaps(pullSecretsKey)
	for _, name := range r.writer.status.ImagePullSecrets {
		if r.writer.appended || podmap.Find(list, name) != nil && r.takeKnownField("spec.imagePullSecrets["+name+"]", "injection names it; the pod may have named it too") {
			list = r.writer.removeOneNamed(list, name)
		}
	}
	r.pod.setOrDrop(pullSecretsKey, list)
}

// restoreSecurity removes what injection sets from the pod's security context. An empty one is the pod's own: no
// injection leaves one.
func (r *removal) restoreSecurity() {
	context, ok := r.pod.spec["securityContext"].(map[string]any)
	if !ok || len(context) == 0 {
		return
	}
	r.restoreGroup(context)
	if r.writer.usesTemplatePrefix("gateway") && isPortSysctl(context["sysctls"]) && r.takeKnownField("spec.securityContext.sysctls", "the gateway template sets it") {
		delete(context, "sysctls")
	}
	if len(context) == 0 {
		delete(r.pod.spec, "securityContext")
	}
}

// restoreGroup removes fsGroup if the version sets it on every pod: in code from 1.5 to 1.8, before that with SDS
// only, and in the sidecar template up to 1.12. From 1.13 to 1.18 it depends on istiod's environment, and later
// versions never do it.
func (r *removal) restoreGroup(context map[string]any) {
	const field = "spec.securityContext.fsGroup"
	if context["fsGroup"] != istioGroup {
		return
	}
	w := r.writer
	switch {
	case w.surelyWithinVersions(5, 12) && !w.usesTemplatePrefix("grpc-"),
		w.newest < 5 && w.oldest > 0 && r.proxy.usesSDS():
		if !r.mustKeepField(field) {
			delete(context, "fsGroup")
			r.recordUnknownValue(field, "removed 1337, which this version of Istio sets on every pod; if the pod had a group of its own before, Istio overwrote it, and it cannot be restored")
		}
	case w.surelyOutsideVersions(1, 18), w.newest < 5 && !r.proxy.usesSDS():
	case r.req.Doubtful:
		delete(context, "fsGroup")
	default:
		r.recordUnknownValue(field, "1337 stays; some versions of Istio set it, and the pod may have it of its own; take it out if it was injected")
	}
}

// isPortSysctl reports whether sysctls are what the gateway template sets.
func isPortSysctl(v any) bool {
	sysctls, _ := v.([]any)
	if len(sysctls) != 1 {
		return false
	}
	s, _ := sysctls[0].(map[string]any)
	return s["name"] == "net.ipv4.ip_unprivileged_port_start" && s["value"] == "0"
}

// restoreDNS removes search domains that only Istio's templates add. Istio from 1.1 to 1.8 replaces the pod's
// dnsConfig with its template's, if that has one; later versions never touch it.
func (r *removal) restoreDNS() {
	dns, ok := r.pod.spec["dnsConfig"].(map[string]any)
	if !ok || !r.writer.appended || r.writer.newest < 1 || r.mustKeepField("spec.dnsConfig") {
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
		r.recordUnknownValue("spec.dnsConfig", "removed: all of its searches are of the kind that Istio up to 1.8 sets from podDNSSearchNamespaces; if the pod had a dnsConfig of its own before, Istio overwrote it, and it cannot be restored")
		return
	}
	r.recordUnknownValue("spec.dnsConfig", "it stays; Istio up to 1.8 replaces it where podDNSSearchNamespaces is set, and its values look like the pod's own")
}
