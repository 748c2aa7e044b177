// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

func resource(t *testing.T, namespace, name string, spec map[string]any) *Resource {
	t.Helper()
	obj := map[string]any{"apiVersion": "networking.istio.io/v1beta1", "kind": "ProxyConfig",
		"metadata": map[string]any{"namespace": namespace, "name": name}, "spec": spec}
	r, warnings, err := ParseResource(obj)
	if err != nil || len(warnings) > 0 {
		t.Fatal(warnings, err)
	}
	return r
}

// TestEffectivePrecedence has the order of pilot/pkg/model/proxy_config.go.
func TestEffectivePrecedence(t *testing.T) {
	env := func(kv ...string) map[string]any {
		m := map[string]any{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	selector := map[string]any{"matchLabels": map[string]any{"app": "a"}}
	rs := NewResources([]*Resource{
		resource(t, "istio-system", "global", map[string]any{"concurrency": int64(1), "environmentVariables": env("A", "global", "B", "global")}),
		resource(t, "shop", "all", map[string]any{"environmentVariables": env("B", "namespace", "C", "namespace", "D", "namespace")}),
		resource(t, "shop", "a-later", map[string]any{"environmentVariables": env("B", "never")}),
		resource(t, "shop", "app", map[string]any{"selector": selector, "concurrency": int64(0), "environmentVariables": env("D", "workload"), "image": map[string]any{"imageType": "debug"}}),
		resource(t, "shop", "empty", map[string]any{"selector": map[string]any{}, "concurrency": int64(9)}),
	})
	annotation := "proxyMetadata: {C: annotation, D: annotation}\nconcurrency: 5\nimage: {imageType: distroless}"
	tests := map[string]struct {
		namespace  string
		labels     map[string]string
		annotation *string
		want       string
	}{
		"elsewhere":     {"other", nil, nil, `{"concurrency":1,"proxyMetadata":{"A":"global","B":"global","M":"mesh"}}`},
		"namespace":     {"shop", nil, nil, `{"concurrency":1,"proxyMetadata":{"A":"global","B":"namespace","C":"namespace","D":"namespace","M":"mesh"}}`},
		"annotation":    {"shop", nil, &annotation, `{"concurrency":5,"proxyMetadata":{"A":"global","B":"namespace","C":"annotation","D":"annotation","M":"mesh"},"image":{"imageType":"distroless"}}`},
		"workload":      {"shop", map[string]string{"app": "a"}, &annotation, `{"concurrency":0,"proxyMetadata":{"A":"global","B":"namespace","C":"annotation","D":"workload","M":"mesh"},"image":{"imageType":"debug"}}`},
		"wrong label":   {"shop", map[string]string{"app": "b"}, nil, `{"concurrency":1,"proxyMetadata":{"A":"global","B":"namespace","C":"namespace","D":"namespace","M":"mesh"}}`},
		"root itself":   {"istio-system", map[string]string{"app": "a"}, nil, `{"concurrency":1,"proxyMetadata":{"A":"global","B":"global","M":"mesh"}}`},
		"empty matches": {"shop", map[string]string{"x": "y"}, nil, `{"concurrency":1,"proxyMetadata":{"A":"global","B":"namespace","C":"namespace","D":"namespace","M":"mesh"}}`},
	}
	mc := parse(t, "defaultConfig: {proxyMetadata: {M: mesh, A: mesh}, concurrency: 7}", 24)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pc, _, err := mc.Effective(rs, test.namespace, test.labels, test.annotation)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := ProtoToJSON(pc, release.Newest(24)); got != test.want {
				t.Errorf("have %s\nwant %s", got, test.want)
			}
		})
	}
	old := parse(t, "defaultConfig: {concurrency: 7}", 12)
	pc, _, err := old.Effective(rs, "shop", map[string]string{"app": "a"}, nil)
	if err != nil || pc.Workers.GetValue() != 7 {
		t.Errorf("1.12 reads ProxyConfig resources: %v %v", pc.Workers, err)
	}
}

