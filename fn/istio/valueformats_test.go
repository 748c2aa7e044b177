// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/strict"
)

// wrongOverrides are overrides that were accepted, with a part of the message.
var wrongOverrides = map[string]string{
	`{global: {proxy: {includeIPRanges: 10.0.0.0}}}`:                       `global.proxy.includeIPRanges: must be IP ranges (CIDR) separated by commas, such as 10.0.0.0/8, or *, is "10.0.0.0"`,
	`{global: {proxy: {excludeIPRanges: 10.0.0.0/33}}}`:                    "global.proxy.excludeIPRanges: must be IP ranges",
	`{global: {proxy: {excludeIPRanges: "*"}}}`:                            "global.proxy.excludeIPRanges: must be IP ranges",
	`{global: {proxy: {includeInboundPorts: "80;443"}}}`:                   "global.proxy.includeInboundPorts: must be ports separated by commas",
	`{global: {proxy: {excludeInboundPorts: abc}}}`:                        "global.proxy.excludeInboundPorts: must be ports separated by commas",
	`{global: {proxy: {excludeOutboundPorts: 70000}}}`:                     "global.proxy.excludeOutboundPorts: must be ports separated by commas",
	`{global: {proxy: {excludeOutboundPorts: [80, 443]}}}`:                 "global.proxy.excludeOutboundPorts: must be one value: ports separated by commas",
	`{global: {proxy: {statusPort: 99999}}}`:                               "global.proxy.statusPort: must be a port between 0 and 65535",
	`{global: {proxy: {clusterDomain: cluster local}}}`:                    "global.proxy.clusterDomain: must be a domain",
	`{global: {hub: registry.corp/istio/}}`:                                "global.hub: must be a registry and a path in small letters, without a slash at the end",
	`{global: {hub: registry.corp/Istio}}`:                                 "global.hub: must be",
	`{global: {hub: "https://registry.corp/istio"}}`:                       "global.hub: must be",
	`{global: {tag: "1.32.0 "}}`:                                           "global.tag: must be a tag",
	`{global: {tag: 1.10}}`:                                                "global.tag: must be a tag of letters, digits, dots and dashes, in quotes",
	`{global: {variant: distrolles}}`:                                      "did you mean distroless?",
	`{global: {proxy: {image: "registry.corp//proxyv2"}}}`:                 "global.proxy.image: must be the name of an image",
	`{global: {proxy: {privileged: yes please}}}`:                          "global.proxy.privileged: must be true or false",
	`{global: {proxy: {privileged: "true"}}}`:                              `global.proxy.privileged: must be true or false without quotes, is "true"`,
	`{global: {proxy: {seccompProfile: {type: RuntimeDefualt}}}}`:          `the type of the seccomp profile is "RuntimeDefualt"`,
	`{gateways: {securityContext: {fsGroup: -1}}}`:                         "gateways.securityContext",
	`{global: {proxy: {lifecycle: {preStop: {httpGet: {port: "80"}}}}}}`:   "is a number in quotes",
	`{global: {proxy: {lifecycle: {preStop: {}}}}}`:                        "global.proxy.lifecycle.preStop: the preStop has no handler",
	`{global: {logAsJson: "false"}}`:                                       `global.logAsJson: must be true or false without quotes, is "false"`,
	`{global: {proxy: {readinessPeriodSeconds: 0}}}`:                       "global.proxy.readinessPeriodSeconds: must be a whole number from 1",
	`{global: {proxy: {readinessInitialDelaySeconds: -1}}}`:                "global.proxy.readinessInitialDelaySeconds: must be a whole number from 0",
	`{global: {proxy: {startupProbe: {failureThreshold: 10s}}}}`:           "global.proxy.startupProbe.failureThreshold: must be a whole number",
	`{global: {proxy: {tracer: zipkins}}}`:                                 "did you mean zipkin?",
	`{global: {imagePullSecrets: [Reg_Cred]}}`:                             `global.imagePullSecrets.0: must be the name of a Secret, is "Reg_Cred"`,
	`{global: {imagePullSecrets: [{name: cred}]}}`:                         "write - cred",
	`{global: {caAddress: "https://ca.example.com"}}`:                      "global.caAddress: must be HOST:PORT without a scheme",
	`{global: {pilotCertProvider: Istiod}}`:                                "did you mean istiod?",
	`{global: {network: net one}}`:                                         "global.network: must be the value of a label",
	`{global: {istioNamespace: Istio_System}}`:                             "global.istioNamespace: must be a name",
	`{global: {proxy: {resources: {requests: {cpu: 3}}}}}`:                 "global.proxy.resources.requests.cpu: 3 is above the limit 2",
	`{global: {proxy: {resources: {limits: {memory: 1}}}}}`:                "global.proxy.resources.limits.memory",
	`{global: {proxy: {resources: {request: {cpu: 1}}}}}`:                  "global.proxy.resources.request: unknown field, did you mean requests?",
	`{global: {proxy: {resources: {limits: {cpu: -1}}}}}`:                  "global.proxy.resources.limits.cpu: must be a quantity",
	`{global: {proxy: {lifecycle: {preStop: {exec: {comand: [sleep]}}}}}}`: "global.proxy.lifecycle.preStop.exec.comand: unknown field, did you mean command?",
	`{global: {proxy: {lifecycle: {preStop: {exec: {command: sleep}}}}}}`:  "global.proxy.lifecycle.preStop.exec.command: must be a list",
	`{global: {proxy: {seccompProfile: {typ: RuntimeDefault}}}}`:           "global.proxy.seccompProfile.typ: unknown field",
	`{sidecarInjectorWebhook: {injectedAnnotations: {"a b": x}}}`:          "sidecarInjectorWebhook.injectedAnnotations.a b: is not the name of an annotation",
	`{pilot: {cni: {provider: mutlus}}}`:                                   "did you mean multus?",
}

