// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio/feature"
	"github.com/prerig/prerig/fn/istio/release"
)

func parse(t *testing.T, text string, minor int) *MeshConfig {
	t.Helper()
	mc, warnings, err := Parse(text, release.Newest(minor))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings %q", warnings)
	}
	return mc
}

// TestTemplateAccess renders what the stock templates of each time read.
func TestTemplateAccess(t *testing.T) {
	tests := map[string]struct {
		minor          int
		mesh, template string
		want           string
	}{
		"1.0 durations and addresses": {0, "defaultConfig: {connectTimeout: 7s, zipkinAddress: z:1, discoveryRefreshDelay: 10s}",
			`{{ .ProxyConfig.DrainDuration.AsDuration }} {{ .ProxyConfig.ParentShutdownDuration.AsDuration }} {{ .ProxyConfig.ConnectTimeout.AsDuration }} {{ .ProxyConfig.ZipkinAddress }} {{ .ProxyConfig.DiscoveryRefreshDelay.Seconds }} {{ .MeshConfig.ProxyListenPort }}`,
			"2s 3s 7s z:1 10 15001"},
		"1.1 enums": {1, "defaultConfig: {interceptionMode: TPROXY, controlPlaneAuthPolicy: MUTUAL_TLS}",
			`{{ .ProxyConfig.InterceptionMode }} {{ .ProxyConfig.InterceptionMode.String }} {{ .ProxyConfig.ControlPlaneAuthPolicy }} {{ .ProxyConfig.BinaryPath }} {{ .ProxyConfig.ConfigPath }}`,
			"TPROXY TPROXY MUTUAL_TLS /usr/local/bin/envoy /etc/istio/proxy"},
		"1.1 tracers that are not set": {1, "",
			`[{{ .ProxyConfig.GetTracing.GetZipkin.GetAddress }}{{ .ProxyConfig.GetTracing.GetLightstep.GetCacertPath }}{{ .ProxyConfig.GetTracing.GetDatadog.GetAddress }}]`, "[]"},
		"1.5 tracers": {5, "defaultConfig: {tracing: {lightstep: {address: a, accessToken: b, secure: true, cacertPath: /c/d}}}",
			`{{ with .ProxyConfig.GetTracing.GetLightstep }}{{ .GetAddress }} {{ .GetAccessToken }} {{ .GetSecure }} {{ .GetCacertPath }}{{ end }}`, "a b true /c/d"},
		"1.5 stackdriver": {5, "defaultConfig: {tracing: {stackdriver: {debug: true, maxNumberOfAnnotations: 200}}}",
			`{{ .ProxyConfig.GetTracing.GetStackdriver.GetDebug }} {{ .ProxyConfig.GetTracing.GetStackdriver.GetMaxNumberOfAnnotations.Value }}`, "true 200"},
		"1.6 concurrency is a number":          {6, "", `{{ if gt .ProxyConfig.Concurrency 0 }}{{ .ProxyConfig.Concurrency }}{{ end }}`, "2"},
		"1.5 concurrency is off":               {5, "", `{{ if gt .ProxyConfig.Concurrency 0 }}{{ .ProxyConfig.Concurrency }}{{ end }}`, ""},
		"1.7 concurrency is a wrapper":         {7, "", `{{ if gt .ProxyConfig.Concurrency.GetValue 0 }}{{ .ProxyConfig.Concurrency.GetValue }}{{ end }}`, "2"},
		"1.18 concurrency is unset":            {18, "", `{{ .ProxyConfig.Concurrency.GetValue }}{{ with .ProxyConfig.Concurrency }}set{{ end }}`, "0"},
		"1.8 hold":                             {8, "defaultConfig: {holdApplicationUntilProxyStarts: true}", `{{ .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue }}`, "true"},
		"1.8 hold unset":                       {8, "", `{{ .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue }}`, "false"},
		"1.12 service cluster":                 {12, "", `{{ .ProxyConfig.ServiceCluster }}`, "istio-proxy"},
		"1.13 service cluster in a oneof":      {13, "", `{{ .ProxyConfig.GetServiceCluster }} {{ .ProxyConfig.GetClusterName.ServiceCluster }}`, "istio-proxy istio-proxy"},
		"1.6 tls settings of the tracer":       {6, "defaultConfig: {tracing: {tlsSettings: {caCertificates: /ca}}}", `{{ .ProxyConfig.GetTracing.GetTlsSettings.GetCaCertificates }}`, "/ca"},
		"1.31 unset tls settings":              {31, "", `[{{ .ProxyConfig.GetTracing.GetTlsSettings.GetCaCertificates }}]`, "[]"},
		"1.31 ports and trust domain":          {31, "trustDomain: td", `{{ .MeshConfig.ProxyInboundListenPort }} {{ .MeshConfig.ProxyListenPort }} {{ .MeshConfig.TrustDomain }} {{ .ProxyConfig.StatusPort }}`, "15006 15001 td 15020"},
		"1.31 metadata":                        {31, "defaultConfig: {proxyMetadata: {B: x, A: z}}", `{{ range $k, $v := .ProxyConfig.ProxyMetadata }}{{ $k }}={{ $v }};{{ end }}`, "A=z;B=x;"},
		"1.31 inbound policy":                  {31, "inboundTrafficPolicy: {mode: LOCALHOST}", `{{ .MeshConfig.GetInboundTrafficPolicy.GetMode }}`, "LOCALHOST"},
		"1.31 no inbound policy":               {31, "{}", `{{ .MeshConfig.InboundTrafficPolicy }}`, ""},
		"1.4 access log service":               {4, "", `[{{ .ProxyConfig.EnvoyAccessLogService.Address }}]`, "[]"},
		"1.2 address of the metrics service":   {2, "defaultConfig: {envoyMetricsServiceAddress: m:1}", `{{ .ProxyConfig.EnvoyMetricsServiceAddress }}`, "m:1"},
		"1.13 private key provider and header": {24, "defaultConfig: {privateKeyProvider: {cryptomb: {pollDelay: 10ms}}, proxyHeaders: {server: {value: x}}}", `{{ .ProxyConfig.GetPrivateKeyProvider.GetCryptomb.GetPollDelay.String }} {{ .ProxyConfig.ProxyHeaders.Server.Value }}`, "nanos:10000000 x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mc := parse(t, test.mesh, test.minor)
			tmpl, err := template.New("").Option("missingkey=error").Parse(test.template)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			if err := tmpl.Execute(&out, map[string]any{"MeshConfig": mc, "ProxyConfig": mc.DefaultConfig}); err != nil {
				t.Fatal(err)
			}
			if out.String() != test.want {
				t.Errorf("have %q, want %q", out.String(), test.want)
			}
		})
	}
}

