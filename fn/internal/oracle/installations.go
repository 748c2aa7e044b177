// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import "sigs.k8s.io/yaml"

// newInstallation makes one whose chart values are written as YAML.
func newInstallation(name, values string, change ...func(*Installation)) Installation {
	i := Installation{Name: name, Values: map[string]any{}, Kubelet: "v1.34.1"}
	if err := yaml.Unmarshal([]byte(values), &i.Values); err != nil {
		panic("reading the values of the installation " + name + ": " + err.Error())
	}
	for _, c := range change {
		c(&i)
	}
	return i
}

func withKubeletVersion(version string) func(*Installation) {
	return func(i *Installation) { i.Kubelet = version }
}

func sinceIstioMinor(minor int) func(*Installation) {
	return func(i *Installation) { i.Since = minor }
}

func proxyConfig(name, namespace, spec string) func(*Installation) {
	return func(i *Installation) {
		i.ProxyConfigs = append(i.ProxyConfigs, ProxyConfig{Name: name, Namespace: namespace, Spec: spec})
	}
}

func configureOpenShift(i *Installation) {
	i.Annotations = map[string]string{
		"openshift.io/sa.scc.uid-range":           "1000620000/10000",
		"openshift.io/sa.scc.supplemental-groups": "1000620000/10000",
	}
}

// Installations returns the ways to install Istio that are compared: the chart's values, the nodes and other
// cluster state that the webhook reads.
func Installations() []Installation {
	return append(append(append(platformInstallations(), settingsOfTheMesh()...), rareSettings()...),
		templatesOfUsers()...)
}

// platformInstallations returns installations that differ in where Istio runs and how it captures the traffic.
func platformInstallations() []Installation {
	return []Installation{
		newInstallation("default", `{}`),
		newInstallation("old-kubelet", `{}`, withKubeletVersion("v1.29.4")),
		newInstallation("native-on", `{pilot: {env: {ENABLE_NATIVE_SIDECARS: "true"}}}`, withKubeletVersion("v1.29.4")),
		newInstallation("native-off", `{pilot: {env: {ENABLE_NATIVE_SIDECARS: "false"}}}`),
		newInstallation("native-misspelt", `{pilot: {env: {ENABLE_NATIVE_SIDECARS: "1"}}}`),
		newInstallation("cni", `{pilot: {cni: {enabled: true}}, global: {proxy: {includeIPRanges: "10.0.0.0/8", excludeOutboundPorts: "9999"}}}`),
		newInstallation("cni-old-kubelet", `{profile: ambient, pilot: {cni: {enabled: true}}}`,
			withKubeletVersion("v1.28.1")),
		newInstallation("multus", `{pilot: {cni: {enabled: true, provider: multus}}}`),
		newInstallation("openshift", `{global: {platform: openshift}}`, configureOpenShift),
		newInstallation("openshift-old-kubelet", `{global: {platform: openshift}}`, configureOpenShift,
			withKubeletVersion("v1.28.1")),
		newInstallation("ambient", `{profile: ambient}`),
		newInstallation("revision", `{revision: canary, revisionTags: [stable, prod]}`),
		newInstallation("dual-stack", `{pilot: {env: {ISTIO_DUAL_STACK: "true"}}, meshConfig: {defaultConfig: {proxyMetadata: {ISTIO_DUAL_STACK: "true"}}}}`),
		newInstallation("network", `{istiodRemote: {injectionPath: /inject/cluster/c1/net/n1}, global: {multiCluster: {clusterName: c1}, network: n1, meshID: m1}}`),
		newInstallation("remote-cluster", `{istiodRemote: {injectionPath: /inject/cluster/other/net/n1}}`),
		newInstallation("external", `{global: {externalIstiod: true, remotePilotAddress: 10.1.1.1, caAddress: "ca.example:15012", nativeNftables: true}}`),
	}
}

