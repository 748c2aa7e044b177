// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// proxyUIDAnnotation has the user of OpenShift Service Mesh's proxy.
const proxyUIDAnnotation = "sidecar.istio.io/proxyUID"

// serviceMeshIDs returns the user and group of the proxy of OpenShift Service Mesh 2.3 and later, or 0 if the
// templates are to see none, as for TPROXY. The proxy of an application runs as the highest of the application's
// users plus one, that of a gateway as the pod specifies (source: inject in pkg/kube/inject/webhook.go of
// maistra/istio, branches maistra-2.3 to maistra-2.5). OpenShift assigns the first user of the namespace's range to
// a pod that names no user, before istiod sees it.
func serviceMeshIDs(p *pod, ns Namespace) (uid, gid int64) {
	mode, _ := p.annotation(interceptionAnnotation)
	ids := &serviceMeshUsers{}
	containers := p.specListMaps(containersKey)
	switch {
	case len(containers) == 1 && hasName(containers[0], proxyContainer):
		ids.idsFromGateway(p.spec, containers[0])
	case mode == "TPROXY":
	default:
		ids.idsFromApplication(p, containers, ns)
	}
	if mode != "TPROXY" {
		ids.setMissingIDs(defaultProxyID)
	}
	return ids.uid, ids.gid
}

// serviceMeshUsers collects the user and group.
type serviceMeshUsers struct {
	uid, gid          int64
	hasUser, hasGroup bool
}

func (s *serviceMeshUsers) setUser(id int64)  { s.uid, s.hasUser = id, true }
func (s *serviceMeshUsers) setGroup(id int64) { s.gid, s.hasGroup = id, true }

// setMissingIDs sets what is not known.
func (s *serviceMeshUsers) setMissingIDs(id int64) {
	if !s.hasUser {
		s.setUser(id)
	}
	if !s.hasGroup {
		s.setGroup(id)
	}
}

// idsFromGateway uses the IDs of a pod that consists only of a proxy.
func (s *serviceMeshUsers) idsFromGateway(spec map[string]any, proxy any) {
	if id, ok := securityContextID(spec, "runAsUser"); ok {
		s.setUser(id)
		s.setGroup(id)
	}
	if id, ok := securityContextID(spec, "runAsGroup"); ok {
		s.setGroup(id)
	}
	c, _ := proxy.(map[string]any)
	if id, ok := securityContextID(c, "runAsUser"); ok {
		s.setUser(id)
		if !s.hasGroup {
			s.setGroup(id)
		}
	}
	if id, ok := securityContextID(c, "runAsGroup"); ok {
		s.setGroup(id)
	}
}

// idsFromApplication derives the IDs from the pod's annotation, or from the users of the pod and its containers, or
// from the namespace, in this order.
func (s *serviceMeshUsers) idsFromApplication(p *pod, containers []any, ns Namespace) {
	if text, ok := p.annotation(proxyUIDAnnotation); ok {
		if id, err := strconv.ParseInt(text, 10, 64); err == nil {
			s.setUser(id)
			return
		}
	}
	if id, ok := securityContextID(p.spec, "runAsUser"); ok {
		s.setUser(id + 1)
		s.setGroup(id)
	}
	for _, e := range containers {
		c, _ := e.(map[string]any)
		id, ok := securityContextID(c, "runAsUser")
		if !ok || hasName(c, proxyContainer) {
			continue
		}
		if !s.hasUser || id+1 > s.uid {
			s.setUser(id + 1)
		}
		if !s.hasGroup {
			s.setGroup(id)
		}
	}
	start, _, ranged := strings.Cut(ns.Annotations[uidRangeAnnotation], "/")
	if first, err := strconv.ParseUint(start, 10, 32); !s.hasUser && ranged && err == nil {
		s.setUser(int64(first) + 1)
		s.setGroup(int64(first))
	}
}

// securityContextID is a user or group of a security context.
func securityContextID(c map[string]any, field string) (int64, bool) {
	v, _ := securityContextField(c, field)
	id, ok := v.(int64)
	return id, ok
}

// setServiceMeshUser sets the proxy's user on the proxy and on the init container that redirects or checks traffic,
// overriding the templates (source: replaceProxyRunAsUserID in the same file).
func setServiceMeshUser(p *pod, uid int64) {
	if uid == 0 {
		return
	}
	for _, e := range p.specListMaps(initContainersKey) {
		c, _ := e.(map[string]any)
		if c["name"] != initContainer && c["name"] != validationContainer {
			continue
		}
		setArgument(c, "-u", strconv.FormatInt(uid, 10))
		if c["name"] == validationContainer {
			securityContextOf(c)["runAsUser"] = uid
		}
	}
	if c := podmap.Find(p.specListMaps(containersKey), proxyContainer); c != nil {
		securityContextOf(c)["runAsUser"] = uid
	}
}

// setArgument sets what follows the first argument of a name.
func setArgument(c map[string]any, name, value string) {
	args, _ := c["args"].([]any)
	for i := range args {
		if args[i] == name && i+1 < len(args) {
			args[i+1] = value
			return
		}
	}
}
