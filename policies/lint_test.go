// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// TestLintOfOrdinarySidecars sees that the rule about Jobs knows what the policies inject: by the names of the containers, and by the
// variables that say whether something can end them.
func TestLintOfOrdinarySidecars(t *testing.T) {
	const dapr = `dapr, values: {trustAnchors: x}`
	for _, tc := range []struct {
		name, sidecar, annotations string
		want                       string // the container that does not end
	}{
		{name: "dapr", sidecar: dapr, annotations: `dapr.io/enabled: "true"`, want: "daprd"},
		{name: "native dapr", sidecar: dapr, annotations: `dapr.io/enabled: "true", dapr.io/enable-native-sidecar: "true"`},
		{
			name: "linkerd", sidecar: `linkerd, values: {identityTrustAnchorsPEM: x, proxy: {nativeSidecar: false}}`,
			annotations: `linkerd.io/inject: enabled`, want: "linkerd-proxy",
		},
		{
			name: "linkerd with its endpoint", sidecar: `linkerd, values: {identityTrustAnchorsPEM: x, proxy: {nativeSidecar: false}}`,
			annotations: `linkerd.io/inject: enabled, config.linkerd.io/proxy-admin-shutdown: enabled`,
		},
		{name: "native linkerd", sidecar: `linkerd, values: {identityTrustAnchorsPEM: x}`, annotations: `linkerd.io/inject: enabled`},
		{name: "vault", sidecar: vaultOf("false"), annotations: vaultAnnotations(``), want: "vault-agent"},
		{name: "vault with its endpoint", sidecar: vaultOf("false"), annotations: vaultAnnotations(`, vault.hashicorp.com/agent-enable-quit: "true"`)},
		{name: "vault of a ConfigMap", sidecar: vaultOf("false"), annotations: vaultAnnotations(`, vault.hashicorp.com/agent-configmap: own`)},
		{name: "vault before the app", sidecar: vaultOf("false"), annotations: vaultAnnotations(`, vault.hashicorp.com/agent-pre-populate-only: "true"`)},
		{name: "native vault", sidecar: vaultOf("true"), annotations: vaultAnnotations(``)},
		{
			name: "collector", sidecar: `opentelemetry-collector, values: {native: false, endpoint: "gateway:4317"}`,
			annotations: `sidecar.opentelemetry.io/inject: "true"`, want: "otel-collector",
		},
		{name: "shipper", sidecar: `fluent-bit, values: {native: false}`, annotations: `fluent-bit.prerig.dev/inject: "true"`, want: "fluent-bit"},
		{name: "native shipper", sidecar: `fluent-bit`, annotations: `fluent-bit.prerig.dev/inject: "true"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			policy := fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {lint: {}, sidecars: [{builtIn: %s}]}\n", tc.sidecar)
			job := fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: report, namespace: shop}\nspec:\n  template:\n    metadata: {annotations: {%s}}\n"+
				"    spec: {restartPolicy: Never, serviceAccountName: report, containers: [{name: app, image: \"example.com/app:1\"}]}\n", tc.annotations)
			_, results := apply(t, []byte(policy), []byte(job), v1alpha1.ModeInject)
			if !strings.Contains(results, " injected: ") {
				t.Fatal(results)
			}
			want := fmt.Sprintf("container %s is not a native sidecar and goes on when the application has ended [PR301]", tc.want)
			if got := strings.Contains(results, "PR301"); got != (tc.want != "") || got && !strings.Contains(results, want) {
				t.Errorf("want %q:\n%s", tc.want, results)
			}
		})
	}
}

func vaultOf(native string) string {
	return fmt.Sprintf(`vault-agent, values: {address: "https://vault:8200", native: %s}`, native)
}

func vaultAnnotations(more string) string {
	return `vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: report` + more
}