// TestProxyConfigJSON has the value of PROXY_CONFIG by version, among them those of Istio's own golden files.
func TestProxyConfigJSON(t *testing.T) {
	installed := "defaultConfig:\n  discoveryAddress: istiod.istio-system.svc:15012\n"
	tests := map[string]struct {
		minor            int
		mesh, annotation string
		want             string
	}{
		"1.8 metadata":             {8, installed + "  proxyMetadata: {DNS_AGENT: ''}\n  tracing: {zipkin: {address: 'zipkin.istio-system:9411'}}", "", `{"proxyMetadata":{"DNS_AGENT":""}}`},
		"1.8 annotation replaces":  {8, installed + "  proxyMetadata: {DNS_AGENT: ''}", "discoveryAddress: foo:123\nconcurrency: 0\nproxyMetadata: {FOO: bar}", `{"discoveryAddress":"foo:123","concurrency":0,"proxyMetadata":{"FOO":"bar"}}`},
		"1.8 durations":            {8, installed + "  drainDuration: 23s\n  parentShutdownDuration: 42s", "", `{"drainDuration":"23s","parentShutdownDuration":"42s"}`},
		"1.8 hold":                 {8, installed, `{ "holdApplicationUntilProxyStarts": false }`, `{"holdApplicationUntilProxyStarts":false}`},
		"1.8 empty metadata shows": {8, installed + "  proxyMetadata: {}", "", `{"proxyMetadata":{}}`},
		"1.10 it does not":         {10, installed + "  proxyMetadata: {}", "", `{}`},
		"1.10 annotation merges":   {10, installed + "  proxyMetadata: {A: b}", "proxyMetadata: {FOO: bar}", `{"proxyMetadata":{"A":"b","FOO":"bar"}}`},
		"1.5 everything":           {5, "", "concurrency: 5", `{"configPath":"/etc/istio/proxy","binaryPath":"/usr/local/bin/envoy","serviceCluster":"istio-proxy","drainDuration":"45s","parentShutdownDuration":"60s","discoveryAddress":"istio-pilot:15010","connectTimeout":"1s","proxyAdminPort":15000,"statNameLength":189,"envoyAccessLogService":{},"envoyMetricsService":{}}`},
		"1.6 nothing":              {6, installed, "", `{}`},
		"1.6 concurrency 0":        {6, installed, "concurrency: 0", `{}`},
		"1.6 concurrency 3":        {6, installed, "concurrency: 3", `{"concurrency":3}`},
		"1.7 concurrency 0":        {7, installed, "concurrency: 0", `{"concurrency":0}`},
		"1.6 auth policy shows":    {6, installed, "controlPlaneAuthPolicy: MUTUAL_TLS", `{"controlPlaneAuthPolicy":"MUTUAL_TLS"}`},
		"1.24 tracing off":         {24, installed + "  tracing: {}", "", `{"tracing":{}}`},
		"1.31 order":               {31, installed + "  proxyMetadata: {ISTIO_META_TLS_CLIENT_KEY: /a}", "discoveryAddress: foo:123\nproxyMetadata: {FOO: bar}\nconcurrency: 0", `{"discoveryAddress":"foo:123","concurrency":0,"proxyMetadata":{"FOO":"bar","ISTIO_META_TLS_CLIENT_KEY":"/a"}}`},
		"1.24 removed field":       {24, installed, "proxy_stats_matcher: {inclusionRegexps: ['.*<a>.*']}", `{"proxyStatsMatcher":{"inclusionRegexps":[".*\u003ca\u003e.*"]}}`},
		"1.15 lists append":        {15, installed + "  extraStatTags: [a]", "extraStatTags: [b]", `{"extraStatTags":["a","b"]}`},
		"1.10 lists replace":       {10, installed + "  extraStatTags: [a]", "extraStatTags: [b]", `{"extraStatTags":["b"]}`},
		"1.15 messages merge":      {15, installed + "  tracing: {sampling: 5}", "tracing: {zipkin: {address: z}}", `{"tracing":{"zipkin":{"address":"z"},"sampling":5}}`},
		"1.24 messages replace":    {24, installed + "  tracing: {sampling: 5}", "tracing: {zipkin: {address: z}}", `{"tracing":{"zipkin":{"address":"z"}}}`},
		"1.15 tracing stays":       {15, installed + "  tracing: {}", "", "{}"},
		"1.17 tracing off":         {17, installed + "  tracing: {}", "", `{"tracing":{}}`},
		"1.21 tracing off":         {21, installed, "tracing: {}", `{"tracing":{}}`},
		"1.21 lists replace":       {21, installed + "  extraStatTags: [a, b]", "extraStatTags: [c]", `{"extraStatTags":["c"]}`},
		"1.21 headers are kept":    {21, installed + "  proxyHeaders: {server: {disabled: true}}", "proxyHeaders: {requestId: {disabled: true}}", `{"proxyHeaders":{"requestId":{"disabled":true},"server":{"disabled":true}}}`},
		"1.10 messages replace":    {10, installed + "  tracing: {sampling: 5}", "tracing: {zipkin: {address: z}}", `{"tracing":{"zipkin":{"address":"z"}}}`},
		"1.24 oneof changes":       {20, installed, "tracing: {datadog: {address: d}}", `{"tracing":{"datadog":{"address":"d"}}}`},
		"1.24 tracing name":        {24, installed, "tracingServiceName: APP_LABEL_AND_NAMESPACE", `{"tracingServiceName":"APP_LABEL_AND_NAMESPACE"}`},
		"1.13 image":               {13, installed, "image: {imageType: distroless}", `{"image":{"imageType":"distroless"}}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			mc := parse(t, test.mesh, test.minor)
			var annotation *string
			if test.annotation != "" && feature.In(release.Newest(test.minor), feature.ProxyConfigAnnotation) {
				annotation = &test.annotation
			}
			pc, warnings, err := mc.Effective(nil, "ns", nil, annotation)
			if err != nil || len(warnings) > 0 {
				t.Fatal(warnings, err)
			}
			got, err := ProtoToJSON(pc, release.Newest(test.minor))
			if err != nil {
				t.Fatal(err)
			}
			if got != test.want {
				t.Errorf("have %s\nwant %s", got, test.want)
			}
		})
	}
}

func TestProtoToJSONOfOthers(t *testing.T) {
	mc := parse(t, "defaultConfig: {envoyMetricsService: {address: 'm:1', tlsSettings: {mode: MUTUAL, subjectAltNames: []}, tcpKeepalive: {probes: 3, time: 10s, interval: 1.5s}}, tracing: {stackdriver: {maxNumberOfAnnotations: 7}}}", 5)
	tests := []struct {
		in   any
		want string
	}{
		{mc.DefaultConfig.EnvoyMetricsService, `{"address":"m:1","tlsSettings":{"mode":"MUTUAL","subjectAltNames":[]},"tcpKeepalive":{"probes":3,"time":"10s","interval":"1.500s"}}`},
		{mc.DefaultConfig.Tracing, `{"stackdriver":{"maxNumberOfAnnotations":"7"}}`},
		{(*RemoteService)(nil), "{}"},
		{nil, "{}"},
	}
	for _, test := range tests {
		got, err := ProtoToJSON(test.in, release.Newest(5))
		if err != nil || got != test.want {
			t.Errorf("have %s %v\nwant %s", got, err, test.want)
		}
	}
	if _, err := ProtoToJSON("text", release.Newest(5)); err == nil {
		t.Error("a string passes for a message")
	}
	if data, err := json.Marshal(map[string]any{"a": mc.DefaultConfig.Tracing}); err != nil || string(data) != `{"a":{"stackdriver":{"maxNumberOfAnnotations":"7"}}}` {
		t.Errorf("have %s %v", data, err)
	}
}

func TestParseErrors(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"number for a string":    {"defaultConfig: {discoveryAddress: 5}", "defaultConfig.discoveryAddress: want a string, have the number 5"},
		"number in metadata":     {"defaultConfig: {proxyMetadata: {FOO: 1}}", "defaultConfig.proxyMetadata.FOO: want a string, have the number 1"},
		"bad duration":           {"connectTimeout: 5", `connectTimeout: want a duration such as "5s", have the number 5`},
		"bad duration text":      {"connectTimeout: soon", `connectTimeout: want a duration such as "5s", have "soon"`},
		"bad enum":               {"defaultConfig: {interceptionMode: tproxy}", `defaultConfig.interceptionMode: "tproxy" is none of REDIRECT, TPROXY, NONE`},
		"text for a bool":        {"enableTracing: 'yes'", `enableTracing: want true or false, have the string "yes"`},
		"list for a mapping":     {"defaultConfig: []", "defaultConfig: want a mapping, have a list"},
		"mapping for a list":     {"trustDomainAliases: {}", "trustDomainAliases: want a list, have a mapping"},
		"number in a list":       {"trustDomainAliases: [a, 1]", "trustDomainAliases[1]: want a string, have the number 1"},
		"fraction":               {"proxyListenPort: 1.5", "proxyListenPort: want a whole number of 32 bits, have the number 1.5"},
		"negative":               {"reportBatchMaxEntries: -1", "reportBatchMaxEntries: want a whole number that is not negative, have the number -1"},
		"too large":              {"proxyListenPort: 4294967296", "proxyListenPort: want a whole number of 32 bits"},
		"not a mapping":          {"- a", "want a mapping, have a list"},
		"not YAML":               {"a: [", "yaml: "},
		"bad extension provider": {"extensionProviders: [{name: a, opentelemetry: {port: x}}]", `extensionProviders[0].opentelemetry.port: want a whole number that is not negative, have the string "x"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse(test.text, release.Newest(7))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("have %v, want %q", err, test.want)
			}
		})
	}
}

