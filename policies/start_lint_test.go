// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policies_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Policies of the tests below: the built-in ones with what decides about how a pod starts.
const (
	ordinaryProxy = `istio: {version: "1.31", nativeSidecars: Disabled, kubernetesVersion: "1.28", injector: {builtIn: istio}}`
	autoOn132     = `istio: {version: "1.31", nativeSidecars: Auto, kubernetesVersion: "1.32", injector: {builtIn: istio}}`
	nativeProxy   = `istio: {version: "1.31", kubernetesVersion: "1.34", injector: {builtIn: istio}}`
	ordinaryCNI   = `istio: {version: "1.31", nativeSidecars: Disabled, kubernetesVersion: "1.28", injector: {builtIn: istio, overrides: {pilot: {cni: {enabled: true}}}}}`
	csqlOperator  = `sidecars: [{builtIn: cloud-sql-operator, values: {workloads: [{metadata: {name: db, namespace: shop, generation: 1}, spec: {workloadSelector: {kind: Deployment, name: web}, ` +
		`instances: [{connectionString: "project:region:db", hostEnvName: DB_HOST, portEnvName: DB_PORT}]}}]}}]`
	vaultAgent = `sidecars: [{builtIn: vault-agent, values: {address: "http://vault.vault.svc:8200"}}]`
)

// databaseProxy is a native sidecar of the user's own with a startup probe or hook.
func databaseProxy(check string) string {
	return `initContainers: [{name: cloud-sql-proxy, image: "gcr.io/cloud-sql-connectors/cloud-sql-proxy:2.14.0", restartPolicy: Always, ` + check + `}], `
}

const (
	httpStartup = `startupProbe: {httpGet: {path: /startup, port: 9090}}`
	webApp      = `containers: [{name: web, image: "registry.example.com/web:1"}]`
)