// rightOverrides must not be rejected.
var rightOverrides = []string{
	`{global: {hub: localhost:5000, tag: latest}}`, `{global: {hub: Registry.Corp:5000/a/b_c, tag: 1.31-alpha.abc}}`, `{global: {hub: gcr.io/istio-release, tag: 20240101}}`,
	`{global: {hub: "${REGISTRY}/istio", tag: "{{ .Values.tag }}"}}`, `{global: {variant: solo-fips}}`, `{global: {tag: "1.31.0@sha256:0123456789012345678901234567890123456789012345678901234567890123"}}`,
	`{global: {proxy: {includeIPRanges: "10.0.0.0/8, fd00::/8", excludeIPRanges: ""}}}`, `{global: {proxy: {includeInboundPorts: "*", excludeInboundPorts: 80, excludeOutboundPorts: "80, 443"}}}`,
	`{global: {proxy: {statusPort: 0}}}`, `{global: {proxy: {statusPort: "15020"}}}`, `{global: {proxy: {clusterDomain: cluster.local.}}}`, `{global: {proxy: {privileged: true}}}`,
	`{global: {caAddress: "istiod.istio-system.svc:15012"}}`, `{global: {pilotCertProvider: k8s.io/clusterissuers.cert-manager.io/ca}}`, `{global: {imagePullSecrets: [a, "${S}", ""]}}`,
	`{global: {proxy: {resources: {requests: {cpu: 2}}}}}`, `{global: {proxy: {resources: {limits: null}}}}`, `{global: {proxy: {lifecycle: {preStop: {httpGet: {port: http, path: /}}, postStart: {sleep: {seconds: 1}}}}}}`,
	`{sidecarInjectorWebhook: {injectedAnnotations: {container.apparmor.security.beta.kubernetes.io/istio-proxy: runtime/default}}}`,
	`{global: {proxy: {image: proxyv2}}}`, `{global: {proxy: {image: "docker.io/istio/proxyv2:1.31.0"}}}`, `{global: {remotePilotAddress: 10.0.0.1}}`,
}

