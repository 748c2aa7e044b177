// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"reflect"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

// wrongMeshValues are mesh configs with a value that no cluster uses as it is written, and what the warning contains.
var wrongMeshValues = map[string]string{
	"trustDomain: cluster local":              "field trustDomain must be a domain",
	"trustDomainAliases: [td, 'a b']":         "field trustDomainAliases[1] must be a domain",
	"rootNamespace: Istio_System":             "field rootNamespace must be the name of a namespace",
	"proxyListenPort: 70000":                  "field proxyListenPort must be a port from 1 to 65535, is 70000",
	"connectTimeout: 2h":                      "field connectTimeout must be a duration from 1ms to 1h",
	"connectTimeout: 0s":                      "field connectTimeout must be a duration from 1ms to 1h",
	"serviceSettings: [{hosts: ['a b.svc']}]": "field serviceSettings[0].hosts[0] must be a host",
	"defaultServiceExportTo: [Shop_1]":        "field defaultServiceExportTo[0] must be *",
	"discoverySelectors: [{matchExpressions: [{key: env, operator: in}]}]":                     "did you mean In?",
	"extensionProviders: [{name: z, zipkin: {service: 'a b', port: 9411}}]":                    "field extensionProviders[0].zipkin.service must be a host",
	"extensionProviders: [{name: z, opentelemetry: {service: a.b, port: 99999}}]":              "field extensionProviders[0].opentelemetry.port must be a port",
	"extensionProviders: [{name: z, envoyExtAuthzHttp: {service: a, port: 1, pathPrefix: x}}]": "pathPrefix must be a path",
	"defaultConfig: {image: {imageType: distorless}}":                                          "did you mean distroless?",
	"defaultConfig: {proxyStatsMatcher: {inclusionRegexps: [ok, '(http']}}":                    "inclusionRegexps[1] must be a regular expression",
	"defaultConfig: {tracing: {sampling: 200}}":                                                "field defaultConfig.tracing.sampling must be a percentage from 0 to 100, is 200",
	"defaultConfig: {tracing: {sampling: -1}}":                                                 "field defaultConfig.tracing.sampling must be a percentage",
	"defaultConfig: {concurrency: -1}":                                                         "field defaultConfig.concurrency must be 0",
	"defaultConfig: {readinessProbe: {httpGet: {path: /x}}}":                                   "field defaultConfig.readinessProbe.httpGet must be complete",
	"defaultConfig: {readinessProbe: {tcpSocket: {port: 99999}}}":                              "readinessProbe.tcpSocket.port must be a port",
	"defaultConfig: {readinessProbe: {httpGet: {port: 80, scheme: htps}}}":                     "scheme must be HTTP or HTTPS",
	"defaultConfig: {caCertificatesPem: [cert]}":                                               "caCertificatesPem[0] must be a certificate in PEM",
	"defaultConfig: {extraStatTags: ['a b']}":                                                  "extraStatTags[0] must be a name",
}

// rightMeshValues are values of the same fields, and those that another tool completes.
var rightMeshValues = []string{
	"{trustDomain: cluster.local., trustDomainAliases: [td, old.td], rootNamespace: istio-system, connectTimeout: 10s}",
	"{trustDomain: '${TRUST_DOMAIN}', rootNamespace: '{{ .ns }}', proxyListenPort: 15001, proxyHttpPort: 0, connectTimeout: 0.5s}",
	"{serviceSettings: [{hosts: ['*.shop.svc.cluster.local', '*']}], defaultServiceExportTo: ['.', '*', '~', shop]}",
	"{discoverySelectors: [{matchLabels: {env: prod}, matchExpressions: [{key: a.b/env, operator: In, values: [x]}]}]}",
	"{extensionProviders: [{name: z, zipkin: {service: istio-system/zipkin.istio-system.svc, port: 9411}}, {name: o, opentelemetry: {service: 10.0.0.1, port: 4317}}]}",
	"{defaultConfig: {image: {imageType: distroless}, concurrency: 0, tracing: {sampling: 0.5, zipkin: {address: '$(HOST_IP):9411'}}}}",
	"{defaultConfig: {image: {imageType: fips}, proxyStatsMatcher: {inclusionRegexps: ['.*outlier_detection.*', 'http\\.{pod_ip}_.*']}}}",
	"{defaultConfig: {extraStatTags: [request_host, app.version], readinessProbe: {httpGet: {path: /x, port: 80, scheme: https}, periodSeconds: 5}}}",
}

func TestWrongMeshValuesAreWarnedOf(t *testing.T) {
	for text, want := range wrongMeshValues {
		_, warnings, err := Parse(text, release.Newest(32))
		if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], want) {
			t.Errorf("%s: have %q, %v; want one with %q", text, warnings, err, want)
		}
	}
	for _, text := range rightMeshValues {
		if _, warnings, err := Parse(text, release.Newest(32)); err != nil || len(warnings) > 0 {
			t.Errorf("%s: have %q, %v", text, warnings, err)
		}
	}
}

func TestAnnotationWithWrongValuesIsWarnedOf(t *testing.T) {
	_, warnings, err := ApplyProxyConfig("tracing: {sampling: 200}\nimage: {imageType: debgu}", DefaultProxyConfig(release.Newest(32)))
	if err != nil || len(warnings) != 2 {
		t.Errorf("have %q, %v", warnings, err)
	}
}

// TestFormatsAreOfFields finds a format of a field that no message has.
func TestFormatsAreOfFields(t *testing.T) {
	known := map[string]bool{}
	var visit func(reflect.Type)
	visit = func(typ reflect.Type) {
		for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
			typ = typ.Elem()
		}
		if typ.Kind() != reflect.Struct || known[typ.Name()] {
			return
		}
		known[typ.Name()] = true
		for _, f := range fieldsOf(typ) {
			known[typ.Name()+"."+f.json] = true
			visit(typ.Field(f.index).Type)
		}
	}
	visit(reflect.TypeFor[MeshConfig]())
	visit(reflect.TypeFor[resourceSpec]())
	for field := range formatOf {
		if !known[field] {
			t.Errorf("%s is not a field", field)
		}
	}
}

func TestFieldOf(t *testing.T) {
	for warning, want := range map[string][]any{
		"field a.b[1].c is not known and is ignored":    {"a", "b", 1, "c"},
		"field defaultConfig.statusPort: 99999 is not":  {"defaultConfig", "statusPort"},
		"field trustDomainAliases[0] must be a domain,": {"trustDomainAliases", 0},
	} {
		if have := FieldOf(warning); !reflect.DeepEqual(have, want) {
			t.Errorf("%s: have %v, want %v", warning, have, want)
		}
	}
}
