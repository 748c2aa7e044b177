// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/ambient"
)

// vs is a VirtualService for the mesh or a gateway.
func vs(name, gateways, host, to string) string {
	return fmt.Sprintf(`---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: %s, namespace: shop}
spec:
  hosts: [%s]
  gateways: [%s]
  http:
  - route: [{destination: {host: %s}}]
`, name, host, gateways, to)
}

const apiSubsets = `---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: api, namespace: shop}
spec: {host: api, subsets: [{name: v1, labels: {version: v1}}]}
`

// TestSubsetsOfGateways: a DestinationRule with subsets that only gateways choose needs no waypoint, which would take them away. Seen in
// istioinaction/book-source-code, ch10.
func TestSubsetsOfGateways(t *testing.T) {
	n := planOf(t, cluster, apiSubsets, vs("api", "istio-system/public", "api.example.com", "api, subset: v1"))
	if n.Waypoint != "" || n.Solved["PR911"] != 0 || len(n.Open) > 0 {
		t.Errorf("waypoint %q for %s, solved %v, open %v", n.Waypoint, n.Reason, n.Solved, n.Open)
	}
}

// TestGatewaySubsetsKeepTheLabelAway: at a gateway, the label for waypoints ends subsets. It is set on the other Services, and the one that needs
// both is named. Seen in istioinaction/book-source-code, ch5.
func TestGatewaySubsetsKeepTheLabelAway(t *testing.T) {
	gateways := vs("web", "istio-system/public", "web.example.com", "web") + vs("api", "istio-system/public", "api.example.com", "api, subset: v1")
	const label = `istio.io/ingress-use-waypoint: "true"`
	text := cluster + "---\n" + strings.Replace(getOnly, "app: api", "app: web", 1) + apiSubsets + gateways
	if got := applied(t, text, "label"); strings.Count(got, label) != 1 || !strings.Contains(got, "name: web, namespace: shop, labels: {istio.io/ingress-use-waypoint") {
		t.Errorf("the label is not on Service web alone:\n%s", got)
	}
	n := planOf(t, cluster, getOnly, apiSubsets, gateways)
	if n.State != "change" || !slices.ContainsFunc(n.Open, func(o ambient.Note) bool {
		return o.Object == "Service shop/api" && strings.Contains(o.Message, "choose subsets")
	}) {
		t.Errorf("state %s, open %v", n.State, n.Open)
	}
	if got := applied(t, cluster+vs("api", "istio-system/public", "api.example.com", "api")+vs("mesh", "mesh", "web", "api"), "label"); strings.Contains(got, "ingress-use-waypoint") {
		t.Errorf("a label for gateways without a policy that the waypoint enforces:\n%s", got)
	}
}

// TestHeadlessPolicyStays: calls to the pods of a headless Service pass no waypoint, so that ztunnel sees their clients, and a policy of layer 4
// goes on as it is. Seen in istioinaction/book-source-code, ch9.
func TestHeadlessPolicyStays(t *testing.T) {
	const db = `---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: None, selector: {app: db}, ports: [{name: tcp, port: 5432}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db, namespace: shop, labels: {app: db}}
spec: {containers: [{name: app, image: app, ports: [{containerPort: 5432}]}]}
---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: db, namespace: shop}
spec:
  selector: {matchLabels: {app: db}}
  rules: [{from: [{source: {principals: [cluster.local/ns/shop/sa/api]}}]}]
`
	n := planOf(t, cluster+db, getOnly)
	if len(n.Open) > 0 {
		t.Errorf("open: %v", n.Open)
	}
	if got := applied(t, cluster+db+"---\n"+getOnly, ambient.StepNames()...); strings.Contains(got, "name: db-waypoint") || strings.Count(got, "name: db,") < 3 {
		t.Errorf("the policy does not stay:\n%s", got)
	}
}

