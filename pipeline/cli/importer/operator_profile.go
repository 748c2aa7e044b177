// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/podmap"
)

// operatorProfile is what a profile that an installation names changes in what is asked for.
type operatorProfile struct {
	// values are the profile's own, below those of the installation.
	values map[string]any
	// cni is components.cni.enabled, and withoutIstiod the opposite of components.pilot.enabled; only istioctl reads
	// components.
	cni, withoutIstiod bool
}

// operatorProfiles are those of Istio 1.32 as far as they reach injected pods (manifests/profiles).
var operatorProfiles = map[string]operatorProfile{
	"default":           {},
	"minimal":           {},
	"empty":             {withoutIstiod: true},
	"demo":              {values: map[string]any{"profile": "demo"}},
	"preview":           {values: map[string]any{"profile": "preview"}},
	"stable":            {values: map[string]any{"profile": "stable"}},
	"remote":            {values: map[string]any{"profile": "remote"}},
	"ambient":           {values: map[string]any{"profile": "ambient"}, cni: true},
	"openshift":         {values: map[string]any{"global": map[string]any{"platform": "openshift"}}, cni: true},
	"openshift-ambient": {values: map[string]any{"profile": "ambient", "global": map[string]any{"platform": "openshift"}}, cni: true},
}

// chartProfiles are the default values that the chart of Istio 1.32 itself adds below its input for values.profile
// (manifests/helm-profiles), as far as injection reads them.
var chartProfiles = map[string]map[string]any{
	"stable": nil,
	"remote": {"configMap": false},
	"preview": {"meshConfig": map[string]any{
		"defaultConfig": map[string]any{"proxyMetadata": map[string]any{"ISTIO_META_DNS_CAPTURE": "true"}},
	}},
	"ambient": {
		"global": map[string]any{"variant": "distroless"},
		"meshConfig": map[string]any{
			"defaultConfig": map[string]any{"proxyMetadata": map[string]any{"ISTIO_META_ENABLE_HBONE": "true"}},
		},
	},
	"demo": {
		"global":     map[string]any{"proxy": map[string]any{"resources": map[string]any{"requests": map[string]any{"cpu": "10m", "memory": "40Mi"}}}},
		"meshConfig": map[string]any{"accessLogFile": "/dev/stdout"},
	},
}

// chartPlatforms are the same for values.global.platform.
var chartPlatforms = map[string]map[string]any{
	"gke": nil, "k3d": nil, "k3s": nil, "microk8s": nil, "minikube": nil,
	"openshift": {"pilot": map[string]any{"cni": map[string]any{"enabled": true, "provider": "multus"}}},
}

// chartCompatibility are the same for values.compatibilityVersion.
var chartCompatibility = map[string]map[string]any{
	"1.25": {"pilot": map[string]any{"env": map[string]any{nativeSidecarsEnv: "false"}}},
	"1.26": {"pilot": map[string]any{"env": map[string]any{nativeSidecarsEnv: "false"}}},
	"1.27": nil, "1.28": nil, "1.29": nil, "1.30": nil,
}

const nativeSidecarsEnv = "ENABLE_NATIVE_SIDECARS"

// chartDefaults are the values that lie below those of an installation by the profile, the compatibility version and
// the platform that they name, in the chart's order (manifests/zzz_profile.yaml).
func chartDefaults(values map[string]any) (map[string]any, error) {
	out := map[string]any{}
	for _, choice := range []struct {
		what  string
		name  string
		known map[string]map[string]any
	}{
		{"profile", firstText(values["profile"], podmap.ValueAt(values, "global", "profile")), chartProfiles},
		{"compatibility version", firstText(values["compatibilityVersion"]), chartCompatibility},
		{"platform", firstText(values["platform"], podmap.ValueAt(values, "global", "platform")), chartPlatforms},
	} {
		if choice.name == "" {
			continue
		}
		below, ok := choice.known[choice.name]
		if !ok {
			return nil, fmt.Errorf("the %s %q is not one of Istio 1.32; it has %s", choice.what, choice.name, strings.Join(slices.Sorted(maps.Keys(choice.known)), ", "))
		}
		out = mergedValues(out, below)
	}
	return out, nil
}

// firstText is the first value that is not empty, as text.
func firstText(values ...any) string {
	for _, v := range values {
		if v != nil && v != "" {
			return fmt.Sprint(v)
		}
	}
	return ""
}

// mergedValues returns over merged over base, and changes neither. As in the chart, null replaces the existing
// value.
func mergedValues(base, over map[string]any) map[string]any {
	out := make(map[string]any, len(base)+len(over))
	for key, value := range base {
		if m, ok := value.(map[string]any); ok {
			value = mergedValues(m, nil)
		}
		out[key] = value
	}
	for key, value := range over {
		if m, ok := value.(map[string]any); ok {
			under, _ := out[key].(map[string]any)
			value = mergedValues(under, m)
		}
		out[key] = value
	}
	return out
}
