// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"strings"
)

// setting is an annotation with values that the webhook accepts and some that it does not.
type setting struct {
	key        string
	good, odds []string
}

// unquoted are values that mean something to YAML where a template prints them without quotes.
var unquoted = []string{`a"b`, "a'b", "a: b", "a # b", "# a", "a\n    tty: true",
	"a\"\n    stdin: true\n    tty: !!bool \"true", "{a: b}", "[a]", "*a", "&a b", "yes", "1.0", "~"}

var ports = setting{"", []string{"80", "80,8080", "*", "", " 80 , 443 "},
	[]string{"http", "80,", "0", "70000", "-1", "80-90", "*,80", "+80", "080", "80\n81"}}
var ranges = setting{"", []string{"10.0.0.0/8", "10.0.0.0/8,192.168.0.0/16", "*", "", "2001:db8::/32"},
	[]string{"10.0.0.0", "10.0.0.0/08", "10.0.0.0/99", "all", "10.0.0.1/8", "*,10.0.0.0/8",
		" 10.0.0.0/8 , 192.168.0.0/16"}}
var interfaces = setting{"", []string{"eth1", "eth1,net1", "net1.100"},
	[]string{"", "a;b", "$(x)", "..", "eth0:1", "1eth", "a/b", "averyveryverylonginterface", "eth1, eth2"}}
var quantities = setting{"", []string{"100m", "0.2", "1", "2"},
	[]string{"lots", "", "1,5", "2e3m", "-1", "100 m", "1e3"}}
var memory = setting{"", []string{"128Mi", "1Gi", "1e9"}, []string{"lots", "", "128MB", "1,5Gi"}}
var seconds = setting{"", []string{"0", "1", "30"}, []string{"-1", "1.5", "soon", "", "4294967296"}}
var booleans = setting{"", []string{"true", "false"}, []string{"maybe", "", "1", "TRUE", "t", "0"}}

func (s setting) settingsForKeys(keys ...string) []setting {
	out := make([]setting, len(keys))
	for i, key := range keys {
		out[i] = setting{key, s.good, s.odds}
	}
	return out
}