// TestCopiesAreNoFindings: copies that the steps write are for a waypoint that the namespace is going to have, also when nothing but copies needs
// it. Seen in istioinaction/book-source-code, ch14.
func TestCopiesAreNoFindings(t *testing.T) {
	_, rest, _ := strings.Cut(cluster, "---\n")
	n := planOf(t, rest, `apiVersion: extensions.istio.io/v1alpha1
kind: WasmPlugin
metadata: {name: filter, namespace: shop}
spec: {selector: {matchLabels: {app: api}}, url: oci://example.com/filter, pluginConfig: {cluster: outbound|80||web}}
`)
	for _, o := range n.Open {
		if o.Level != ambient.Elsewhere && o.Object != "WasmPlugin shop/filter" {
			t.Errorf("open: %v", o)
		}
	}
	if len(n.Open) != 2 || slices.ContainsFunc(n.Gaps, func(gap string) bool { return strings.Contains(gap, "ALLOW") }) {
		t.Errorf("open %v, gaps %q", n.Open, n.Gaps)
	}
}

// TestNamespaceWithoutLabels: seen in istio-ecosystem/authservice, where it was a panic.
func TestNamespaceWithoutLabels(t *testing.T) {
	n := planOf(t, strings.Replace(cluster, ", labels: {istio-injection: enabled}", "", 1), getOnly)
	if n.Waypoint == "" {
		t.Error("no waypoint")
	}
}

// TestRetriesHaveTheirReason: HTTPRoutes have retries, which are experimental. Seen in redhat-scholars/istio-tutorial.
func TestRetriesHaveTheirReason(t *testing.T) {
	n := planOf(t, cluster, strings.Replace(vs("api", "mesh", "api", "api"), "  - route", "  - retries: {attempts: 0}\n    route", 1))
	if len(n.Open) != 1 || !strings.Contains(n.Open[0].Message, "experimental channel") {
		t.Errorf("open: %v", n.Open)
	}
}

// TestWorkloadsOfSeveralFiles: a workload that several files hold is one. Seen in istioinaction/book-source-code.
func TestWorkloadsOfSeveralFiles(t *testing.T) {
	const pod = `apiVersion: apps/v1
kind: Deployment
metadata: {name: sleep, namespace: shop}
spec:
  replicas: %d
  template:
    metadata: {labels: {app: sleep}, annotations: {sidecar.istio.io/status: '{}'}}
    spec: {containers: [{name: app, image: app}, {name: istio-proxy, image: proxyv2, resources: {requests: {cpu: 100m}}}]}
`
	var docs []*manifest.Document
	for _, replicas := range []int{1, 10, 1} {
		m, err := manifest.Parse("a.yaml", fmt.Appendf(nil, pod, replicas))
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, m.Docs...)
	}
	usage, err := ambient.SidecarUsage(docs, "")
	if err != nil || usage["shop"].Pods != 10 || usage["shop"].CPURequests != 1000 {
		t.Errorf("usage %+v, error %v", usage["shop"], err)
	}
}

// TestMeshThatHasNoAmbientMode: where the control plane has none, nothing can move, wherever its object is. Seen in kiali/demos.
func TestMeshThatHasNoAmbientMode(t *testing.T) {
	plan := plansOf(t, cluster, "apiVersion: maistra.io/v2\nkind: ServiceMeshControlPlane\nmetadata: {name: basic, namespace: istio-system}\nspec: {version: v2.1}\n")
	if plan.Namespaces[0].State != "blocked" || len(plan.Mesh) != 1 {
		t.Errorf("state %s, mesh %v", plan.Namespaces[0].State, plan.Mesh)
	}
}