// settingsOfTheMesh differ in the values and the mesh config.
func settingsOfTheMesh() []Installation {
	return []Installation{
		newInstallation("distroless", `{global: {variant: distroless, imagePullSecrets: [regcred, other], imagePullPolicy: Always}}`),
		newInstallation("image-type", `{meshConfig: {defaultConfig: {image: {imageType: debug}}}, global: {proxy: {image: registry.example/own/proxy:1}}}`),
		newInstallation("hold", `{meshConfig: {defaultConfig: {holdApplicationUntilProxyStarts: true, concurrency: 4}}}`, withKubeletVersion("v1.28.1")),
		newInstallation("hold-values", `{global: {proxy: {holdApplicationUntilProxyStarts: true, lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}}}}`, withKubeletVersion("v1.28.1")),
		newInstallation("no-merge", `{meshConfig: {enablePrometheusMerge: false}, sidecarInjectorWebhook: {rewriteAppHTTPProbe: false}}`),
		newInstallation("secure-metrics", `{meshConfig: {defaultConfig: {proxyMetadata: {ENVOY_SECURE_MERGED_METRICS_PORT: "15091"}}}}`),
		newInstallation("otel", `
meshConfig:
  extensionProviders:
  - name: otel
    opentelemetry: {service: o.x.svc.cluster.local, port: 4317, serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}`),
		newInstallation("tracing", `
global: {proxy: {tracer: lightstep, logLevel: debug, statusPort: 15999}, tracer: {lightstep: {address: "l:1", accessToken: t}}, logAsJson: true}
meshConfig: {defaultConfig: {tracing: {tlsSettings: {caCertificates: /etc/l/ca.pem, mode: SIMPLE}, sampling: 1}}}`),
		newInstallation("zipkin", `{global: {proxy: {tracer: zipkin}}, meshConfig: {defaultConfig: {tracingServiceName: CANONICAL_NAME_AND_NAMESPACE}}}`),
		newInstallation("proxy-config", `{meshConfig: {defaultConfig: {proxyMetadata: {OF: mesh}, terminationDrainDuration: 9s}}}`,
			proxyConfig("all", "istio-system", "{concurrency: 1, environmentVariables: {OF: root, ROOT: r}, image: {imageType: distroless}}"),
			proxyConfig("ours", "shop", "{concurrency: 5, environmentVariables: {OF: namespace}}"),
			proxyConfig("some", "shop", "{selector: {matchLabels: {app: v1}}, environmentVariables: {OF: workload}, image: {imageType: debug}}")),
		newInstallation("everywhere", `{sidecarInjectorWebhook: {enableNamespacesByDefault: true, injectedAnnotations: {own: "1", "container.apparmor.security.beta.kubernetes.io/istio-proxy": runtime/default}}}`),
		newInstallation("selectors", `
global: {proxy: {autoInject: disabled}}
sidecarInjectorWebhook:
  alwaysInjectSelector: [{matchLabels: {inject-always: "yes"}}, {matchExpressions: [{key: app, operator: Exists}]}]
  neverInjectSelector: [{matchLabels: {inject-never: "yes"}}, {matchExpressions: [{key: version, operator: In, values: [v1]}]}]`),
		newInstallation("resources", `{global: {proxy: {resources: {requests: {cpu: "0.5", memory: 64Mi}, limits: null}, privileged: true, startupProbe: {enabled: false}, outlierLogPath: /dev/stdout, seccompProfile: {type: RuntimeDefault}, includeInboundPorts: "80", excludeInboundPorts: "81", includeOutboundPorts: "443"}, proxy_init: {forceApplyIptables: true}, mountMtlsCerts: true, podDNSSearchNamespaces: [global, "{{ valueOrDefault .DeploymentMeta.Namespace \"default\" }}.global"]}}`),
		newInstallation("tproxy", `{meshConfig: {defaultConfig: {interceptionMode: TPROXY, statusPort: 15088}, inboundTrafficPolicy: {mode: LOCALHOST}, proxyListenPort: 16001}, global: {caName: GkeWorkloadCertificate}}`),
		newInstallation("path-variables", `{istiodRemote: {injectionPath: /inject/cluster/c1/my_var/a--slash--b}}`),
	}
}

// setRareFields have values that few installations set.
func rareSettings() []Installation {
	return []Installation{
		newInstallation("rare-values", `
global:
  sds: {token: {aud: own-audience}}
  sts: {servicePort: 15463}
  trustBundleName: own-bundle
  proxy: {clusterDomain: own.local, componentLogLevel: "misc:debug", readinessInitialDelaySeconds: 3, readinessPeriodSeconds: 4, readinessFailureThreshold: 5,
    startupProbe: {enabled: true, failureThreshold: 9}, excludeIPRanges: "10.9.0.0/16"}
  logging: {level: "default:debug"}
  proxy_init: {image: own-init}`, sinceIstioMinor(31)),
		newInstallation("rare-mesh", `
pilot: {env: {COMPLIANCE_POLICY: fips-140-2}}
meshConfig:
  trustDomain: own.example
  proxyInboundListenPort: 16006
  defaultConfig:
    serviceCluster: own
    statNameLength: 100
    gatewayTopology: {numTrustedProxies: 2}
    readinessProbe: {httpGet: {path: /r, port: 1}}
    proxyHeaders: {server: {disabled: true}}
    envoyMetricsService: {address: "m:1"}
    tracing: {customTags: {a: {literal: {value: x}}, b: {header: {name: h}}}}`, sinceIstioMinor(31)),
		newInstallation("hub-with-slash", `{global: {hub: registry.example/istio/}}`),
		newInstallation("no-pull-secret-name", `{global: {imagePullSecrets: [""]}}`),
	}
}
