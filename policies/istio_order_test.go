// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"bytes"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// TestOrderWithIstio injects Istio's proxy and another into one pod. The API server calls webhooks in the order of the names
// of their configurations (k8s.io/apiserver/pkg/admission/configuration): dapr-sidecar-injector, istio-sidecar-injector,
// linkerd-proxy-injector-webhook-config. The policies have that order. For the others see [TestOrderWithIstioWebhooks].
func TestOrderWithIstio(t *testing.T) {
	const skipped = "sidecar linkerd skipped: the pod has the proxy istio-proxy already, and Linkerd's injector leaves such pods alone"
	linkerd := map[string]any{"identityTrustAnchorsPEM": linkerdTrustAnchors}
	dapr := map[string]any{"trustAnchors": "the roots"}
	for name, tc := range map[string]struct {
		sidecar map[string]any
		// has and not are texts of the pod, results one of what is said.
		has, not []string
		results  string
	}{
		"Linkerd after Istio": {map[string]any{"builtIn": "linkerd", "values": linkerd}, []string{"name: istio-proxy"}, []string{"linkerd-proxy"}, skipped},
		// Only where the configurations have other names in a cluster: Istio's injector adds its proxy to any pod.
		"Linkerd before Istio": {map[string]any{"builtIn": "linkerd", "values": linkerd, "order": map[string]any{"istio": "Inside"}},
			[]string{"name: istio-proxy", "name: linkerd-proxy"}, nil, "sidecar linkerd injected"},
		// Istio sees daprd as a container of the app, whose probes it takes over.
		"Dapr before Istio": {map[string]any{"builtIn": "dapr", "values": dapr}, []string{"name: istio-proxy", "name: daprd", "/app-health/daprd/readyz"}, nil, "sidecar dapr injected"},
		"Dapr after Istio": {map[string]any{"builtIn": "dapr", "values": dapr, "order": map[string]any{"istio": "Outside"}},
			[]string{"name: istio-proxy", "name: daprd"}, []string{"/app-health/daprd/readyz"}, "sidecar dapr injected"},
	} {
		t.Run(name, func(t *testing.T) {
			policy, err := yaml.Marshal(map[string]any{"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.Kind, "metadata": map[string]any{"name": "both"},
				"spec": map[string]any{"istio": map[string]any{"injector": map[string]any{"builtIn": "istio"}}, "sidecars": []any{tc.sidecar}}})
			if err != nil {
				t.Fatal(err)
			}
			manifest := linkerdManifest(t, linkerdCase{labels: map[string]string{"sidecar.istio.io/inject": "true"},
				annotations: map[string]string{"dapr.io/enabled": "true", "dapr.io/app-id": "orders"}})
			out, results := apply(t, policy, manifest, v1alpha1.ModeInject)
			for _, text := range tc.has {
				if !bytes.Contains(out, []byte(text)) {
					t.Errorf("the pod has no %q:\n%s", text, out)
				}
			}
			for _, text := range tc.not {
				if bytes.Contains(out, []byte(text)) {
					t.Errorf("the pod has %q:\n%s", text, out)
				}
			}
			if !strings.Contains(results, tc.results) {
				t.Errorf("the results do not say %q:\n%s", tc.results, results)
			}
			if twice, _ := apply(t, policy, out, v1alpha1.ModeInject); !bytes.Equal(out, twice) {
				t.Errorf("injecting twice is not injecting once:\n%s", twice)
			}
			if back, _ := apply(t, policy, out, v1alpha1.ModeRemove); !bytes.Equal(manifest, back) {
				t.Errorf("removing does not give the input:\n%s", back)
			}
		})
	}
}