func TestWarnings(t *testing.T) {
	_, warnings, err := Parse("nope: 1\nsdsUdsPath: x\nproxy_listen_port: 5\ndefaultConfig: {connectTimeout: 1s, parentShutdownDuration: 42s, x: {}, drainDuration: null}\n", release.Newest(31))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"field defaultConfig.parentShutdownDuration does not exist in Istio 1.31 and is ignored",
		"field defaultConfig.connectTimeout does not exist in Istio 1.31 and is ignored",
		"field defaultConfig.x is not known and is ignored",
		"field sdsUdsPath does not exist in Istio 1.31 and is ignored",
		"field nope is not known and is ignored",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
	mc, _, _ := Parse("proxy_listen_port: 5\ndefaultConfig: {drainDuration: null}", release.Newest(31))
	if mc.ProxyListenPort != 5 || mc.DefaultConfig.DrainDuration.Seconds != 45 {
		t.Errorf("have %d, %v", mc.ProxyListenPort, mc.DefaultConfig.DrainDuration)
	}
}

func TestDefaults(t *testing.T) {
	for minor := 0; minor <= 31; minor++ {
		pc := DefaultProxyConfig(release.Newest(minor))
		if (pc.ParentShutdownDuration != nil) != (minor <= 16) || (pc.Workers != nil) != (minor >= 6 && minor <= 17) ||
			(pc.Tracing != nil) != (minor >= 6 && minor <= 21) || (pc.StatusPort == 15020) != (minor >= 6) ||
			(pc.ControlPlaneAuthPolicy == AuthenticationPolicyMutualTls) != (minor >= 7) ||
			(pc.DiscoveryAddress == discovery) != (minor >= 6) {
			t.Errorf("1.%d: %+v", minor, pc)
		}
		mc := Default(release.Newest(minor))
		if !mc.PrometheusMerge() || mc.ProxyListenPort != 15001 || (mc.SdsUdsPath != "") != (minor == 6 || minor == 7) ||
			(mc.ProxyInboundListenPort == 15006) != (minor >= 18) {
			t.Errorf("1.%d: %+v", minor, mc)
		}
	}
}

