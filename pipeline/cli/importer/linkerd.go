// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/policies"
)

const (
	linkerdName = "linkerd"
	// The ConfigMaps from which Linkerd's injector reads its settings and the trust anchors (pkg/k8s/labels.go and
	// charts/linkerd-control-plane/templates/identity.yaml of Linkerd edge-26.8.3), with the keys.
	linkerdConfig, linkerdConfigKey   = "linkerd-config", "values"
	linkerdAnchors, linkerdAnchorsKey = "linkerd-identity-trust-roots", "ca-bundle.crt"
)

// linkerdUnread are settings below proxy, proxyInit and the like that do not change pods, or that Linkerd's injector
// sets itself.
var linkerdUnread = map[string]bool{
	"proxy.capabilities": true, "proxy.isIngress": true, "proxy.outboundTransportMode": true,
	"proxy.podInboundPorts": true,
	"proxy.saMountPath":     true, "proxyInit.capabilities": true, "proxyInit.kubeAPIServerPorts": true,
	"proxyInit.saMountPath": true,
}

// findLinkerd returns Linkerd's ConfigMap, or nil if none exists.
func findLinkerd(all []*clusterObject) (*clusterObject, error) {
	var found *clusterObject
	for _, o := range all {
		if o.kind != "ConfigMap" || o.name != linkerdConfig || podmap.TextAt(o.Value, "data", linkerdConfigKey) == "" {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("importing: %s and %s are both Linkerd's; a policy is for one control plane", found, o)
		}
		found = o
	}
	return found, nil
}

// setLinkerd adds Linkerd's sidecar with the values of its ConfigMap and the trust anchors.
func (r *sidecarReader) setLinkerd(config *clusterObject, all []*clusterObject) error {
	decoded, err := manifest.Decode([]byte(podmap.TextAt(config.Value, "data", linkerdConfigKey)))
	if err != nil {
		return fmt.Errorf("importing %s: reading data.%s: %w", config, linkerdConfigKey, err)
	}
	from, ok := decoded.(map[string]any)
	if !ok {
		return fmt.Errorf("importing %s: data.%s is not a map", config, linkerdConfigKey)
	}
	known, err := builtInSidecar(linkerdName)
	if err != nil {
		return err
	}
	values := r.linkerdValues("", known.Values, from)
	values["namespace"] = config.namespace
	if config.namespace == "" {
		values["namespace"] = linkerdName
	}
	values["dropAllCapabilities"] = false
	r.setTrustAnchors(values, config, all)
	version, _ := values["linkerdVersion"].(string)
	r.origins = append(r.origins, strings.TrimSpace("Linkerd "+version)+fmt.Sprintf(" in namespace %v", values["namespace"]))
	r.sidecars = append(r.sidecars, v1alpha1.Sidecar{BuiltIn: linkerdName, Values: values})
	return nil
}

// setTrustAnchors uses those of the ConfigMap of the same namespace, as the injector does, in preference to the
// values.
func (r *sidecarReader) setTrustAnchors(values map[string]any, config *clusterObject, all []*clusterObject) {
	const field = "identityTrustAnchorsPEM"
	for _, o := range all {
		if o.kind == "ConfigMap" && o.name == linkerdAnchors && o.namespace == config.namespace {
			values[field] = podmap.TextAt(o.Value, "data", linkerdAnchorsKey)
		}
	}
	if values[field] == nil || values[field] == "" {
		r.addWarning("the input has no ConfigMap %s, which contains the trust anchors of Linkerd's control plane: set %s in the "+
			"values of spec.sidecars, or import that ConfigMap too", linkerdAnchors, field)
	}
}

// linkerdValues returns those of the values that the built-in sidecar reads, with their places for messages. An
// empty map in the built-in values accepts any keys.
func (r *sidecarReader) linkerdValues(at string, known, from map[string]any) map[string]any {
	out := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(from)) {
		value, have := from[key], known[key]
		if _, ok := known[key]; !ok && len(known) > 0 {
			r.warnUnread(at+key, value)
			continue
		}
		wantMap, isMap := have.(map[string]any)
		valueMap, valueIsMap := value.(map[string]any)
		switch {
		case value == nil || isMap && !valueIsMap:
		case isMap:
			if inner := r.linkerdValues(at+key+".", wantMap, valueMap); len(inner) > 0 {
				out[key] = inner
			}
		default:
			out[key] = value
		}
	}
	return out
}

// warnUnread warns of a setting of the proxy and its init container that the sidecar does not know, where it is set.
func (r *sidecarReader) warnUnread(at string, value any) {
	part, _, below := strings.Cut(at, ".")
	ofPods := below && slices.Contains([]string{"proxy", "proxyInit", "networkValidator", "debugContainer"}, part)
	if !ofPods || linkerdUnread[at] || isUnset(value) {
		return
	}
	if m, ok := value.(map[string]any); ok && at == "proxy.tracing" && isUnset(m["enabled"]) {
		return
	}
	r.addWarning("%s of the ConfigMap %s is ignored: the pods are as Linkerd's injector would create them without it",
		at, linkerdConfig)
}

func isUnset(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case map[string]any:
		return len(v) == 0
	case []any:
		return len(v) == 0
	}
	return false
}

// builtInSidecar returns a sidecar that comes with Prerig.
func builtInSidecar(name string) (*v1alpha1.Sidecar, error) {
	text, _ := policies.Get(name)
	p, err := v1alpha1.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the built-in policy %s: %w", name, err)
	}
	if len(p.Spec.Sidecars) != 1 {
		return nil, fmt.Errorf("reading the built-in policy %s: it has no sidecar", name)
	}
	return &p.Spec.Sidecars[0], nil
}