func TestResourceErrors(t *testing.T) {
	obj := map[string]any{"apiVersion": "networking.istio.io/v1beta1", "kind": "ProxyConfig", "metadata": map[string]any{"name": "a", "namespace": "b"},
		"spec": map[string]any{"environmentVariables": map[string]any{"A": int64(1)}}}
	_, _, err := ParseResource(obj)
	if err == nil || !strings.Contains(err.Error(), "ProxyConfig b/a: spec.environmentVariables.A: want a string, have the number 1") {
		t.Errorf("have %v", err)
	}
	obj["spec"] = []any{}
	if _, _, err = ParseResource(obj); err == nil {
		t.Error("a list passes for a spec")
	}
	wrong := "concurrency: many"
	if _, _, err := Default(release.Newest(24)).Effective(nil, "", nil, &wrong); err == nil {
		t.Error("a wrong annotation passes")
	}
}

// TestFieldsOfTheProxyConfigByVersion has for each field that came later the annotation that sets it, and the first minor
// that reads it (source: mesh/v1alpha1/proxy.proto of the istio.io/api in go.mod at the first and the last tag of each minor, and
// which sources of Istio read the field). Older ones leave it out of PROXY_CONFIG.
func TestFieldsOfTheProxyConfigByVersion(t *testing.T) {
	for field, c := range map[string]struct {
		annotation, want string
		since            int
	}{
		"readinessProbe":          {"readinessProbe: {tcpSocket: {port: 1}}", `{"readinessProbe":{"tcpSocket":{"port":1}}}`, 8},
		"proxyStatsMatcher":       {"proxyStatsMatcher: {inclusionPrefixes: [a]}", `{"proxyStatsMatcher":{"inclusionPrefixes":["a"]}}`, 8},
		"openCensusAgent":         {"tracing: {openCensusAgent: {address: a}}", `{"tracing":{"openCensusAgent":{"address":"a"}}}`, 8},
		"insecureSkipVerify":      {"tracing: {tlsSettings: {insecureSkipVerify: true}}", `{"tracing":{"tlsSettings":{"insecureSkipVerify":true}}}`, 12},
		"tracingServiceName":      {"tracingServiceName: CANONICAL_NAME_ONLY", `{"tracingServiceName":"CANONICAL_NAME_ONLY"}`, 13},
		"runtimeValues":           {"runtimeValues: {a: b}", `{"runtimeValues":{"a":"b"}}`, 14},
		"privateKeyProvider":      {"privateKeyProvider: {cryptomb: {pollDelay: 0.01s}}", `{"privateKeyProvider":{"cryptomb":{"pollDelay":"0.010s"}}}`, 14},
		"qat":                     {"privateKeyProvider: {qat: {pollDelay: 0.01s}}", `{"privateKeyProvider":{"qat":{"pollDelay":"0.010s"}}}`, 17},
		"setCurrentClientCert":    {"proxyHeaders: {setCurrentClientCertDetails: {uri: true}}", `{"proxyHeaders":{"setCurrentClientCertDetails":{"uri":true}}}`, 24},
		"proxyHeaders":            {"proxyHeaders: {server: {value: s}}", `{"proxyHeaders":{"server":{"value":"s"}}}`, 19},
		"proxyProtocol":           {"gatewayTopology: {proxyProtocol: {}}", `{"gatewayTopology":{"proxyProtocol":{}}}`, 19},
		"fallback":                {"privateKeyProvider: {cryptomb: {pollDelay: 0.01s, fallback: true}}", `{"privateKeyProvider":{"cryptomb":{"pollDelay":"0.010s","fallback":true}}}`, 21},
		"caCrl":                   {"tracing: {tlsSettings: {caCrl: c}}", `{"tracing":{"tlsSettings":{"caCrl":"c"}}}`, 22},
		"readinessProbe.grpc":     {"readinessProbe: {grpc: {port: 1}}", `{"readinessProbe":{"grpc":{"port":1}}}`, 25},
		"enableIstioTags":         {"tracing: {enableIstioTags: true}", `{"tracing":{"enableIstioTags":true}}`, 25},
		"preserveHttp1HeaderCase": {"proxyHeaders: {preserveHttp1HeaderCase: true}", `{"proxyHeaders":{"preserveHttp1HeaderCase":true}}`, 25},
		"xForwardedHost":          {"proxyHeaders: {xForwardedHost: {enabled: true}}", `{"proxyHeaders":{"xForwardedHost":{"enabled":true}}}`, 28},
		"fileFlushInterval":       {"fileFlushInterval: 1s", `{"fileFlushInterval":"1s"}`, 29},
		"fileFlushMinSizeKb":      {"fileFlushMinSizeKb: 32", `{"fileFlushMinSizeKb":32}`, 29},
		"statsCompression":        {"statsCompression: false", `{"statsCompression":false}`, 29},
		"connectionSettings":      {"connectionSettings: {}", `{"connectionSettings":{}}`, 31},
	} {
		t.Run(field, func(t *testing.T) {
			for _, minor := range []int{c.since - 1, c.since} {
				pc, warnings, err := Default(release.Newest(minor)).Effective(nil, "shop", nil, &c.annotation)
				if err != nil {
					t.Fatal(err)
				}
				got, _ := ProtoToJSON(pc, release.Newest(minor))
				if known := minor >= c.since; (got == c.want) != known || (len(warnings) == 0) != known {
					t.Errorf("1.%d reads %s and warns of %q, want the field: %t", minor, got, warnings, known)
				}
			}
		})
	}
}