// chartValues are values with the keys of the overrides above.
const chartValues = `{global: {hub: docker.io/istio, tag: 1.31.0, variant: "", network: "", caAddress: "", pilotCertProvider: istiod, logAsJson: false,
  istioNamespace: istio-system, imagePullSecrets: [], remotePilotAddress: "", proxy: {includeIPRanges: "*", excludeIPRanges: "", includeInboundPorts: "*",
  excludeInboundPorts: "", excludeOutboundPorts: "", statusPort: 15020, clusterDomain: cluster.local, image: proxyv2, privileged: false, tracer: none,
  readinessPeriodSeconds: 15, readinessInitialDelaySeconds: 0, startupProbe: {failureThreshold: 600}, lifecycle: {}, seccompProfile: {},
  resources: {requests: {cpu: 100m, memory: 128Mi}, limits: {cpu: 2, memory: 1Gi}}}}, pilot: {cni: {provider: default}}, gateways: {securityContext: {}}}`

func overriddenChart(t *testing.T, overrides, values string) (*Injector, error) {
	t.Helper()
	over, err := ParseValues(overrides, nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Options{Version: "1.31", Config: config("spec: {}"), Values: values, Overrides: over})
}

// TestOverridesOfAKnownFormat: each of them went unnoticed into every pod, or was blamed on the file of a workload.
func TestOverridesOfAKnownFormat(t *testing.T) {
	for overrides, want := range wrongOverrides {
		_, err := overriddenChart(t, overrides, chartValues)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: have the error %v, want %q", overrides, err, want)
			continue
		}
		var at *strict.FieldError
		if !errors.As(err, &at) || at.Path[1] != "overrides" || len(at.Path) < 4 {
			t.Errorf("%s: the error is about %v", overrides, at)
		}
	}
	for _, overrides := range rightOverrides {
		if _, err := overriddenChart(t, overrides, chartValues); err != nil {
			t.Errorf("%s: %v", overrides, err)
		}
	}
}

// TestValuesOfAKnownFormat: the same values in data.values are warnings, because the control plane has them, unless an override
// replaces them.
func TestValuesOfAKnownFormat(t *testing.T) {
	for values, want := range wrongOverrides {
		var over map[string]any
		if err := yaml.Unmarshal([]byte(values), &over); err != nil {
			t.Fatal(err)
		}
		base, err := ParseValues(chartValues, over)
		if err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(base)
		if err != nil {
			t.Fatal(err)
		}
		in, err := overriddenChart(t, "", string(text))
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		if len(in.ValueWarnings) != 1 || !strings.Contains(in.ValueWarnings[0].Error(), want) {
			t.Errorf("%s: have the warnings %v, want %q", values, in.ValueWarnings, want)
		}
	}
	in, err := overriddenChart(t, `{global: {hub: docker.io/istio}}`, strings.Replace(chartValues, "docker.io/istio", "docker.io/istio/", 1))
	if err != nil || len(in.ValueWarnings) != 0 {
		t.Errorf("replaced: %v, %v", in, err)
	}
}

// TestWrongOverridesOfTheConfiguration has overrides that the chart writes into the configuration.
func TestWrongOverridesOfTheConfiguration(t *testing.T) {
	for overrides, want := range map[string]string{
		`{sidecarInjectorWebhook: {defaultTemplates: [sidcar]}}`:                              "defaultTemplates: sidcar is not a template, did you mean sidecar?",
		`{sidecarInjectorWebhook: {neverInjectSelector: [{matchLabel: {app: web}}]}}`:         "neverInjectSelector.0.matchLabel: unknown field, did you mean matchLabels?",
		`{sidecarInjectorWebhook: {alwaysInjectSelector: {matchLabels: {app: web}}}}`:         "alwaysInjectSelector: must be a list",
		`{sidecarInjectorWebhook: {injectedAnnotations: {a: 1}}}`:                             "injectedAnnotations.a: must be",
		`{global: {proxy: {autoInject: true}}}`:                                               "global.proxy.autoInject: it is true; it must be enabled or disabled",
		`{sidecarInjectorWebhook: {templates: {mine: "spec: {}"}, defaultTemplates: [mine]}}`: "",
	} {
		_, err := overriddenChart(t, overrides, chartValues)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: have the error %v, want %q", overrides, err, want)
			continue
		}
		if path, _ := strict.FieldOf(err); err != nil && (len(path) < 4 || path[1] != "overrides") {
			t.Errorf("%s: the error is about %v", overrides, path)
		}
	}
}