// TestStartAndEndOfInjectedPods injects what people reported with the policies that come with Prerig, and compares the codes of what lint finds.
// All codes that a case is about are in about; want has those that are expected.
func TestStartAndEndOfInjectedPods(t *testing.T) {
	const probes = "PR203 PR208 PR209"
	for _, tc := range []struct{ name, policy, kind, annotations, spec, about, want string }{
		{name: "native sidecar whose startup probe is rewritten", policy: ordinaryProxy, spec: databaseProxy(httpStartup) + webApp, about: probes, want: "PR208"},
		{name: "the same on Kubernetes 1.32", policy: autoOn132, spec: databaseProxy(httpStartup) + webApp, about: probes, want: "PR208"},
		{name: "TCP", policy: ordinaryProxy, spec: databaseProxy(`startupProbe: {tcpSocket: {port: 9090}}`) + webApp, about: probes, want: "PR208"},
		{name: "gRPC", policy: ordinaryProxy, spec: databaseProxy(`startupProbe: {grpc: {port: 9090}}`) + webApp, about: probes, want: "PR208"},
		{name: "hook", policy: ordinaryProxy, spec: databaseProxy(`lifecycle: {postStart: {httpGet: {path: /x, port: 9090}}}`) + webApp, about: probes, want: "PR208"},
		{name: "exec probe", policy: ordinaryProxy, spec: databaseProxy(`startupProbe: {exec: {command: [ready]}}`) + webApp, about: probes},
		{
			name: "rewriting off", policy: ordinaryProxy, annotations: `sidecar.istio.io/rewriteAppHTTPProbers: "false"`,
			spec: databaseProxy(httpStartup) + webApp, about: probes,
		},
		{
			name: "rewriting off with CNI", policy: ordinaryCNI, annotations: `sidecar.istio.io/rewriteAppHTTPProbers: "false"`,
			spec: databaseProxy(httpStartup) + webApp, about: probes, want: "PR208",
		},
		{
			name: "rewriting off and the port excluded with CNI", policy: ordinaryCNI,
			annotations: `sidecar.istio.io/rewriteAppHTTPProbers: "false", traffic.sidecar.istio.io/excludeInboundPorts: "9090"`,
			spec:        databaseProxy(httpStartup) + webApp, about: probes,
		},
		{name: "native proxy", policy: nativeProxy, spec: databaseProxy(httpStartup) + webApp, about: probes},
		{name: "no probe yet", policy: ordinaryProxy, spec: databaseProxy(`args: [x]`) + webApp, about: probes, want: "PR203"},
		{name: "cloud-sql-operator and an ordinary proxy", policy: csqlOperator + ", " + ordinaryProxy, spec: webApp, about: probes, want: "PR208"},
		{name: "cloud-sql-operator and a native proxy", policy: csqlOperator + ", " + nativeProxy, spec: webApp, about: probes},
		{
			name: "vault-agent has no startup probe", policy: vaultAgent + ", " + nativeProxy,
			annotations: `vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: web`, spec: webApp, about: probes,
		},
		{
			name: "hook of the application", policy: ordinaryProxy, about: probes, want: "PR209",
			spec: `containers: [{name: web, image: "registry.example.com/web:1", lifecycle: {postStart: {httpGet: {path: /warm, port: 8080}}}}]`,
		},
		{
			name: "hook of a Job that never restarts", policy: ordinaryProxy, kind: "Job", about: probes, want: "PR208",
			spec: `restartPolicy: Never, containers: [{name: web, image: "registry.example.com/web:1", lifecycle: {postStart: {httpGet: {path: /warm, port: 8080}}}}]`,
		},
		{
			name: "hook of an application that waits for the proxy", policy: ordinaryProxy, about: probes,
			annotations: `proxy.istio.io/config: '{"holdApplicationUntilProxyStarts": true}'`,
			spec:        `containers: [{name: web, image: "registry.example.com/web:1", lifecycle: {postStart: {httpGet: {path: /warm, port: 8080}}}}]`,
		},
		{name: "cloud-sql-operator with CNI", policy: csqlOperator + ", " + ordinaryCNI, spec: webApp, about: "PR204 PR205", want: "PR204"},
		{
			name: "cloud-sql-operator with CNI and its ports excluded", policy: csqlOperator + ", " + ordinaryCNI, spec: webApp, about: "PR204 PR205",
			annotations: `traffic.sidecar.istio.io/excludeOutboundPorts: "443,3307"`,
		},
		{
			name: "vault-agent with CNI", policy: vaultAgent + ", " + ordinaryCNI, spec: webApp, about: "PR204", want: "PR204",
			annotations: `vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: web`,
		},
		{
			name: "init container with CNI and an excluded port", policy: ordinaryCNI, about: "PR204",
			annotations: `traffic.sidecar.istio.io/excludeOutboundPorts: "443"`, spec: `initContainers: [{name: fetch, image: "registry.example.com/rclone:1"}], ` + webApp,
		},
		{
			name: "the same with DNS capture", policy: ordinaryCNI, about: "PR204", want: "PR204",
			annotations: `traffic.sidecar.istio.io/excludeOutboundPorts: "443", proxy.istio.io/config: '{"proxyMetadata": {"ISTIO_META_DNS_CAPTURE": "true"}}'`,
			spec:        `initContainers: [{name: fetch, image: "registry.example.com/rclone:1"}], ` + webApp,
		},
		{
			name: "exit on zero connections before the hook ends", policy: ordinaryProxy, about: "PR106", want: "PR106",
			annotations: `proxy.istio.io/config: '{"proxyMetadata": {"EXIT_ON_ZERO_ACTIVE_CONNECTIONS": "true"}}'`,
			spec:        `terminationGracePeriodSeconds: 60, containers: [{name: web, image: "registry.example.com/web:1", lifecycle: {preStop: {exec: {command: [sleep, "25"]}}}}]`,
		},
		{
			name: "exit on zero connections after a minimum", policy: ordinaryProxy, about: "PR106",
			annotations: `proxy.istio.io/config: '{"proxyMetadata": {"EXIT_ON_ZERO_ACTIVE_CONNECTIONS": "true", "MINIMUM_DRAIN_DURATION": "30s"}}'`,
			spec:        `terminationGracePeriodSeconds: 60, containers: [{name: web, image: "registry.example.com/web:1", lifecycle: {preStop: {exec: {command: [sleep, "25"]}}}}]`,
		},
		{name: "class Guaranteed", policy: ordinaryProxy, about: "PR409", want: "PR409", spec: `containers: [{name: web, image: "registry.example.com/web:1", ` + equal + `}]`},
		{name: "class Guaranteed, native", policy: nativeProxy, about: "PR409", want: "PR409", spec: `containers: [{name: web, image: "registry.example.com/web:1", ` + equal + `}]`},
		{
			name: "class Guaranteed kept", policy: ordinaryProxy, about: "PR409",
			spec: `initContainers: [{name: istio-init, image: auto, ` + equal + `}], containers: [{name: istio-proxy, image: auto, ` + equal + `}, {name: web, image: "registry.example.com/web:1", ` + equal + `}]`,
		},
		{
			name: "hold in a Job", policy: ordinaryProxy, kind: "Job", about: "PR302", want: "PR302", annotations: `proxy.istio.io/config: '{"holdApplicationUntilProxyStarts": true}'`,
			spec: `restartPolicy: OnFailure, ` + webApp,
		},
		{name: "hold in a Job, native", policy: nativeProxy, kind: "Job", about: "PR302 PR211", want: "PR211",
			annotations: `proxy.istio.io/config: '{"holdApplicationUntilProxyStarts": true}'`, spec: `restartPolicy: OnFailure, ` + webApp},
		{name: "native proxy in a Rollout", policy: nativeProxy, kind: "Rollout", spec: webApp, about: "PR210", want: "PR210"},
		{name: "ordinary proxy in a Rollout", policy: ordinaryProxy, kind: "Rollout", spec: webApp, about: "PR210"},
		{
			name: "text that Flux would replace", policy: vaultAgent, spec: webApp, about: "PR620", want: "PR620",
			annotations: `vault.hashicorp.com/agent-inject: "true", vault.hashicorp.com/role: web`,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			results := injectOne(t, "lint: {}, "+tc.policy, tc.kind, tc.annotations, tc.spec)
			var got []string
			for _, m := range regexp.MustCompile(`\[(PR\d+)\]`).FindAllStringSubmatch(results, -1) {
				if strings.Contains(tc.about, m[1]) {
					got = append(got, m[1])
				}
			}
			slices.Sort(got)
			if found := strings.Join(slices.Compact(got), " "); found != tc.want {
				t.Errorf("found %q, want %q:\n%s", found, tc.want, results)
			}
		})
	}
}