func TestMeshConfigReplaces(t *testing.T) {
	mc := parse(t, "enablePrometheusMerge: false\ndefaultProviders: {metrics: [prometheus]}\ntrustDomainAliases: [b, a, b]\nextensionProviders: [{name: envoy, envoyFileAccessLog: {path: /x}}, {name: otel, opentelemetry: {service: s, port: 1, serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}}]", 31)
	if mc.PrometheusMerge() {
		t.Error("the merge is still on")
	}
	if diff := cmp.Diff([]string{"a", "b"}, mc.TrustDomainAliases); diff != "" {
		t.Error(diff)
	}
	names := []string{}
	for _, p := range mc.ExtensionProviders {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"prometheus", "stackdriver", "envoy", "otel"}, names); diff != "" {
		t.Error(diff)
	}
	if mc.ExtensionProviders[2].EnvoyFileAccessLog.Path != "/x" || mc.ExtensionProviders[3].GetOpentelemetry().GetServiceAttributeEnrichment() != ServiceAttributeEnrichmentOtelSemanticConventions {
		t.Errorf("have %+v", mc.ExtensionProviders)
	}
}

// TestNullsAndOneofs takes null in a map or list for a zero or an empty message, and the last declared of the members of a
// oneof, as the decoder of istiod does (jsonpb of github.com/golang/protobuf).
func TestNullsAndOneofs(t *testing.T) {
	text := "defaultConfig: {proxyMetadata: {A: null}, tracing: {customTags: {a: null}, datadog: {address: b}, zipkin: {address: a}}, extraStatTags: [null]}"
	mc, warnings, err := Parse(text, release.Newest(31))
	if err != nil || len(warnings) != 1 || warnings[0] != "field defaultConfig.tracing.zipkin is ignored: only one of zipkin and datadog can be set" {
		t.Fatalf("have %v and %q", err, warnings)
	}
	out, err := ProtoToJSON(mc.DefaultConfig, release.Newest(31))
	if want := `{"tracing":{"datadog":{"address":"b"},"customTags":{"a":{}}},"proxyMetadata":{"A":""},"extraStatTags":[""]}`; err != nil || out != want {
		t.Errorf("have %s, %v; want %s", out, err, want)
	}
}

