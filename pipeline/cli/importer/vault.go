// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/podmap"
)

const (
	vaultName = "vault-agent"
	// vaultPrefix is that of the variables from which Vault's injector reads its settings, and vaultAddress the one
	// that it cannot do without (subcommand/injector/flags.go of vault-k8s 1.7.6).
	vaultPrefix  = "AGENT_INJECT_"
	vaultAddress = vaultPrefix + "VAULT_ADDR"
	// vaultWebhook is the name of the webhook (deploy/injector-mutating-webhook.yaml).
	vaultWebhook = "vault.hashicorp.com"
)

// vaultValues are the values of the built-in sidecar by the variables of the injector that set them, without their
// prefix.
var vaultValues = map[string]string{
	"VAULT_ADDR": "address", "VAULT_IMAGE": "image", "VAULT_AUTH_TYPE": "authType", "VAULT_AUTH_PATH": "authPath",
	"VAULT_NAMESPACE":    "vaultNamespace",
	"VAULT_CACERT_BYTES": "caCertBytes", "PROXY_ADDR": "proxyAddress", "REVOKE_ON_SHUTDOWN": "revokeOnShutdown",
	"RUN_AS_USER":  "runAsUser",
	"RUN_AS_GROUP": "runAsGroup", "RUN_AS_SAME_USER": "runAsSameUser", "SET_SECURITY_CONTEXT": "setSecurityContext",
	"DEFAULT_TEMPLATE": "defaultTemplate",
	"CPU_REQUEST":      "cpuRequest", "CPU_LIMIT": "cpuLimit", "MEM_REQUEST": "memoryRequest",
	"MEM_LIMIT":         "memoryLimit",
	"EPHEMERAL_REQUEST": "ephemeralRequest", "EPHEMERAL_LIMIT": "ephemeralLimit",
	"TEMPLATE_CONFIG_EXIT_ON_RETRY_FAILURE":  "exitOnRetryFailure",
	"TEMPLATE_STATIC_SECRET_RENDER_INTERVAL": "staticSecretRenderInterval",
	"TEMPLATE_MAX_CONNECTIONS_PER_HOST":      "maxConnectionsPerHost",
	"AUTH_MIN_BACKOFF":                       "authMinBackoff", "AUTH_MAX_BACKOFF": "authMaxBackoff",
	"DISABLE_IDLE_CONNECTIONS": "disableIdleConnections",
	"DISABLE_KEEP_ALIVES":      "disableKeepAlives",
}

// findVault returns the Deployment of Vault's injector, or nil if none exists.
func findVault(all []*clusterObject) (*clusterObject, error) {
	var found *clusterObject
	for _, o := range all {
		if o.kind != "Deployment" || vaultContainer(o) == nil {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("importing: %s and %s are both Vault's injector; a policy is for one", found, o)
		}
		found = o
	}
	return found, nil
}

// vaultContainer returns the injector's container, which has the address of Vault among its variables.
func vaultContainer(o *clusterObject) map[string]any {
	for _, c := range objectsOf(podmap.ValueAt(o.Value, "spec", "template", "spec", "containers")) {
		if slices.ContainsFunc(objectsOf(c["env"]), func(e map[string]any) bool { return e["name"] == vaultAddress }) {
			return c
		}
	}
	return nil
}

// setVault adds Vault's sidecar with the settings of the injector's Deployment, so that pods are those that it makes.
func (r *sidecarReader) setVault(deployment *clusterObject, all []*clusterObject) error {
	values := map[string]any{"native": false, "exec": false, "ownToken": false}
	container := vaultContainer(deployment)
	for _, e := range objectsOf(container["env"]) {
		variable := podmap.TextAt(e, "name")
		name := vaultValues[strings.TrimPrefix(variable, vaultPrefix)]
		if name == "" || !strings.HasPrefix(variable, vaultPrefix) {
			continue
		}
		if e["valueFrom"] != nil {
			r.addWarning("the variable %s of %s is not in its manifest: set %s in the values of spec.sidecars",
				variable, deployment, name)
		}
		// The injector treats an empty value as unset.
		if value := podmap.TextAt(e, "value"); value != "" {
			values[name] = value
		}
	}
	if values["image"] == nil {
		r.addWarning("%s does not set %sVAULT_IMAGE: the image of the agent is that of the built-in policy, not that of the injector's version", deployment, vaultPrefix)
	}
	args, _ := container["args"].([]any)
	for _, arg := range args {
		if text, _ := arg.(string); strings.HasPrefix(text, "-") {
			r.addWarning("the argument %s of %s is ignored: only its variables are read", text, deployment)
		}
	}
	namespace := deployment.namespace
	if namespace == "" {
		namespace = "vault"
	}
	r.origins = append(r.origins, fmt.Sprintf("%s in namespace %s", deployment.name, namespace))
	sidecar := v1alpha1.Sidecar{BuiltIn: vaultName, Values: values}
	rules, err := vaultWebhookRules(all)
	if err != nil {
		return err
	}
	if len(rules) > 0 {
		known, err := builtInSidecar(vaultName)
		if err != nil {
			return err
		}
		sidecar.Select = known.Select
		sidecar.Select.Rules = append(rules, known.Select.Rules...)
	}
	r.sidecars = append(r.sidecars, sidecar)
	return nil
}

// vaultWebhookRules returns rules that skip the pods for which the webhook is not called, by its selectors.
func vaultWebhookRules(all []*clusterObject) ([]v1alpha1.SidecarRule, error) {
	var rules []v1alpha1.SidecarRule
	for _, o := range all {
		if o.kind != "MutatingWebhookConfiguration" {
			continue
		}
		for _, entry := range objectsOf(o.Value["webhooks"]) {
			if podmap.TextAt(entry, "name") != vaultWebhook {
				continue
			}
			for _, selector := range []struct{ field, on string }{{"namespaceSelector", "Namespace"}, {"objectSelector", "Pod"}} {
				skips, err := skipRules(entry[selector.field], selector.on)
				if err != nil {
					return nil, fmt.Errorf("importing %s: reading %s: %w", o, selector.field, err)
				}
				rules = append(rules, skips...)
			}
		}
	}
	return rules, nil
}

// skipRules returns a rule for each requirement of a selector, which skips what does not meet it: all of them have to
// hold.
func skipRules(selector any, on string) ([]v1alpha1.SidecarRule, error) {
	text, err := json.Marshal(selector)
	if err != nil {
		return nil, err
	}
	var s v1alpha1.LabelSelector
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, err
	}
	requirements := s.MatchExpressions
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		requirements = append(requirements, v1alpha1.LabelSelectorRequirement{Key: key, Operator: "In", Values: []string{s.MatchLabels[key]}})
	}
	opposite := map[string]string{"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
	var rules []v1alpha1.SidecarRule
	for _, r := range requirements {
		if opposite[r.Operator] == "" {
			return nil, fmt.Errorf("the operator %q is not a selector operator", r.Operator)
		}
		r.Operator = opposite[r.Operator]
		rules = append(rules, v1alpha1.SidecarRule{
			On: on, Action: v1alpha1.SidecarSkip, Labels: &v1alpha1.LabelSelector{MatchExpressions: []v1alpha1.LabelSelectorRequirement{r}},
			Reason: fmt.Sprintf("Vault's webhook is not called for it, by the label %s", r.Key),
		})
	}
	return rules, nil
}