// TestPatchedSidecars: sidecars that kustomize patches add are not in the manifests. Seen in stefanprodan/gitops-istio.
func TestPatchedSidecars(t *testing.T) {
	m, err := manifest.Parse("apps/0.yaml", []byte(cluster))
	if err != nil {
		t.Fatal(err)
	}
	patches := []ambient.Patch{{Path: "apps/patch.yaml", Text: "- op: add\n  path: /spec/template/metadata/annotations/sidecar.istio.io~1status\n  value: '{}'\n"}}
	plan, err := ambient.New([]ambient.File{{Path: "apps/0.yaml", Docs: m.Docs}}, ambient.Options{Patches: patches}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if r := plan.Namespaces[0].Remarks; !slices.ContainsFunc(r, func(r string) bool { return strings.Contains(r, "remove it from apps/patch.yaml") }) {
		t.Errorf("remarks %q", r)
	}
}

// TestOneLineForEachSort: notes of one sort are one line of text with all objects.
func TestOneLineForEachSort(t *testing.T) {
	text := cluster
	for _, host := range []string{"a.example.com", "b.example.com", "c.example.com"} {
		text += vs(host, "mesh", host, "api")
	}
	var out strings.Builder
	if err := plansOf(t, text).WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Count(out.String(), "change: ") != 1 || !strings.Contains(out.String(), "also 2 more: VirtualService shop/b.example.com (0.yaml:") ||
		strings.Contains(out.String(), "ztunnel enforces all of its policies") {
		t.Error(out.String())
	}
}

// TestLimitedAuditLeavesTheWaypointOut: what the waypoint has audited is not audited again at the pod, where the waypoint is the caller. Seen by the
// oracle, seed 1026.
func TestLimitedAuditLeavesTheWaypointOut(t *testing.T) {
	got := applied(t, cluster+"---\n"+strings.Replace(getOnly, "  rules: [{to", "  action: AUDIT\n  rules: [{from: [{source: {namespaces: [shop]}}], to", 1), "policies", "limit")
	if !strings.Contains(got, "notPrincipals: [cluster.local/ns/shop/sa/waypoint]") && !strings.Contains(got, "- cluster.local/ns/shop/sa/waypoint") {
		t.Errorf("the waypoint's requests are audited twice:\n%s", got)
	}
}

// TestSidecarsAreRemovedBesideNewObjects: the document without a sidecar is that of the same document, also when a step before has added one to the
// file, and it takes no label of an earlier step away. Seen in christian-posta/istio-demos.
func TestSidecarsAreRemovedBesideNewObjects(t *testing.T) {
	const injected = `apiVersion: v1
kind: Pod
metadata: {name: job, namespace: shop, labels: {app: job}, annotations: {sidecar.istio.io/status: '{}'}}
spec: {containers: [{name: app, image: app}, {name: istio-proxy, image: proxyv2}]}
---
apiVersion: v1
kind: Pod
metadata: {name: out, namespace: shop, labels: {app: out}, annotations: {sidecar.istio.io/inject: "false"}}
spec: {containers: [{name: app, image: app}]}
---
`
	parsed := func(text string) []*manifest.Document {
		m, err := manifest.Parse("all.yaml", []byte(text+getOnly+"---\n"+cluster))
		if err != nil {
			t.Fatal(err)
		}
		return m.Docs
	}
	clean := strings.Replace(strings.Replace(injected, ", {name: istio-proxy, image: proxyv2}", "", 1), ", annotations: {sidecar.istio.io/status: '{}'}", "", 1)
	files := []ambient.File{{Path: "all.yaml", Docs: parsed(injected), Clean: parsed(clean)}}
	for _, step := range ambient.StepNames() {
		var err error
		if files, _, err = ambient.Apply(files, ambient.Options{}, step); err != nil {
			t.Fatal(err)
		}
	}
	got := string(files[0].Bytes())
	if strings.Contains(got, "istio-proxy") || !strings.Contains(got, "istio.io/dataplane-mode: none") {
		t.Errorf("a sidecar or no label:\n%s", got)
	}
}

// TestPodsElsewhere: a policy with a selector needs a waypoint although its pods are in no file. Seen in christian-posta/istio-demos.
func TestPodsElsewhere(t *testing.T) {
	n := planOf(t, getOnly)
	if n.Waypoint == "" || n.State != "change" {
		t.Errorf("waypoint %q, state %s, open %v", n.Waypoint, n.State, n.Open)
	}
}

// TestNoCopyWithoutRules: for a Service whose ports no rule of a DENY policy matches, there is no copy: Istio refuses one without rules, and one with CUSTOM. An ALLOW
// policy without rules allows nothing, as before. Seen by the oracle, seed 7013.
func TestNoCopyWithoutRules(t *testing.T) {
	const policy = `---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: admin, namespace: shop}
spec: {action: ACTION, rules: [{to: [{operation: {methods: [GET], ports: ["9090"]}}]}]}
`
	for action, want := range map[string]string{"DENY": "", "CUSTOM, provider: {name: ext}": "", "ALLOW": "name: api,"} {
		_, copied, _ := strings.Cut(applied(t, cluster+strings.Replace(policy, "ACTION", action, 1), "policies"), "ambient-copy-of")
		if strings.Contains(copied, "name: api,") != (want != "") || !strings.Contains(copied, "name: web,") {
			t.Errorf("%s: the copies\n%s", action, copied)
		}
	}
}

// TestObjectsWithoutNamespaceAreNamed: a kustomization elsewhere sets their namespace. Seen in mathieu-benoit/my-kubernetes-deployments, where
// policies beside a Namespace were left out without a word.
func TestObjectsWithoutNamespaceAreNamed(t *testing.T) {
	plan := plansOf(t, cluster, strings.ReplaceAll(getOnly, ", namespace: shop", ""))
	if len(plan.Mesh) != 1 || !strings.Contains(plan.Mesh[0].Message, "names no namespace: left out of the plan, whichever namespace it belongs to; set --namespace") ||
		plan.Namespaces[0].State != "change" {
		t.Errorf("mesh: %v", plan.Mesh)
	}
}

// TestPoliciesOfGatewaysStay: gateways have other labels than those of Istio's chart. Seen in StatCan/aaw-argocd-manifests.
func TestPoliciesOfGatewaysStay(t *testing.T) {
	n := planOf(t, cluster, strings.NewReplacer("namespace: shop", "namespace: istio-system", "{app: api}", "{app.kubernetes.io/name: istio-ingress-gateway}").Replace(getOnly))
	if n.Waypoint != "" || len(n.Open) > 0 {
		t.Errorf("waypoint %q, open %v", n.Waypoint, n.Open)
	}
}

// TestLinesAreThoseOfTheFiles: notes and findings are about the files as they are, whatever the steps add above them. Seen in
// mathieu-benoit/my-kubernetes-deployments.
func TestLinesAreThoseOfTheFiles(t *testing.T) {
	const pod = `---
apiVersion: v1
kind: Pod
metadata: {name: waits, namespace: shop, labels: {app: waits}, annotations: {sidecar.istio.io/status: '{}'}}
spec:
  containers:
  - {name: istio-proxy, image: proxyv2}
  - name: app
    image: app
    command: [curl, "http://localhost:15021/healthz/ready"]
---
apiVersion: networking.istio.io/v1
kind: Sidecar
metadata: {name: default, namespace: shop}
spec: {egress: [{hosts: [./*]}]}
`
	text := cluster + "---\n" + getOnly + pod + vs("api", "mesh", "api", "api")
	parsed := func(text string) []*manifest.Document {
		m, err := manifest.Parse("all.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return m.Docs
	}
	clean := strings.NewReplacer("  - {name: istio-proxy, image: proxyv2}\n", "", ", annotations: {sidecar.istio.io/status: '{}'}", "").Replace(text)
	plan, err := ambient.New([]ambient.File{{Path: "all.yaml", Docs: parsed(text), Clean: parsed(clean)}}, ambient.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	n := plan.Namespaces[0]
	lines := strings.Split(text, "\n")
	for _, o := range append(n.Open, n.Advice...) {
		_, name, _ := strings.Cut(o.Object, "/")
		if o.Line < 1 || o.Line > len(lines) {
			t.Errorf("%v: there are %d lines", o, len(lines))
		} else if o.Field != "" && !strings.Contains(strings.Join(lines[max(0, o.Line-12):o.Line], "\n"), "name: "+name) {
			t.Errorf("%v: the line is %q", o, lines[o.Line-1])
		}
	}
	i := slices.IndexFunc(n.Open, func(o ambient.Note) bool { return o.Code == "PR931" })
	if i < 0 || n.Open[i].Field != "spec.containers[1].command[1]" || !strings.Contains(lines[n.Open[i].Line-1], "15021") {
		t.Errorf("open: %v", n.Open)
	}
}

// TestVariantsAreListed: objects of several files with one name are variants, and each has its own note. Seen in aws-samples/istio-on-eks.
func TestVariantsAreListed(t *testing.T) {
	const rule = "apiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: shop}\nspec: {outboundTrafficPolicy: {mode: REGISTRY_ONLY}}\n"
	n := planOf(t, cluster, rule, rule)
	if len(n.Open) != 2 || n.Open[0].File == n.Open[1].File {
		t.Errorf("open: %v", n.Open)
	}
}

// TestUnknownNamespacesAreNamed: without labels of namespaces, the plan of nothing is no all-clear. Seen in aws-samples/istio-on-eks.
func TestUnknownNamespacesAreNamed(t *testing.T) {
	_, rest, _ := strings.Cut(cluster, "---\n")
	m, err := manifest.Parse("0.yaml", []byte(rest))
	if err != nil {
		t.Fatal(err)
	}
	plan, err := ambient.New([]ambient.File{{Path: "0.yaml", Docs: m.Docs}}, ambient.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := plan.WriteText(&out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "not known: no file has the labels of shop. Name the namespaces that move with --only") {
		t.Error(out.String())
	}
}

// TestServicesElsewhere: routes and rules of Services that no file has need the waypoint as others do. Seen in aws-samples/istio-on-eks and
// StatCan/aaw-argocd-manifests, where findings asked for a waypoint that no step wrote.
func TestServicesElsewhere(t *testing.T) {
	const rule = "---\napiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: x, namespace: shop}\n" +
		"spec: {host: x.shop.svc.cluster.local, trafficPolicy: {outlierDetection: {consecutive5xxErrors: 1}}}\n"
	for _, text := range []string{rule, vs("x", "mesh", "x", "x, subset: v1")} {
		n := planOf(t, cluster+text)
		if n.Waypoint == "" || slices.ContainsFunc(n.Open, func(o ambient.Note) bool { return o.Level == ambient.Change }) || len(n.Remarks) > 1 {
			t.Errorf("waypoint %q, open %v, remarks %q", n.Waypoint, n.Open, n.Remarks)
		}
	}
	other := strings.ReplaceAll(vs("x", "mesh", "api.shop", "api.shop, subset: v1"), "namespace: shop", "namespace: front")
	if n := planOf(t, cluster+other); n.Waypoint == "" || n.Reason != "VirtualService front/x" {
		t.Errorf("waypoint %q for %s", n.Waypoint, n.Reason)
	}
}

// TestGapsNameWhatZtunnelWouldDo: a DENY rule with methods alone in an operation is applied to nothing, whatever its sources are. Seen in
// PacktPublishing/Kubernetes-Service-Mesh-with-Istio.
func TestGapsNameWhatZtunnelWouldDo(t *testing.T) {
	deny := strings.NewReplacer("name: get", "name: deny", "  rules: [{to", "  action: DENY\n  rules: [{from: [{source: {namespaces: [front]}}], to").Replace(getOnly)
	n := planOf(t, cluster, deny)
	if len(n.Gaps) == 0 || !strings.Contains(n.Gaps[0], "apply rules about requests to nothing, and deny less, of deny.") || strings.Contains(n.Gaps[0], "deny more") {
		t.Errorf("gaps: %q", n.Gaps)
	}
}

// TestInfoIsInfo: the level of a note in JSON is the word of the text.
func TestInfoIsInfo(t *testing.T) {
	n := planOf(t, cluster+"---\napiVersion: networking.istio.io/v1\nkind: Sidecar\nmetadata: {name: default, namespace: shop}\nspec: {egress: [{hosts: [./*]}]}\n")
	if len(n.Advice) != 1 || n.Advice[0].Level != ambient.Info || n.State != "now" {
		t.Errorf("state %s, advice %v", n.State, n.Advice)
	}
}

// TestLocalAuthorizerIsNotCopied: a waypoint asks its own pod for an authorizer at 127.0.0.1, and rejects all requests. Seen in
// aws-samples/istio-on-eks, modules/04-security.
func TestLocalAuthorizerIsNotCopied(t *testing.T) {
	const custom = `---
apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: opa, namespace: shop}
spec: {action: CUSTOM, provider: {name: opa}, rules: [{to: [{operation: {paths: ["*"]}}]}]}
---
apiVersion: networking.istio.io/v1
kind: ServiceEntry
metadata: {name: opa, namespace: shop}
spec: {hosts: [opa.local], endpoints: [{address: 127.0.0.1}], ports: [{name: grpc, number: 9191, protocol: GRPC}], resolution: STATIC}
`
	n := planOf(t, cluster+custom)
	if n.State != "change" || n.Waypoint != "" || n.Solved["PR904"] != 0 || len(n.Open) != 1 || n.Open[0].Code != "PR950" || n.Open[0].Fix == "" {
		t.Errorf("state %s, waypoint %q, solved %v, open %v", n.State, n.Waypoint, n.Solved, n.Open)
	}
	if got := applied(t, cluster+custom, ambient.StepNames()...); strings.Contains(got, "opa-waypoint") || !strings.Contains(got, "action: CUSTOM") || strings.Contains(got, "tlsMode") {
		t.Errorf("a copy, a limit or no policy:\n%s", got)
	}
	const mesh = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: istio, namespace: istio-system}\n" +
		"data: {mesh: 'extensionProviders: [{name: opa, envoyExtAuthzGrpc: {service: opa.auth.svc.cluster.local, port: 9191}}]'}\n"
	if n := planOf(t, cluster+custom+mesh); n.State != "now" || n.Waypoint == "" {
		t.Errorf("with a Service: state %s, waypoint %q, open %v", n.State, n.Waypoint, n.Open)
	}
}

// TestManagedMeshesStay: meshes of providers have no ambient mode. Seen in mathieu-benoit/my-kubernetes-deployments.
func TestManagedMeshesStay(t *testing.T) {
	for name, change := range map[string]string{
		"annotation": "labels: {istio-injection: enabled}, annotations: {mesh.cloud.google.com/proxy: '{\"managed\": true}'}",
		"revision":   "labels: {istio.io/rev: asm-managed-rapid}",
		"add-on":     "labels: {istio.io/rev: asm-1-27}",
	} {
		n := planOf(t, strings.Replace(cluster, "labels: {istio-injection: enabled}", change, 1))
		if n.State != "blocked" || len(n.Open) != 1 || n.Open[0].Code != "PR951" {
			t.Errorf("%s: state %s, open %v", name, n.State, n.Open)
		}
	}
}

// TestCustomResourcesHavePods: any object may hold pod templates, also several and without images. Seen in StatCan/aaw-argocd-manifests.
func TestCustomResourcesHavePods(t *testing.T) {
	const elastic = `---
apiVersion: elasticsearch.k8s.elastic.co/v1
kind: Elasticsearch
metadata: {name: es, namespace: shop}
spec:
  nodeSets:
  - name: nodes
    podTemplate:
      metadata:
        annotations:
          traffic.sidecar.istio.io/excludeInboundPorts: '9300'
      spec: {containers: [{name: elasticsearch}]}
  - name: out
    podTemplate:
      metadata:
        labels: {sidecar.istio.io/inject: "false"}
`
	n := planOf(t, cluster+elastic)
	if len(n.Open) != 1 || n.Open[0].Code != "PR930" || !strings.HasPrefix(n.Open[0].Field, "spec.nodeSets[0].podTemplate.metadata.annotations") || n.Solved["PR924"] != 1 {
		t.Errorf("open %v, solved %v", n.Open, n.Solved)
	}
	if got := applied(t, cluster+elastic, "label"); strings.Count(got, "dataplane-mode: none") != 1 {
		t.Errorf("no label:\n%s", got)
	}
}
