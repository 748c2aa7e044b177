// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strconv"
)

// defaultProxyID is the user and group of the proxy since 1.0.
const defaultProxyID = 1337

// proxyIDs returns the user and group that the capture excludes: those passed to istio-init, or otherwise the
// proxy's own.
func proxyIDs(p *pod) (uid, gid int64) {
	uid, gid = defaultProxyID, defaultProxyID
	if p.proxy != nil {
		if id, ok := integerOf(p.proxy.nestedField("securityContext", "runAsUser")); ok && id != 0 {
			uid, gid = id, id
		}
		if id, ok := integerOf(p.proxy.nestedField("securityContext", "runAsGroup")); ok {
			gid = id
		}
	}
	if p.capture == nil {
		return uid, gid
	}
	if id, err := strconv.ParseInt(p.capture.flagValue("-u"), 10, 64); err == nil {
		uid, gid = id, id
	}
	if id, err := strconv.ParseInt(p.capture.flagValue("-g"), 10, 64); err == nil {
		gid = id
	}
	return uid, gid
}

func checkTproxyUser(p *pod) []finding {
	own := p.userOverrideOf(proxyName)
	if own == nil || p.interceptionMode() != "TPROXY" {
		return nil
	}
	var out []finding
	for _, key := range []string{"runAsUser", "runAsGroup"} {
		want, ok := integerOf(own.nestedField("securityContext", key))
		if !ok {
			continue
		}
		got, _ := integerOf(p.proxy.nestedField("securityContext", key))
		f := finding{path: p.proxy.path + ".securityContext." + key, container: proxyName, current: got}
		switch {
		case want != got:
			f.message = fmt.Sprintf("%s %d of the %s container has no effect: interceptionMode TPROXY needs %d", key, want, proxyName, got)
		case key == "runAsUser" && want != 0:
			f.proposed = int64(0)
			f.message = fmt.Sprintf("the proxy runs as user %d, and interceptionMode TPROXY needs user 0: traffic is lost", want)
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}

func checkProxyUser(p *pod) []finding {
	if p.proxy == nil || p.capture == nil || p.capture.name != "istio-init" || p.interceptionMode() == "NONE" {
		return nil
	}
	excluded, err := strconv.ParseInt(p.capture.flagValue("-u"), 10, 64)
	if err != nil {
		return nil
	}
	group := excluded
	if id, err := strconv.ParseInt(p.capture.flagValue("-g"), 10, 64); err == nil {
		group = id
	}
	uid, path, ok := p.runAs(*p.proxy, "runAsUser")
	if !ok || uid == excluded {
		return nil
	}
	if gid, _, ok := p.runAs(*p.proxy, "runAsGroup"); ok && gid == group {
		return nil
	}
	return []finding{{
		path: path, container: proxyName, current: uid, proposed: excluded,
		message: fmt.Sprintf("the proxy runs as user %d, and istio-init leaves user %d out of the capture: the proxy's own traffic comes back to it", uid, excluded),
	}}
}

func checkAppUser(p *pod) []finding {
	if !p.servesLocalApplication() || p.interceptionMode() == "NONE" {
		return nil
	}
	uid, gid := proxyIDs(p)
	var out []finding
	for _, c := range p.applicationContainers() {
		if p.injected[c.name] {
			continue
		}
		for _, k := range []struct {
			key, what string
			id        int64
		}{{"runAsUser", "user", uid}, {"runAsGroup", "group", gid}} {
			id, path, ok := p.runAs(c, k.key)
			if !ok || id != k.id {
				continue
			}
			out = append(out, finding{
				path: path, container: c.name, current: id,
				message: fmt.Sprintf("container %s runs as %s %d, which is the proxy's: what it sends bypasses the proxy", c.name, k.what, id),
			})
			break
		}
	}
	return out
}

// nodeCapabilities let a container change the node's kernel.
var nodeCapabilities = []string{"ALL", "SYS_ADMIN", "SYS_MODULE", "SYS_PTRACE", "SYS_RAWIO", "BPF"}

func checkPrivileged(p *pod) []finding {
	var out []finding
	for _, c := range p.allContainers() {
		if !p.injected[c.name] {
			continue
		}
		if c.nestedField("securityContext", "privileged") == true {
			out = append(out, finding{
				path: c.path + ".securityContext.privileged", container: c.name, current: true, proposed: false,
				message: fmt.Sprintf("injected container %s is privileged", c.name),
			})
			continue
		}
		added, _ := c.nestedField("securityContext", "capabilities", "add").([]any)
		for i, v := range added {
			if slices.Contains(nodeCapabilities, textOf(v)) {
				out = append(out, finding{
					path: fmt.Sprintf("%s.securityContext.capabilities.add[%d]", c.path, i), container: c.name, current: v,
					message: fmt.Sprintf("injected container %s has the capability %v", c.name, v),
				})
			}
		}
	}
	return out
}
