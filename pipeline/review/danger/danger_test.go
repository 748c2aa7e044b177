// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package danger_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/pipeline/review/danger"
)

func deployment(spec string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {" + spec + "}}}\n"
}

// TestDangers has one change for each danger, and changes that have none.
func TestDangers(t *testing.T) {
	const app = `containers: [{name: app, image: "app:1.2"}]`
	const rbac = "apiVersion: rbac.authorization.k8s.io/v1\n"
	for name, c := range map[string]struct{ before, after, want string }{
		"privileged":       {deployment(app), deployment(`containers: [{name: app, image: "app:1.2", securityContext: {privileged: true}}]`), "the container app runs privileged"},
		"new, privileged":  {"", deployment(`containers: [{name: app, securityContext: {privileged: true}}]`), "the container app runs privileged"},
		"host network":     {deployment(app), deployment("hostNetwork: true, " + app), "hostNetwork: true shares the node's own"},
		"host path":        {deployment(app), deployment("volumes: [{name: v, hostPath: {path: /var/run}}], " + app), "mounts the node's directory /var/run (hostPath)"},
		"capability":       {deployment(app), deployment(`containers: [{name: app, image: "app:1.2", securityContext: {capabilities: {add: [SYS_ADMIN]}}}]`), "the container app adds the capability SYS_ADMIN"},
		"a mesh":           {deployment(app), deployment(`initContainers: [{name: istio-init, securityContext: {capabilities: {add: [NET_ADMIN, NET_RAW]}}}], ` + app), ""},
		"a low port":       {deployment(app), deployment(`containers: [{name: app, image: "app:1.2", securityContext: {capabilities: {add: [NET_BIND_SERVICE]}}}]`), ""},
		"major version":    {deployment(app), deployment(`containers: [{name: app, image: "app:v2.0"}]`), "another major version of app: v2.0 in the place of 1.2"},
		"minor version":    {deployment(app), deployment(`containers: [{name: app, image: "app:1.3"}]`), ""},
		"dates":            {deployment(`containers: [{name: app, image: "app:20240131"}]`), deployment(`containers: [{name: app, image: "app:20250131"}]`), ""},
		"another image":    {deployment(`containers: [{name: app, image: "r:5000/app"}]`), deployment(`containers: [{name: app, image: "other:2"}]`), ""},
		"no replicas":      {"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 2}", "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0}", "replicas: 0 stops all of its pods"},
		"still no replica": {"apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0}", "apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 0, a: 1}", ""},
		"cluster-admin":    {"", rbac + "kind: ClusterRoleBinding\nroleRef: {kind: ClusterRole, name: cluster-admin}\n", "binds to cluster-admin, with every right in the whole cluster"},
		"view":             {"", rbac + "kind: ClusterRoleBinding\nroleRef: {kind: ClusterRole, name: view}\n", ""},
		"all verbs":        {"", rbac + "kind: ClusterRole\nrules: [{verbs: [\"*\"], resources: [pods]}]\n", "a rule permits every verb or every resource (*)"},
		"network policy":   {"apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n", "", "a NetworkPolicy is removed: what it keeps apart may connect"},
		"budget":           {"apiVersion: policy/v1\nkind: PodDisruptionBudget\n", "", "a PodDisruptionBudget is removed: a drain may stop all pods at once"},
		"stateful set":     {"apiVersion: apps/v1\nkind: StatefulSet\n", "", "a StatefulSet is deleted: its pods stop, and its claims stay or go with them by its retention policy"},
		"claims":           {"apiVersion: apps/v1\nkind: StatefulSet\nspec: {volumeClaimTemplates: [{a: 1}]}", "apiVersion: apps/v1\nkind: StatefulSet\nspec: {volumeClaimTemplates: [{a: 2}]}", "volumeClaimTemplates cannot change: the StatefulSet has to be created again"},
		"service type":     {"apiVersion: v1\nkind: Service\n", "apiVersion: v1\nkind: Service\nspec: {type: LoadBalancer}\n", "spec.type changes from ClusterIP to LoadBalancer, and with it who reaches the Service"},
		"cluster IP":       {"apiVersion: v1\nkind: Service\nspec: {clusterIP: None}", "apiVersion: v1\nkind: Service\n", "spec.clusterIP cannot change: the Service has to be created again"},
		"injection":        {"apiVersion: v1\nkind: Namespace\nmetadata: {labels: {istio-injection: enabled}}", "apiVersion: v1\nkind: Namespace\n", "without the label istio-injection, new pods get no sidecar"},
		"pod security":     {"apiVersion: v1\nkind: Namespace\nmetadata: {labels: {pod-security.kubernetes.io/enforce: restricted}}", "apiVersion: v1\nkind: Namespace\n", "Pod Security enforces nothing in the place of restricted"},
		"suspended":        {"apiVersion: batch/v1\nkind: CronJob\nspec: {suspend: false}", "apiVersion: batch/v1\nkind: CronJob\nspec: {suspend: true}", "suspend: true stops it"},
	} {
		var sides [2]map[string]any
		for i, text := range []string{c.before, c.after} {
			if err := yaml.Unmarshal([]byte(text), &sides[i]); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if got := strings.Join(danger.Of(sides[0], sides[1]), "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
