// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/mesh"
	"github.com/prerig/prerig/fn/podmap"
)

// defaultProxyID is the user and group of the proxy.
const defaultProxyID = 1337

// Annotations in which OpenShift keeps the ids of a namespace.
const (
	uidRangeAnnotation = "openshift.io/sa.scc.uid-range"
	groupsAnnotation   = "openshift.io/sa.scc.supplemental-groups"
)

// onOpenShift reports whether istiod treats the cluster as OpenShift, according to its variable PLATFORM, which the
// chart sets from values.global.platform.
func onOpenShift(in *istio.Injector) bool {
	return in.Env("PLATFORM", in.Values().String("global", "platform")) == "openshift"
}

// proxyIDs are the user and group of the proxy. Istio looks at the namespace on OpenShift only.
func (r *run) proxyIDs() (uid, gid int64) {
	if r.in.Detection().IsServiceMesh() {
		return serviceMeshIDs(r.before, r.req.Namespace)
	}
	if onOpenShift(r.in) {
		return proxyIDs(r.req.Namespace)
	}
	if _, ok := r.req.Namespace.Annotations[uidRangeAnnotation]; ok && r.in.Profile().Has(feature.OpenShiftUsers) {
		r.warnings.addf("namespace %s has user ids of OpenShift (%s), which istiod reads only with "+
			"PLATFORM=openshift: set it in spec.istio.istiodEnv if your istiod has it", r.req.Namespace.Name, uidRangeAnnotation)
	}
	return defaultProxyID, defaultProxyID
}

// proxyIDs are the user and group of the proxy on OpenShift: the highest of the namespace's ranges.
func proxyIDs(ns Namespace) (uid, gid int64) {
	uid, gid = defaultProxyID, defaultProxyID
	if end, ok := rangeEnd(ns.Annotations[uidRangeAnnotation]); ok {
		uid = end
	}
	groups, ok := ns.Annotations[groupsAnnotation]
	if !ok {
		groups = ns.Annotations[uidRangeAnnotation]
	}
	first, rest, more := strings.Cut(groups, ",")
	end, ok := rangeEnd(first)
	for more && ok {
		// A single invalid range invalidates all of them.
		var next string
		next, rest, more = strings.Cut(rest, ",")
		_, ok = rangeEnd(next)
	}
	if ok {
		gid = end
	}
	return uid, gid
}

// rangeEnd is the last id of START/SIZE or START-END.
func rangeEnd(s string) (int64, bool) {
	if first, second, ok := strings.Cut(s, "/"); ok {
		start, err1 := strconv.ParseUint(first, 10, 32)
		size, err2 := strconv.ParseUint(second, 10, 32)
		return int64(uint32(start) + uint32(size) - 1), err1 == nil && err2 == nil
	}
	first, second, ok := strings.Cut(s, "-")
	_, err1 := strconv.ParseUint(first, 10, 32)
	end, err2 := strconv.ParseUint(second, 10, 32)
	return int64(end), ok && err1 == nil && err2 == nil
}

// securityContextOf returns a container's security context, creating it if necessary.
func securityContextOf(c map[string]any) map[string]any {
	sc, ok := c["securityContext"].(map[string]any)
	if !ok {
		sc = map[string]any{}
		c["securityContext"] = sc
	}
	return sc
}

// securityContextField returns a field of a container's security context and whether it is set.
func securityContextField(c map[string]any, field string) (any, bool) {
	sc, _ := c["securityContext"].(map[string]any)
	v, ok := sc[field]
	return v, ok && v != nil
}

// sharedUser is the user of the pod's own istio-proxy that resetSharedUser took out, and where the proxy was.
type sharedUser struct {
	list  string
	index int
	// fields are those of its security context.
	fields map[string]any
}

