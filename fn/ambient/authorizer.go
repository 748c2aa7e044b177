// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// Authorizers is where external authorizers are: some run beside the application, and only a proxy in the same pod reaches them.
type Authorizers struct {
	// hosts are those of the providers of the mesh, by name.
	hosts map[string]string
	// local are the hosts that ServiceEntries lead to the pod of the caller, with the names of the entries.
	local map[string]string
}

// Add reads an object: the providers of an installation or of a mesh config, or a ServiceEntry.
func (a *Authorizers) Add(kind, name string, object map[string]any) {
	if a.hosts == nil {
		a.hosts, a.local = map[string]string{}, map[string]string{}
	}
	if kind != "ServiceEntry" {
		a.addProviders(object, 0)
		return
	}
	spec := podmap.MapAt(object, "spec")
	hosts, _ := spec["hosts"].([]any)
	endpoints := podmap.Maps(spec["endpoints"])
	for _, host := range hosts {
		text, _ := host.(string)
		own := len(endpoints) == 0 && isLoopback(text)
		if own || len(endpoints) > 0 && !slices.ContainsFunc(endpoints, func(e map[string]any) bool {
			address, _ := e["address"].(string)
			return !isLoopback(address)
		}) {
			a.local[text] = name
		}
	}
}

// maxProviderDepth is deeper than the mesh config is in any object that installs Istio.
const maxProviderDepth = 8

// addProviders finds the providers at any place of an object, since each way to install Istio has its own.
func (a *Authorizers) addProviders(object map[string]any, depth int) {
	for key, value := range object {
		if key == "extensionProviders" {
			for _, provider := range podmap.Maps(value) {
				a.addProvider(provider)
			}
			continue
		}
		if child, ok := value.(map[string]any); ok && depth < maxProviderDepth {
			a.addProviders(child, depth+1)
		}
	}
}

func (a *Authorizers) addProvider(provider map[string]any) {
	name, _ := provider["name"].(string)
	for _, key := range []string{"envoyExtAuthzGrpc", "envoyExtAuthzHttp"} {
		if service, ok := podmap.MapAt(provider, key)["service"].(string); ok {
			a.hosts[name] = service[strings.Index(service, "/")+1:]
		}
	}
}

// Local describes why the authorizer of a CUSTOM policy is in the pods of the application, as far as that is known, or returns "". images are those
// of the containers beside the application.
func (a *Authorizers) Local(spec map[string]any, images []string) string {
	if Action(spec) != "CUSTOM" {
		return ""
	}
	name, _ := podmap.MapAt(spec, "provider")["name"].(string)
	host, known := a.hosts[name]
	if known {
		if entry, ok := a.local[host]; ok {
			return fmt.Sprintf("ServiceEntry %s leads provider %s to the pod that asks", entry, name)
		}
		if isLoopback(host) {
			return fmt.Sprintf("provider %s is %s, in the pod that asks", name, host)
		}
		return ""
	}
	for _, host := range podmap.SortedKeys(a.local) {
		return fmt.Sprintf("provider %s is not among the files, and ServiceEntry %s leads %s to the pod that asks", name, a.local[host], host)
	}
	for _, image := range images {
		if authorizerImage.MatchString(image) {
			return fmt.Sprintf("provider %s is not among the files, and image %s beside the application is an authorizer", name, image)
		}
	}
	return ""
}

// authorizerImage are the images of programs that answer Envoy's questions about requests, and run in the pods of applications.
var authorizerImage = lazyregexp.New(`(^|/)(opa|opa-istio|opa-envoy|ext-authz|authservice|cerbos)(:|@|$)`)

// isLoopback reports whether an address is in the pod of the caller.
func isLoopback(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.IsLoopback() || host == "localhost" || strings.HasPrefix(host, "unix:")
}