const equal = `resources: {requests: {cpu: "1", memory: 256Mi}, limits: {cpu: "1", memory: 256Mi}}`

// TestAdviceOfAReplacedHold: where the setting is there and its hook is not, the advice is not to set it.
func TestAdviceOfAReplacedHold(t *testing.T) {
	const lifecycle = `lifecycle: {preStop: {exec: {command: [/bin/sleep, "20"]}}}`
	for name, values := range map[string]string{
		"by the values":     `overrides: {global: {proxy: {holdApplicationUntilProxyStarts: true, ` + lifecycle + `}}}`,
		"by the annotation": `overrides: {global: {proxy: {` + lifecycle + `}}}`,
	} {
		annotation := ""
		if name == "by the annotation" {
			annotation = `proxy.istio.io/config: '{"holdApplicationUntilProxyStarts": true}'`
		}
		policy := strings.Replace(ordinaryProxy, "builtIn: istio", "builtIn: istio, "+values, 1)
		results := injectOne(t, "lint: {}, "+policy, "", annotation, webApp)
		if !strings.Contains(results, "is set, and the proxy's own lifecycle") || strings.Contains(results, "nothing holds the application") {
			t.Errorf("%s:\n%s", name, results)
		}
	}
}

// TestAPodThatNeverStartsIsReportedWithoutLint: the injection itself warns, whether or not the policy asks for findings; the annotation that
// suppresses the rule keeps it quiet.
func TestAPodThatNeverStartsIsReportedWithoutLint(t *testing.T) {
	const want = "warning: Deployment shop/web spec.template.spec.initContainers[0].startupProbe: the pod never starts"
	if results := injectOne(t, ordinaryProxy, "", "", databaseProxy(httpStartup)+webApp); strings.Count(results, want) != 1 {
		t.Errorf("want once %q:\n%s", want, results)
	}
	for name, results := range map[string]string{
		"suppressed":   injectOne(t, ordinaryProxy, "", "prerig.dev/lint-ignore: PR208", databaseProxy(httpStartup)+webApp),
		"native proxy": injectOne(t, nativeProxy, "", "", databaseProxy(httpStartup)+webApp),
	} {
		if strings.Contains(results, "never starts") {
			t.Errorf("%s:\n%s", name, results)
		}
	}
}