// TestNothingIsShared checks that applying an annotation leaves the configuration below it alone.
func TestNothingIsShared(t *testing.T) {
	for _, minor := range []int{6, 10, 24} {
		mc := parse(t, "defaultConfig: {proxyMetadata: {A: b}, extraStatTags: [a], tracing: {sampling: 1}}", minor)
		before := cloneMessage(mc.DefaultConfig)
		annotation := "proxyMetadata: {A: c, D: e}\nextraStatTags: [b]\ntracing: {sampling: 7, maxPathTagLength: 1}"
		pc, _, err := mc.Effective(nil, "ns", nil, &annotation)
		if err != nil {
			t.Fatal(err)
		}
		pc.ProxyMetadata["Z"] = "z"
		pc.Tracing.Sampling = 9
		if !reflect.DeepEqual(before, mc.DefaultConfig) {
			t.Errorf("1.%d: the mesh config changed", minor)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "{}", "defaultConfig: {concurrency: 2, tracing: {zipkin: {address: a}}}", "enableAutoMtls: true", "defaultConfig: {drainDuration: 1h2m3.004s}", "extensionProviders: [{name: a}]", "a: &x [*x]"} {
		f.Add(seed, 31)
		f.Add(seed, 5)
	}
	f.Fuzz(func(t *testing.T, text string, minor int) {
		if minor < 0 || minor > 31 {
			return
		}
		mc, _, err := Parse(text, release.Newest(minor))
		if err != nil {
			return
		}
		out, err := ProtoToJSON(mc.DefaultConfig, release.Newest(minor))
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid([]byte(out)) {
			t.Fatalf("not JSON: %s", out)
		}
		again, _, err := Parse(`{"defaultConfig":`+out+`}`, release.Newest(minor))
		if err != nil {
			t.Fatalf("what was written does not read: %v: %s", err, out)
		}
		twice, err := ProtoToJSON(again.DefaultConfig, release.Newest(minor))
		if err != nil || twice != out {
			t.Errorf("have %s\nthen %s (%v)", out, twice, err)
		}
	})
}

func BenchmarkProtoToJSON(b *testing.B) {
	mc := Default(release.Newest(31))
	for b.Loop() {
		if _, err := ProtoToJSON(mc.DefaultConfig, release.Newest(31)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEffective(b *testing.B) {
	mc := Default(release.Newest(31))
	annotation := "holdApplicationUntilProxyStarts: true"
	for b.Loop() {
		if _, _, err := mc.Effective(nil, "ns", nil, &annotation); err != nil {
			b.Fatal(err)
		}
	}
}
