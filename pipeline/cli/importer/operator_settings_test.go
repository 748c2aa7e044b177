// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/podmap"
)

// settingValues are for settings for which another value than changedSetting's is needed.
var settingValues = map[string]any{
	"global.imagePullPolicy": "Always", "global.imagePullSecrets": []any{"regcred"}, "global.certSigners": []any{"a"},
	"global.proxy.autoInject": "disabled", "global.proxy.seccompProfile": map[string]any{"type": "RuntimeDefault"},
	"global.proxy.includeIPRanges": "10.0.0.0/8", "global.proxy.excludeIPRanges": "10.0.0.0/8", "global.proxy.componentLogLevel": "rbac:debug",
	"global.proxy.includeInboundPorts": "80", "global.proxy.excludeInboundPorts": "81", "global.proxy.includeOutboundPorts": "82",
	"global.proxy.excludeOutboundPorts": "83", "global.proxy.lifecycle": map[string]any{"preStop": map[string]any{"exec": map[string]any{"command": []any{"true"}}}},
	"global.proxy.tracer": "zipkin", "global.proxy.logLevel": "debug", "global.logging.level": "default:debug", "global.caName": "GkeWorkloadCertificate",
	"global.pilotCertProvider": "kubernetes", "global.variant": "debug", "global.resourceScope": "namespace", "pilot.cni.provider": "multus",
	"sidecarInjectorWebhook.defaultTemplates": []any{"sidecar"}, "sidecarInjectorWebhook.templates": map[string]any{"own": "spec: {}"},
	"sidecarInjectorWebhook.injectedAnnotations":  map[string]any{"example.com/own": "1"},
	"sidecarInjectorWebhook.neverInjectSelector":  []any{map[string]any{"matchLabels": map[string]any{"app": "other"}}},
	"sidecarInjectorWebhook.alwaysInjectSelector": []any{map[string]any{"matchLabels": map[string]any{"app": "web"}}},
	"global.multiCluster.clusterName":             "c1", "global.remotePilotAddress": "10.1.1.1", "global.proxy_init.forceApplyIptables": true,
	"global.proxy.capNetBindService": "true", "global.proxy.holdApplicationUntilProxyStarts": true, "global.trustBundleName": "own",
	"global.proxy.drainDuration": "20s", "global.proxy.terminationDrainDuration": "20s", "global.trustDomain": "example.org", "pilot.crlConfigMapName": "own",
	"global.waypoint.topologySpreadConstraints": []any{map[string]any{"maxSkew": 1}},
	"global.platform": "k3d", "global.proxy.resources.limits.memory": "2Gi", "global.proxy.resources.limits.cpu": "1", "global.proxy.resources.requests.cpu": "20m",
	"global.proxy.resources.requests.memory": "20Mi", "gateways.securityContext": map[string]any{"runAsUser": 7}, "gateways.seccompProfile": map[string]any{"type": "RuntimeDefault"},
	"pilot.env.ENABLE_NATIVE_SIDECARS": "false", "pilot.env.ENABLE_CLUSTER_TRUST_BUNDLE_API": true, "pilot.env.COMPLIANCE_POLICY": "fips-140-2",
}

// TestOperatorSettings changes each setting of Istio's chart that the injector could read by itself: the pods are those of
// Istio's webhook, or the import refuses the setting.
func TestOperatorSettings(t *testing.T) {
	if *istioTools == "" {
		t.Skip("it needs -istio-tools: make operator")
	}
	var rendered struct{ Manifests, Error string }
	runTool(t, tool{name: "charts"}, []any{operatorRequest{Operator: settingDocument(t, nil)}}, &rendered)
	objects, err := Read("chart.yaml", []byte(rendered.Manifests))
	must(t, err)
	planes, err := controlPlanes(viewObjects(objects))
	must(t, err)
	var values map[string]any
	must(t, yaml.Unmarshal([]byte(podmap.TextAt(planes[0].injector.Value, "data", "values")), &values))
	settings := map[string]any{}
	addSettings(settings, values, "")
	maps.Copy(settings, settingValues)
	delete(settings, "global.istioNamespace") // as an unvalidated value it is refused; a document of TestOperatorAnswers has it
	equal, refused, both := 0, 0, 0
	for _, path := range slices.Sorted(maps.Keys(settings)) {
		t.Run(path, func(t *testing.T) {
			document := settingDocument(t, nestedSetting(strings.Split(path, "."), settings[path]))
			want, why := chartPods(t, operatorRequest{Operator: document})
			got, err := prerigPods(t, []byte(document))
			switch {
			case why != "":
				both++
				t.Logf("Istio: %s; Prerig: %v", why, err)
			case err != nil:
				refused++
				t.Logf("refused: %v", err)
			default:
				equal++
				comparePods(t, "Prerig", want, got)
			}
		})
	}
	t.Logf("%d settings: %d looked at, %d refused by the import, %d refused or not injected by Istio", len(settings), equal, refused, both)
	if equal < 60 {
		t.Errorf("the pods of %d settings were compared", equal)
	}
}

// addSettings adds the leaves of values, each changed.
func addSettings(out, values map[string]any, at string) {
	for key, v := range values {
		if m, ok := v.(map[string]any); ok && len(m) > 0 {
			addSettings(out, m, at+key+".")
			continue
		}
		out[at+key] = changedSetting(v)
	}
}

func changedSetting(v any) any {
	switch v := v.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case string:
		return v + "x"
	case []any:
		return append(v, "x")
	case map[string]any:
		return map[string]any{"x": "y"}
	}
	return "x"
}

func nestedSetting(path []string, value any) map[string]any {
	if len(path) == 1 {
		return map[string]any{path[0]: value}
	}
	return map[string]any{path[0]: nestedSetting(path[1:], value)}
}

// settingDocument is an IstioOperator with values that istioctl does not validate.
func settingDocument(t *testing.T, values map[string]any) string {
	t.Helper()
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": "install.istio.io/v1alpha1", "kind": operatorKind, "metadata": map[string]any{"name": "mesh"},
		"spec": map[string]any{"unvalidatedValues": values},
	})
	must(t, err)
	return string(text)
}