// settings are the annotations that the webhook or its templates read.
var settings = concatSettings(
	ports.settingsForKeys("traffic.sidecar.istio.io/includeInboundPorts",
		"traffic.sidecar.istio.io/excludeInboundPorts",
		"traffic.sidecar.istio.io/includeOutboundPorts", "traffic.sidecar.istio.io/excludeOutboundPorts"),
	ranges.settingsForKeys("traffic.sidecar.istio.io/includeOutboundIPRanges",
		"traffic.sidecar.istio.io/excludeOutboundIPRanges"),
	interfaces.settingsForKeys("traffic.sidecar.istio.io/excludeInterfaces",
		"traffic.sidecar.istio.io/kubevirtInterfaces", "istio.io/reroute-virtual-interfaces"),
	quantities.settingsForKeys("sidecar.istio.io/proxyCPU", "sidecar.istio.io/proxyCPULimit"),
	memory.settingsForKeys("sidecar.istio.io/proxyMemory", "sidecar.istio.io/proxyMemoryLimit"),
	seconds.settingsForKeys("readiness.status.sidecar.istio.io/initialDelaySeconds",
		"readiness.status.sidecar.istio.io/periodSeconds",
		"readiness.status.sidecar.istio.io/failureThreshold"),
	booleans.settingsForKeys("sidecar.istio.io/nativeSidecar", "sidecar.istio.io/rewriteAppHTTPProbers",
		"sidecar.istio.io/enableCoreDump",
		"prometheus.istio.io/merge-metrics", "sidecar.istio.io/capNetBindService"),
	[]setting{
		{"status.sidecar.istio.io/port", []string{"15020", "0", "16000"}, []string{"x", "70000", ""}},
		{"readiness.status.sidecar.istio.io/applicationPorts", []string{"80", "*"}, []string{"x"}},
		{"sidecar.istio.io/interceptionMode", []string{"REDIRECT", "TPROXY", "NONE"}, []string{"redirect", ""}},
		{"sidecar.istio.io/proxyImage", []string{"registry.example/proxyv2:own", "proxyv2-debug"},
			append([]string{""}, unquoted...)},
		{"sidecar.istio.io/proxyImageType", []string{"distroless", "debug", "default"}, []string{"", "odd type"}},
		{"sidecar.istio.io/logLevel", []string{"debug", "warning"}, unquoted},
		{"sidecar.istio.io/componentLogLevel", []string{"misc:error,http:debug"}, unquoted},
		{"sidecar.istio.io/agentLogLevel", []string{"default:debug"}, unquoted},
		{"sidecar.istio.io/statsInclusionPrefixes", []string{"cluster.outbound"}, nil},
		{"sidecar.istio.io/statsInclusionRegexps", []string{"http.*"}, nil},
		{"sidecar.istio.io/extraStatTags", []string{"a,b"}, nil},
		{"sidecar.istio.io/statsHistogramBuckets", []string{`{"x":[1,5]}`}, nil},
		{"sidecar.istio.io/bootstrapOverride", []string{"own-bootstrap"}, unquoted},
		{"apm.datadoghq.com/env", []string{`{"DD_ENV":"prod"}`, `{"DD_ENV":"prod","ISTIO":"x"}`},
			[]string{"{", "text"}},
		{"sidecar.istio.io/discoveryAddress", []string{"istiod.other:15012"}, nil},
		{"sidecar.istio.io/controlPlaneAuthPolicy", []string{"MUTUAL_TLS"}, nil},
		{"sidecar.istio.io/userVolume", []string{`{"extra":{"emptyDir":{}}}`, `[{"name":"v","emptyDir":{}}]`},
			[]string{"{", "null", `{"extra":1}`, `{"extra":{"emptyDir":{"sizeLimit":1}}}`,
				`{"extra":{"hostPath":{"path":"2024-01-01"}}}`}},
		{"sidecar.istio.io/userVolumeMount", []string{`{"extra":{"mountPath":"/extra"}}`}, []string{"{", "[]"}},
		{"inject.istio.io/templates", []string{"sidecar", "gateway", "grpc-agent", "grpc-simple", "sidecar,custom", "custom", "custom,sidecar",
			"sidecar,spire", "spire,sidecar", "gateway,custom", "grpc-agent,custom"},
			[]string{"nowhere", "", "sidecar,", "sidecar, custom", "sidecar,sidecar", ",", " sidecar", "Sidecar",
				"waypoint", "kube-gateway", "sidecar,gateway"}},
		{"k8s.v1.cni.cncf.io/networks", []string{"own", "own,default/istio-cni", `[{"name":"own"}]`, `[{"name":"istio-cni","namespace":"default"}]`,
			`[{"name":"istio-cni","namespace":"x"}]`, `[{"name":"istio-cni"}]`}, []string{"", "[", "[]", " own "}},
		{"kubectl.kubernetes.io/default-container", []string{"app0", "side1"}, []string{""}},
		{"kubectl.kubernetes.io/default-logs-container", []string{"app0"}, nil},
		{"istio.io/rev", []string{"own"}, nil},
		{"gateway.istio.io/managed", []string{"istio.io-gateway-controller"}, nil},
		{"ambient.istio.io/redirection", []string{"enabled"}, nil},
		{"gateway.istio.io/service-account", []string{"gw"}, nil},
		{"networking.istio.io/address-type", []string{"IPAddress"}, nil},
		{"cluster-autoscaler.kubernetes.io/safe-to-evict", []string{"true"}, nil},
		{"resource.opentelemetry.io/service.name", []string{"otel-name"}, nil},
		{"resource.opentelemetry.io/deployment.environment", []string{"prod,eu=1"}, nil},
		{"sidecar.istio.io/statsInclusionSuffixes", []string{"upstream_rq_timeout"}, nil},
		{"sidecar.istio.io/statsCompression", []string{"gzip"}, nil},
		{"sidecar.istio.io/statsFlushInterval", []string{"10s"}, nil},
		{"sidecar.istio.io/statsEvictionInterval", []string{"20s"}, []string{"7s"}},
		{"traffic.istio.io/nodeSelector", []string{`{"matchLabels":{"a":"b"}}`}, nil},
		{"istio.io/dry-run", []string{"true"}, nil},
		{"ambient.istio.io/bypass-inbound-capture", []string{"true"}, nil},
		{"ambient.istio.io/dns-capture", []string{"true"}, nil},
		{"networking.istio.io/service-type", []string{"ClusterIP"}, nil},
		{"container.apparmor.security.beta.kubernetes.io/app0", []string{"runtime/default"}, nil},
		{"openshift.io/sa.scc.uid-range", []string{"1000/10"}, nil},
		{"prerig.example/note", []string{""}, nil},
		{"note", []string{`with "quotes", <tags> & 日本語`, "two\nlines", "on", "12"}, nil},
	})

