// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// clusterObjects are those of a YAML stream.
func clusterObjects(t *testing.T, text string) []Object {
	t.Helper()
	objects, err := Read("cluster.yaml", []byte(text))
	must(t, err)
	return objects
}

const vaultDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: vault-agent-injector, namespace: vault}
spec:
  template:
    spec:
      containers:
      - name: sidecar-injector
        args: [agent-inject, 2>&1]
        env:
        - {name: AGENT_INJECT_LISTEN, value: ":8080"}
        - {name: AGENT_INJECT_LOG_LEVEL, value: info}
        - {name: AGENT_INJECT_VAULT_ADDR, value: "http://vault.vault.svc:8200"}
        - {name: AGENT_INJECT_VAULT_IMAGE, value: "hashicorp/vault:1.21.2"}
        - {name: AGENT_INJECT_REVOKE_ON_SHUTDOWN, value: "false"}
        - {name: AGENT_INJECT_CPU_LIMIT, value: "250m"}
        - {name: AGENT_INJECT_VAULT_NAMESPACE, value: ""}
        - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
`

// TestVaultSettings: the variables of the injector's Deployment are the values of the sidecar, and those that it takes as not
// set are not among them.
func TestVaultSettings(t *testing.T) {
	t.Parallel()
	_, imp, err := imported(clusterObjects(t, vaultDeployment), Options{})
	must(t, err)
	want := []v1alpha1.Sidecar{{BuiltIn: "vault-agent", Values: map[string]any{
		"address": "http://vault.vault.svc:8200", "image": "hashicorp/vault:1.21.2", "revokeOnShutdown": "false", "cpuLimit": "250m",
		"native": false, "exec": false, "ownToken": false,
	}}}
	if d := cmp.Diff(want, imp.Policy.Spec.Sidecars); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if imp.Policy.Metadata.Name != "vault-agent" || imp.From != "vault-agent-injector in namespace vault; 0 namespaces" || len(imp.Warnings) > 0 {
		t.Errorf("name %s, from %q, warnings %q", imp.Policy.Metadata.Name, imp.From, imp.Warnings)
	}
}

// TestVaultUnread: settings that are not in the manifest, or not among the variables, lead to a warning.
func TestVaultUnread(t *testing.T) {
	t.Parallel()
	text := strings.NewReplacer(`value: "hashicorp/vault:1.21.2"`, `valueFrom: {configMapKeyRef: {name: settings, key: image}}`,
		"[agent-inject, 2>&1]", "[agent-inject, -run-as-user=7]").Replace(vaultDeployment)
	_, imp, err := imported(clusterObjects(t, text), Options{})
	must(t, err)
	for _, want := range []string{"the variable AGENT_INJECT_VAULT_IMAGE of ", "set image in the values", "does not set AGENT_INJECT_VAULT_IMAGE", "the argument -run-as-user=7 of "} {
		if !strings.Contains(strings.Join(imp.Warnings, "\n"), want) {
			t.Errorf("no warning says %q: %q", want, imp.Warnings)
		}
	}
	two := vaultDeployment + "---" + strings.Replace(vaultDeployment, "namespace: vault", "namespace: other", 1)
	if _, _, err := imported(clusterObjects(t, two), Options{}); err == nil || !strings.Contains(err.Error(), "both Vault's injector") {
		t.Errorf("of two injectors the error is %v", err)
	}
}

// TestVaultWebhook: pods for which the webhook is not called, by the selectors of its configuration, are not injected.
func TestVaultWebhook(t *testing.T) {
	t.Parallel()
	const webhook = `---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: vault-agent-injector-cfg}
webhooks:
- name: other.example.com
  objectSelector: {matchLabels: {never: "true"}}
- name: vault.hashicorp.com
  namespaceSelector:
    matchLabels: {vault: "on"}
    matchExpressions: [{key: legacy, operator: DoesNotExist}]
  objectSelector:
    matchExpressions: [{key: app.kubernetes.io/name, operator: NotIn, values: [vault-agent-injector]}]
`
	for name, tc := range map[string]struct {
		namespace, pod string
		want           string
	}{
		"called":            {"{vault: 'on'}", "{app: web}", ""},
		"namespace's value": {"{vault: 'off'}", "{app: web}", "by the label vault"},
		"namespace without": {"{}", "{app: web}", "by the label vault"},
		"namespace legacy":  {"{vault: 'on', legacy: x}", "{app: web}", "by the label legacy"},
		"injector":          {"{vault: 'on'}", "{app.kubernetes.io/name: vault-agent-injector}", "by the label app.kubernetes.io/name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: " + tc.namespace + "}\n"
			policy, _, err := imported(clusterObjects(t, vaultDeployment+webhook+namespace), Options{})
			must(t, err)
			p, err := v1alpha1.Parse(policy)
			must(t, err)
			injector, err := fn.New([]*v1alpha1.InjectionPolicy{p})
			must(t, err)
			file, err := manifest.Parse("pod.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: web, namespace: shop, labels: "+tc.pod+
				", annotations: {vault.hashicorp.com/agent-inject: 'true', vault.hashicorp.com/role: web}}\nspec: {containers: [{name: web, image: i}]}\n"))
			must(t, err)
			report, err := injector.Run(t.Context(), []fn.Item{{Doc: file.Docs[0]}})
			must(t, err)
			var said strings.Builder
			for _, r := range report.Results {
				said.WriteString(r.Message + "\n")
			}
			var pod struct{ Spec struct{ Containers []any } }
			must(t, yaml.Unmarshal(report.Items[0].Doc.Raw(), &pod))
			if injected := len(pod.Spec.Containers) == 2; injected != (tc.want == "") {
				t.Errorf("injected: %v\n%s", injected, said.String())
			}
			if !strings.Contains(said.String(), tc.want) {
				t.Errorf("the results do not say %q:\n%s", tc.want, said.String())
			}
		})
	}
}