// TestWrappersMergeAsMessages has an annotation whose values are false, zero and empty over a mesh that sets them: the pod keeps the mesh's
// where the two merge as messages, but for the concurrency (mergeWithPrecedence in pilot/pkg/model/proxy_config.go, and
// pkg/proto/merge, at these tags).
func TestWrappersMergeAsMessages(t *testing.T) {
	const config = "defaultConfig: {holdApplicationUntilProxyStarts: true, terminationDrainDuration: 7s, concurrency: 3, image: {imageType: debug}}"
	annotation := "{holdApplicationUntilProxyStarts: false, terminationDrainDuration: 0s, concurrency: 0, image: {}}"
	for of, want := range map[release.Release]string{
		{Minor: 12, Patch: 9}: `{"concurrency":0,"terminationDrainDuration":"0s","holdApplicationUntilProxyStarts":false}`,
		{Minor: 13, Patch: 0}: `{"concurrency":0,"terminationDrainDuration":"7s","holdApplicationUntilProxyStarts":true,"image":{"imageType":"debug"}}`,
		{Minor: 14, Patch: 1}: `{"concurrency":0,"terminationDrainDuration":"7s","holdApplicationUntilProxyStarts":true,"image":{"imageType":"debug"}}`,
		{Minor: 14, Patch: 4}: `{"concurrency":0,"terminationDrainDuration":"7s","holdApplicationUntilProxyStarts":true,"image":{}}`,
		{Minor: 14, Patch: 5}: `{"concurrency":0,"terminationDrainDuration":"0s","holdApplicationUntilProxyStarts":true,"image":{}}`,
		{Minor: 15, Patch: 0}: `{"concurrency":0,"terminationDrainDuration":"7s","holdApplicationUntilProxyStarts":true,"image":{}}`,
		{Minor: 15, Patch: 7}: `{"concurrency":0,"terminationDrainDuration":"0s","holdApplicationUntilProxyStarts":true,"image":{}}`,
		{Minor: 17, Patch: 1}: `{"concurrency":0,"terminationDrainDuration":"0s","holdApplicationUntilProxyStarts":true,"image":{}}`,
		{Minor: 17, Patch: 2}: `{"concurrency":0,"terminationDrainDuration":"0s","holdApplicationUntilProxyStarts":false,"image":{}}`,
	} {
		mc, _, err := Parse(config, of)
		if err != nil {
			t.Fatal(err)
		}
		pc, _, err := mc.Effective(nil, "shop", nil, &annotation)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := ProtoToJSON(pc, of); got != want {
			t.Errorf("%s: have %s\nwant %s", of, got, want)
		}
	}
}