func concatSettings(lists ...[]setting) []setting {
	var out []setting
	for _, l := range lists {
		out = append(out, l...)
	}
	return out
}

// addPodAnnotations sets annotations of the pod.
func (d draw) addPodAnnotations(pod object) {
	a := object{}
	if d.happensWithProbability(0.6) {
		for range d.IntN(5) {
			s := pick(d, settings...)
			values := s.good
			if len(s.odds) > 0 && d.happensWithProbability(0.15) {
				values = s.odds
			}
			a[s.key] = pick(d, values...)
		}
	}
	if d.happensWithProbability(0.08) {
		a["sidecar.istio.io/inject"] = pick(d, "true", "true", "false", "yes", "0", "")
	}
	if d.happensWithProbability(0.25) {
		d.addScrapeAnnotations(a)
	}
	if d.happensWithProbability(0.2) {
		a["proxy.istio.io/config"] = pick(d, proxyConfigs...)
		if d.happensWithProbability(0.2) {
			a["proxy.istio.io/config"] = pick(d, oddProxyConfigs...)
		}
	}
	if d.happensWithProbability(0.04) {
		a["sidecar.istio.io/status"] = pick(d, statuses...)
	}
	if d.happensWithProbability(0.06) {
		a["proxy.istio.io/overrides"] = d.overrides()
	}
	if len(a) > 0 {
		childObject(pod, "metadata")["annotations"] = a
	}
}

// statuses are such as no injection wrote, or one of another time.
var statuses = []string{
	"{}", `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["istio-envoy"],"imagePullSecrets":null,"revision":"default"}`,
	`{"version":"abc","initContainers":["init0"],"containers":["side1"]}`, "null", "[]", "not JSON",
	`{"containers":null}`,
	`{"initContainers":null,"containers":["istio-proxy"],"volumes":[],"imagePullSecrets":["regcred"],"revision":"old"}`,
	`{"containers":"istio-proxy"}`, `{"initContainers":[1]}`, `{"containers":[null]}`, `{"containers":{}}`,
	`{"Containers":["istio-proxy"]}`, `{"volumes":"x"}`,
	`{"initContainers":["istio-proxy","istio-init"],"containers":["istio-proxy"],"volumes":1}`,
}