// TestSidecarsOfPoliciesThatAskInVain: what is on the workload's own metadata is found for the sidecars that come with Prerig and for those of
// a policy's own, by annotation, label and parameter; in the pod template it is not.
func TestSidecarsOfPoliciesThatAskInVain(t *testing.T) {
	own := `sidecars: [{name: shipper, select: {rules: [{action: Inject, annotations: {matchLabels: {example.com/ship: "yes"}}}, {action: Inject, labels: {matchLabels: {ship: logs}}}]}, ` +
		`parameters: [{name: level, annotation: example.com/level, default: info}], template: "spec: {containers: [{name: shipper, image: x:1}]}"}]`
	const web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web, namespace: shop, %s: {%s}}\nspec:\n  template:\n    metadata: {labels: {app: web}}\n    spec: {%s}\n"
	for _, tc := range []struct{ policy, where, text, want string }{
		{own, "annotations", `example.com/ship: "yes"`, "annotation example.com/ship has no effect"},
		{own, "annotations", `example.com/ship: "yes", example.com/level: debug`, "annotation example.com/level has no effect"},
		{own, "labels", `ship: logs`, "label ship has no effect"},
		{own, "labels", `ship: boxes, app: web`, ""},
		{vaultAgent, "annotations", `vault.hashicorp.com/agent-inject: "true"`, "annotation vault.hashicorp.com/agent-inject has no effect"},
	} {
		policy := "apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {lint: {}, " + tc.policy + "}\n"
		_, results := apply(t, []byte(policy), fmt.Appendf(nil, web, tc.where, tc.text, webApp), v1alpha1.ModeInject)
		if got := strings.Contains(results, "PR602"); got != (tc.want != "") || !strings.Contains(results, tc.want) || strings.Count(results, tc.want) > 1 && tc.want != "" {
			t.Errorf("%s: want once %q:\n%s", tc.text, tc.want, results)
		}
	}
}

// injectOne injects into one workload, and returns the results.
func injectOne(t *testing.T, policy, kind, annotations, spec string) string {
	t.Helper()
	apiVersion := map[string]string{"": "apps/v1", "Job": "batch/v1", "Rollout": "argoproj.io/v1alpha1"}[kind]
	if kind == "" {
		kind = "Deployment"
	}
	input := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: web, namespace: shop}\nspec:\n  template:\n    metadata: {labels: {app: web}, annotations: {%s}}\n"+
		"    spec: {serviceAccountName: web, %s}\n", apiVersion, kind, annotations, spec)
	out, results := apply(t, []byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec: {"+policy+"}\n"), []byte(input), v1alpha1.ModeInject)
	if string(out) == input {
		t.Fatalf("nothing is injected:\n%s", results)
	}
	return results
}