// resetSharedUser removes the user from the pod's own istio-proxy if it is the application's: OpenShift assigns the
// same user to all containers, with which traffic would not be redirected. A missing user counts as 0 (source:
// isSidecarUserMatchingAppUser in pkg/kube/inject/webhook.go of Istio 1.23.1). It returns what it removed.
func resetSharedUser(p *pod, profile *istio.Profile) sharedUser {
	own := p.findProxyContainer(true)
	sc, ok := own["securityContext"].(map[string]any)
	if !ok || !sharesUser(p, profile) {
		return sharedUser{}
	}
	shared := sharedUser{list: containersKey, fields: map[string]any{}}
	if podmap.Find(p.specListMaps(containersKey), proxyContainer) == nil {
		shared.list = initContainersKey
	}
	shared.index = slices.IndexFunc(p.specListMaps(shared.list), func(e any) bool { return hasName(e, proxyContainer) })
	for _, field := range []string{"runAsUser", "runAsGroup"} {
		if v, ok := securityContextField(own, field); ok {
			shared.fields[field] = v
		}
		delete(sc, field)
	}
	return shared
}

// sharesUser reports whether the pod's own istio-proxy runs as the user of the application.
func sharesUser(p *pod, profile *istio.Profile) bool {
	lists := []string{containersKey}
	if profile.Has(feature.OpenShiftSharedInit) {
		lists = append(lists, initContainersKey)
	}
	var proxyUser, appUser any = int64(0), int64(0)
	for _, key := range lists {
		for _, e := range p.specListMaps(key) {
			c, _ := e.(map[string]any)
			uid, ok := securityContextField(c, "runAsUser")
			switch c["name"] {
			case proxyContainer:
				if ok {
					proxyUser = uid
				}
			case validationContainer, initContainer:
			default:
				if ok {
					appUser = uid
				}
			}
		}
	}
	return proxyUser == appUser
}

// restoreUser reproduces what happens to the user that resetSharedUser removed. Istio removes it before it
// computes its patch, so the patch applies to a different pod from the cluster's: the patch addresses list indexes,
// and the user stays with the container that ends up at the proxy's former index, if that has a security context
// without a user of its own.
func (s sharedUser) restoreUser(p *pod, warn *warnings) {
	list := p.specListMaps(s.list)
	if len(s.fields) == 0 || s.index >= len(list) {
		return
	}
	c, _ := list[s.index].(map[string]any)
	sc, ok := c["securityContext"].(map[string]any)
	if !ok {
		return
	}
	for _, field := range podmap.SortedKeys(s.fields) {
		if _, has := securityContextField(c, field); has {
			continue
		}
		sc[field] = s.fields[field]
		if c["name"] != proxyContainer {
			warn.addf("container %v gets %s %v of the pod's own istio-proxy, because it comes to stand in its place: "+
				"istiod's patch does so on OpenShift; set %s on the container if it needs another",
				c["name"], field, s.fields[field], field)
		}
	}
}

// adjustInitUser passes the user of the pod's own istio-proxy to the container that redirects traffic or checks the
// redirection. With TPROXY the proxy runs as root regardless of the pod.
func adjustInitUser(p *pod, own map[string]any, proxyConfig *mesh.ProxyConfig) {
	uid, hasUser := securityContextField(own, "runAsUser")
	gid, hasGroup := securityContextField(own, "runAsGroup")
	if !hasUser && !hasGroup {
		return
	}
	inits := p.specListMaps(initContainersKey)
	c := podmap.Find(inits, initContainer)
	if c == nil {
		c = podmap.Find(inits, validationContainer)
	}
	if c == nil {
		return
	}
	mode, _ := p.annotation(interceptionAnnotation)
	tproxy := mode == "TPROXY" || proxyConfig.GetInterceptionMode().String() == "TPROXY"
	if tproxy && hasUser {
		if sc, ok := p.findProxyContainer(true)["securityContext"].(map[string]any); ok {
			sc["runAsUser"] = int64(0)
		}
	}
	if !tproxy && c["name"] == validationContainer {
		sc := securityContextOf(c)
		if hasUser {
			sc["runAsUser"] = uid
		}
		if hasGroup {
			sc["runAsGroup"] = gid
		}
	}
	if !hasUser || podmap.IsZero(uid) {
		return
	}
	setArgument(c, "-u", fmt.Sprint(uid))
}