// addScrapeAnnotations sets the scraping annotations, in one of the spellings that Prometheus treats as equivalent.
func (d draw) addScrapeAnnotations(a object) {
	spell := func(key string) string {
		if d.happensWithProbability(0.85) {
			return key
		}
		return pick(d, strings.NewReplacer(".", "-"), strings.NewReplacer("/", "."), strings.NewReplacer("-", "_"),
			strings.NewReplacer("/", "_", ".", "_", "-", "_")).Replace(key)
	}
	if d.happensWithProbability(0.8) {
		a[spell("prometheus.io/scrape")] = pick(d, "true", "true", "true", "false", "1", "")
	}
	if d.happensWithProbability(0.7) {
		a[spell("prometheus.io/port")] = pick(d, "8080", "9090", "80", "15020", "15090", "15021", "0", "http", "99999",
			"", "15000", "15001", "15006")
	}
	if d.happensWithProbability(0.5) {
		a[spell("prometheus.io/path")] = pick(d, "/metrics", "/m?a=1&b=<2>", "", "stats")
	}
	if d.happensWithProbability(0.1) {
		a["prometheus.io/scheme"] = pick(d, "https", "http")
	}
	if d.happensWithProbability(0.15) {
		a[spell("prometheus.istio.io/scrape-targets")] = pick(d, "8080:/metrics", "8080,9090:/m", ":/m", "", ",",
			"15090:/x", "8080:/a,x:/b", "8080:", "8080: /a , 9091")
	}
	if d.happensWithProbability(0.05) {
		a[spell("prometheus.istio.io/secure-port")] = pick(d, "9999", "")
	}
}

// proxyConfigs are proxy settings that the webhook accepts.
var proxyConfigs = []string{
	"concurrency: 3", "{}", "", "holdApplicationUntilProxyStarts: true", "holdApplicationUntilProxyStarts: false",
	"proxyMetadata: {OWN: \"1\", ISTIO_META_DNS_CAPTURE: \"true\"}",
	"proxyMetadata: {ENVOY_SECURE_MERGED_METRICS_PORT: \"15091\"}",
	"proxyMetadata: {ISTIO_META_ENABLE_HBONE: \"true\"}", "image: {imageType: distroless}", "image: {}",
	"image: {imageType: debug}",
	"tracing: {zipkin: {address: \"z:9411\"}, sampling: 10}", "tracing: {stackdriver: {}}",
	"tracing: {datadog: {address: \"d:8126\"}}",
	"tracing: {customTags: {a: {literal: {value: b}}, e: {environment: {name: E}}}}", "terminationDrainDuration: 20s",
	"interceptionMode: TPROXY", "interceptionMode: NONE", "statusPort: 15999", "runtimeValues: {a: \"1\"}",
	"discoveryAddress: istiod.other:15012", "proxyStatsMatcher: {inclusionPrefixes: [a], inclusionRegexps: [\"b.*\"]}",
	"readinessProbe: {httpGet: {path: /r, port: 8080}, initialDelaySeconds: 3}",
	"gatewayTopology: {numTrustedProxies: 2}",
	"extraStatTags: [a, b]", "meshId: m", "envoyAccessLogService: {address: \"als:9000\"}", "drainDuration: 3s",
	"privateKeyProvider: {cryptomb: {pollDelay: 10ms}}", "caCertificatesPem: [abc]", "configPath: /etc/own",
	"binaryPath: /own",
	"customConfigFile: /x.yaml", "serviceCluster: own", "statNameLength: 100", "zipkinAddress: z:1",
	"proxyAdminPort: 15001",
	"proxyHeaders: {server: {disabled: true}, forwardedClientCert: SANITIZE}",
	"tracingServiceName: CANONICAL_NAME_ONLY",
	"{\"concurrency\": 0}", "concurrency: null", "proxyBootstrapTemplatePath: /b", "availabilityZone: a",
	"fileFlushInterval: 1s",
	"fileFlushMinSizeKb: 32", "statsCompression: false", "controlPlaneAuthPolicy: NONE",
	"proxyMetadata: {}", "proxyMetadata: null", "proxyMetadata: {EMPTY: \"\", QUOTED: \"a \\\"b\\\" {c}\"}",
	"proxyMetadata: {ISTIO_META_NETWORK: own, ISTIO_META_CLUSTER_ID: own}",
	"proxyMetadata: {PROXY_CONFIG_XDS_AGENT: \"true\", ISTIO_DUAL_STACK: \"true\"}",
	"proxyMetadata: {GOMEMLIMIT: 1GiB, POD_NAME: fixed}",
	"readinessProbe: {exec: {command: [a]}, timeoutSeconds: 2}", "readinessProbe: {tcpSocket: {port: 1}}",
	"readinessProbe: {grpc: {port: 9, service: s}}",
	"gatewayTopology: {proxyProtocol: {}, forwardClientCertDetails: SANITIZE_SET}", "tracing: {enableIstioTags: false}",
	"tracing: {openCensusAgent: {address: \"o:1\", context: [B3]}}",
	"tracing: {sampling: 0, maxPathTagLength: 7}", "tracing: {customTags: {h: {header: {name: x, defaultValue: y}}}}",
	"connectionSettings: {}",
	"proxyHeaders: {requestId: {disabled: true}, attemptCount: {disabled: false}, envoyDebugHeaders: {disabled: true}, metadataExchangeHeaders: {mode: IN_MESH}}",
	"proxyHeaders: {preserveHttp1HeaderCase: true, setCurrentClientCertDetails: {subject: true, uri: null}}",
	"proxyStatsMatcher: {inclusionSuffixes: [a]}",
	"privateKeyProvider: {qat: {pollDelay: 5ms, fallback: true}}", "sds: {enabled: true}",
	"envoyMetricsService: {address: \"ms:1\", tlsSettings: {mode: ISTIO_MUTUAL}, tcpKeepalive: {time: 10s}}",
	"terminationDrainDuration: 1h1m1.5s", "concurrency: 0", "image: {imageType: \"\"}",
	"holdApplicationUntilProxyStarts: null", "statusPort: 0x3AAA",
}

