// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"fmt"
	"testing"
)

// TestTokenOfTheAccount allows the token of the service account where Kubernetes would add it.
func TestTokenOfTheAccount(t *testing.T) {
	projected := `{name: kube-api-access-x2x7k, projected: {sources: [{serviceAccountToken: {path: token}}, {configMap: {name: kube-root-ca.crt}}]}}`
	legacy := `{name: default-token-x2x7k, secret: {secretName: default-token-x2x7k}}`
	const since = `, managedFields: [{manager: kubectl, time: "2026-02-01T00:00:00Z"}]`
	for name, c := range map[string]struct {
		volume, spec, account, version string
		state                          State
	}{
		"the token":                     {projected, ``, `{metadata: {%s}}`, "v1.36.0", Current},
		"the pod has none":              {projected, `automountServiceAccountToken: false, `, `{metadata: {%s}}`, "v1.36.0", Changed},
		"the account has none":          {projected, ``, `{metadata: {%s}, automountServiceAccountToken: false}`, "v1.36.0", Changed},
		"the pod has one all the same":  {projected, `automountServiceAccountToken: true, `, `{metadata: {%s}, automountServiceAccountToken: false}`, "v1.36.0", Current},
		"the account was changed since": {projected, ``, `{metadata: {%s` + since + `}, automountServiceAccountToken: false}`, "v1.36.0", Current},
		"a secret, as it was once":      {legacy, ``, `{metadata: {%s}}`, "v1.20.0", Current},
		"a secret, now":                 {legacy, ``, `{metadata: {%s}}`, "v1.24.0", Changed},
		"a secret, of no version":       {legacy, ``, `{metadata: {%s}}`, "", Changed},
	} {
		s := &Snapshot{KubernetesVersion: c.version}
		account := parse(t, fmt.Sprintf(c.account, `name: default, namespace: shop, creationTimestamp: "2025-01-01T00:00:00Z"`))
		account["apiVersion"], account["kind"] = "v1", "ServiceAccount"
		s.Add(account)
		const container = `containers: [{name: a, image: "a:1"}]`
		pod := verifyOne(t, `spec: {`+c.spec+container+`}`, `{metadata: {creationTimestamp: "2026-01-01T00:00:00Z"}, spec: {`+c.spec+
			`serviceAccountName: default, volumes: [`+c.volume+`], `+container+`}}`, s, Options{})
		if pod.State != c.state {
			t.Errorf("%s: %s %s %s", name, pod.State, fieldsOf(pod), pod.Message)
		}
	}
}

// TestAmbientRedirection allows what Istio's agent writes on pods of an ambient mesh, and neither other values nor a workload that says it.
func TestAmbientRedirection(t *testing.T) {
	for name, c := range map[string]struct {
		value, template string
		state           State
	}{
		"redirected":        {"enabled", webTemplate, Current},
		"nearly":            {"pending", webTemplate, Current},
		"another value":     {"disabled", webTemplate, Changed},
		"in its ReplicaSet": {"enabled", `{metadata: {labels: {app: web}, annotations: {ambient.istio.io/redirection: enabled}}, spec: {` + webSpec + `}}`, Changed},
	} {
		pod := webPod(webOwner, `, annotations: {ambient.istio.io/redirection: `+c.value+`}`, webSpec)
		if got := verifyObjects(t, "", webDeployment, pod, webReplicaSet(c.template)); got.State != c.state {
			t.Errorf("%s: %s %s", name, got.State, fieldsOf(got))
		}
	}
}