// oddProxyConfigs are such as the webhook refuses, or nearly.
var oddProxyConfigs = []string{
	"serviceCluster: \"\"", "tracing: {lightstep: {address: \"a:1\"}}",
	"tracing: {lightstep: {address: \"a:1\", accessToken: t}}",
	"tracing: {tlsSettings: {mode: MUTUAL}}", "tracing: {tlsSettings: {mode: SIMPLE, caCertificates: /a/b}}",
	"tracing: {customTags: {a: null}}",
	"privateKeyProvider: {cryptomb: {}}", "privateKeyProvider: {}", "privateKeyProvider: {qat: {pollDelay: 0s}}",
	"unknown: 1", "concurrency: x",
	"statusPort: 0", "statusPort: 70000", "drainDuration: 0s", "drainDuration: 1ms", "terminationDrainDuration: soon",
	"interceptionMode: FOO",
	"[]", "a", "concurrency: -1", "zipkinAddress: \"\"", "discoveryAddress: \"\"", "discoveryAddress: nowhere",
	"proxyAdminPort: 0",
	"controlPlaneAuthPolicy: MUTUAL_TLS", "statsdUdpAddress: a", "configPath: \"\"",
	"envoyMetricsService: {address: a}", "proxyMetadata: [a]",
	"tracing: {sampling: 200}", "tracing: {maxPathTagLength: 0}", "image: {imageType: 3}",
	"concurrency: 2\nconcurrency: 3",
	"proxyMetadata: {A: 1}", "proxyMetadata: {A: {b: c}}", "holdApplicationUntilProxyStarts: \"yes\"",
	"readinessProbe: {}", "drainDuration: 5", "runtimeValues: {a: 1}",
	"connectionSettings: {keepalive: {}}", "proxyHeaders: {forwardedClientCert: NOPE}",
	"gatewayTopology: {numTrustedProxies: -1}", "concurrency: 3.0", "concurrency: \"3\"", "extraStatTags: a",
	"interception_mode: TPROXY", "InterceptionMode: TPROXY", "---", "---\nconcurrency: 3",
	"concurrency: 3\n---\nconcurrency: 4", "&a {concurrency: 3}", "tracing: {sampling: .inf}",
	"proxyMetadata: {A: null}", "tracing: {zipkin: {}}", "tracing: {datadog: {}}", "serviceCluster: a b", "{",
}
