// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/gotemplate"
)

func TestFunctions(t *testing.T) {
	pod := &TemplateData{
		DeploymentMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "7"}},
		ObjectMeta:     metav1.ObjectMeta{Annotations: map[string]string{"a": "1", "empty": ""}, Labels: map[string]string{"app": "web"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}},
			{Name: ProxyContainer, Ports: []corev1.ContainerPort{{ContainerPort: 15090}}},
		}},
	}
	tests := []struct{ version, template, want string }{
		{"1.31", `{{ annotation .ObjectMeta "a" "9" }} {{ annotation .ObjectMeta "b" 9 }} {{ annotation .ObjectMeta "empty" "9" }}.`, "1 9 ."},
		{"1.31", `{{ annotation .ObjectMeta "b" .Values.none }}`, "<nil>"},
		{"1.20", `{{ annotation .DeploymentMeta "a" "9" }}`, "7"},
		{"1.31", `{{ isset .ObjectMeta.Annotations "empty" }} {{ isset .ObjectMeta.Annotations "b" }}`, "true false"},
		{"1.31", `{{ excludeInboundPort 15020 "80, 81" }} {{ excludeInboundPort "80" "80,81" }} {{ excludeInboundPort 0 "1" }}.`, "80,81,15020 80,81 1."},
		{"1.31", `{{ includeInboundPorts .Spec.Containers }} {{ applicationPorts .Spec.Containers }}`, "80,15090 80"},
		{"1.31", `{{ valueOrDefault "" 3 }} {{ valueOrDefault nil "d" }} {{ valueOrDefault 0 "d" }}`, "3 d 0"},
		{"1.31", `{{ toJSON .ObjectMeta.Labels }} {{ toJSON .ObjectMeta.Annotations | len }}`, `{"app":"web"} 20`},
		{"1.31", `{{ (fromJSON "{\"a\":[1,2]}").a }} {{ fromJSON "{" }}`, "[1 2] {}"},
		{"1.31", `{{ structToJSON (index (index .Spec.Containers 0).Ports 0) }}`, `{"containerPort":80}`},
		{"1.31", `{{ toYaml .Values.tree }}`, "a: 1\nb:\n- x\n- true\n"},
		{"1.31", `x{{ "a\nb\nc" | indent 2 }}`, "xa\n  b\n  c"},
		{"1.31", `x{{ "a" | nindent 2 }}`, "x\n  a"},
		{"1.31", `{{ contains "/" "a/b" }} {{ "a/b" | contains "/" }} {{ contains "x" "a/b" }}`, "true true false"},
		{"1.31", `{{ directory "/etc/certs/cert.pem" }} {{ toLower "ABC" }} {{ kubevirtInterfaces "net1" }} {{ excludeInterfaces "eth1" }}`, "/etc/certs/ abc net1 eth1"},
		{"1.31", `{{ formatDuration .ProxyConfig.DrainDuration }}`, "45s"},
		{"1.31", `{{ omit .ObjectMeta.Annotations "a" | toJSON }}`, `{"empty":""}`},
		{"1.31", `{{ strdict "a" "b" "c" | toJSON }} {{ toJsonMap (strdict "a" "1" "b" "1") (strdict "b" "2") }}`, `{"a":"b","c":""} {"a":"1","b":"2"}`},
		{"1.31", `{{ mergeMaps (strdict "a" "1") (strdict "a" "2") | toJSON }}`, `{"a":"2"}`},
		{"1.31", `{{ toYaml (omitNil .Values.holes) }}`, "a:\n  c: 1\n"},
		{"1.31", `{{ toYaml (omitNil .Values.hollow) }}`, "null\n"},
		{"1.31", `{{ toYaml (omitNil .Values.list) }}`, "- a: 1\n- {}\n"},
		{"1.31", `{{ toYaml (omitNil .Values.none) }} {{ omitNil "text" }}`, "null\n text"},
		{"1.31", `{{ env "HOME" "none" }} {{ env "SET" "none" }}`, "none yes"},
		{"1.31", `{{ keys .Values.many | join "," }} {{ values .Values.many | join "," }}`, "a,b,c 1,2,3"},
		{"1.31", `{{ .Values.n }} {{ .Values.big }}`, "15020 1e+06"},
		{"1.31", `{{ .ProxyConfig.InterceptionMode }} {{ annotation .ObjectMeta "x" .ProxyConfig.InterceptionMode }}`, "REDIRECT REDIRECT"},
		{"1.31", `{{ appendMultusNetwork "" "default/istio-cni" }} {{ appendMultusNetwork "a" "istio-cni" }} {{ appendMultusNetwork "a, istio-cni" "istio-cni" }}`,
			"default/istio-cni a, istio-cni a, istio-cni"},
		{"1.31", `{{ appendMultusNetwork "[{\"name\":\"a\"}]" "ns/cni" }}`, `[{"name":"a"}, {"name": "cni", "namespace": "ns"}]`},
		{"1.31", `{{ appendMultusNetwork "[{\"name\":\"cni\",\"namespace\":\"ns\"}]" "ns/cni" }}`, `[{"name":"cni","namespace":"ns"}]`},
		{"1.10", `{{ appendMultusNetwork "[{\"name\":\"a\"}]" "cni" }} {{ toJson .ObjectMeta.Labels }}`, `[{"name":"a"}, {"name": "cni"}] {"app":"web"}`},
		{"1.31", `{{ toJson .Values.tree }} {{ "a" | b64enc }} {{ "x" | sha256sum | trunc 4 }} {{ osBase "/a/b" }}`, `{"a":1,"b":["x",true]} YQ== 2d71 b`},
	}
	values := `{"tree": {"a": 1, "b": ["x", true]}, "holes": {"a": {"b": null, "c": 1}, "d": null}, "hollow": {"limits": {"cpu": null}}, "list": [{"a": 1, "b": null}, null, {}], "many": {"c": 3, "a": 1, "b": 2}, "n": 15020, "big": 1000000}`
	for _, tt := range tests {
		t.Run(tt.template, func(t *testing.T) {
			got, err := render(t, Options{Version: tt.version, Config: config(tt.template), Values: values, IstiodEnv: map[string]string{"SET": "yes"}}, pod)
			if err != nil {
				t.Fatal(err)
			}
			if got = strings.TrimRight(got, "\n"); got != strings.TrimRight(tt.want, "\n") {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestPortProtocols wants the ports of every protocol up to 1.2, and TCP's since.
func TestPortProtocols(t *testing.T) {
	pod := &TemplateData{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Name: "dns", Ports: []corev1.ContainerPort{{ContainerPort: 80}, {ContainerPort: 53, Protocol: corev1.ProtocolUDP}}},
		{Name: ProxyContainer, Ports: []corev1.ContainerPort{{ContainerPort: 15090, Protocol: corev1.ProtocolTCP}}},
	}}}
	for version, want := range map[string]string{"1.2": "80,53,15090 80,53", "1.3": "80,15090 80", "1.8": "80,15090 80"} {
		text := "policy: enabled\ntemplate: '{{ includeInboundPorts .Spec.Containers }} {{ applicationPorts .Spec.Containers }}'\n"
		got, err := render(t, Options{Version: version, Config: text, Values: "{}"}, pod)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", version, got, err, want)
		}
	}
}

// TestRefusedFunctions wants every function that is not hermetic refused by its name, and the environment of the process
// never read.
func TestRefusedFunctions(t *testing.T) {
	t.Setenv("PRERIG_TEST", "leaked")
	args := map[string]string{
		"date": `"2006" "x"`, "dateInZone": `"2006" "x" "UTC"`, "date_in_zone": `"2006" "x" "UTC"`, "getHostByName": `"localhost"`,
		"expandenv": `"$PRERIG_TEST"`, "randInt": "1 9", "randAlpha": "3",
	}
	for name := range gotemplate.Functions(nil) {
		if !gotemplate.Refused(name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			got, err := render(t, Options{Version: "1.31", Config: config("a: b\n{{ " + name + " " + args[name] + " }}")}, nil)
			var te *gotemplate.Error
			if !errors.As(err, &te) || te.Line != 2 || te.Template != "sidecar" || !strings.Contains(err.Error(), fmt.Sprintf("function %q is refused", name)) {
				t.Errorf("got %q and the error %v, want one of line 2 of sidecar that names %s", got, err, name)
			}
		})
	}
	got, err := render(t, Options{Version: "1.31", Config: config(`{{ env "PRERIG_TEST" "safe" }}`)}, nil)
	if err != nil || strings.TrimSpace(got) != "safe" {
		t.Errorf("env read the environment of the process: %q, %v", got, err)
	}
}

func TestImages(t *testing.T) {
	tests := []struct{ version, values, annotation, mesh, want string }{
		{"1.31", `{"global": {"hub": "h", "tag": "1.31.0"}}`, "", "", "h/proxyv2:1.31.0 h/proxyv2:1.31.0"},
		{"1.31", `{"global": {"hub": "h", "tag": "1.31.0", "variant": "distroless", "proxy": {"image": "p"}, "proxy_init": {"image": "i"}}}`, "", "", "h/p:1.31.0-distroless h/i:1.31.0-distroless"},
		{"1.31", `{"global": {"hub": "h", "tag": "1.31.0-distroless"}}`, "debug", "", "h/proxyv2:1.31.0-debug h/proxyv2:1.31.0-debug"},
		{"1.31", `{"global": {"hub": "h", "tag": "1.31.0-distroless"}}`, "default", "", "h/proxyv2:1.31.0 h/proxyv2:1.31.0"},
		{"1.31", `{"global": {"hub": "h", "tag": 1.5}}`, "", "defaultConfig: {image: {imageType: debug}}", "h/proxyv2:1.5-debug h/proxyv2:1.5"},
		{"1.30", `{"global": {"hub": "h", "tag": "t"}}`, "", "defaultConfig: {image: {imageType: debug}}", "h/proxyv2:t-debug h/proxyv2:t-debug"},
		{"1.31", `{"global": {"hub": "h", "tag": "t", "variant": "distroless"}}`, "", "defaultConfig: {image: {}}", "h/proxyv2:t-distroless h/proxyv2:t-distroless"},
		{"1.30", `{"global": {"hub": "h", "tag": "t", "variant": "distroless"}}`, "", "defaultConfig: {image: {}}", "h/proxyv2:t h/proxyv2:t"},
	}
	for _, tt := range tests {
		data := &TemplateData{}
		if tt.annotation != "" {
			data.ObjectMeta.Annotations = map[string]string{"sidecar.istio.io/proxyImageType": tt.annotation}
		}
		got, err := render(t, Options{Version: tt.version, Config: config("{{ .ProxyImage }} {{ .ProxyInitImage }}"), Values: tt.values, Mesh: tt.mesh}, data)
		if err != nil || strings.TrimSpace(got) != tt.want {
			t.Errorf("%s, values %s, annotation %q: got %q, %v; want %q", tt.version, tt.values, tt.annotation, got, err, tt.want)
		}
	}
}

// TestImageVariantBefore1_22 renders the proxy's image where the chart put the variant into the mesh config alone.
func TestImageVariantBefore1_22(t *testing.T) {
	for version, want := range map[string]string{"1.21": "h/proxyv2:t", "1.22": "h/proxyv2:t-distroless"} {
		got, err := render(t, Options{Version: version, Config: config("{{ .ProxyImage }}"), Values: `{"global": {"hub": "h", "tag": "t", "variant": "distroless"}}`}, &TemplateData{})
		if err != nil || strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, %v; want %q", version, got, err, want)
		}
	}
}

func TestOTelResourceAttributes(t *testing.T) {
	mc := "extensionProviders: [{name: otel, opentelemetry: {service: otel.example.com, port: 4317, serviceAttributeEnrichment: OTEL_SEMANTIC_CONVENTIONS}}]"
	one := []corev1.Container{{Name: "web", Image: "example.com:5000/web:v7"}}
	two := []corev1.Container{{Name: "web", Image: "web:v7"}, {Name: "other", Image: "other:v8"}}
	digest := []corev1.Container{{Name: "web", Image: "example.com:5000/web@sha256:abc"}}
	tests := []struct {
		name, mesh, args string
		annotations      map[string]string
		containers       []corev1.Container
		want             string
	}{
		{"not asked for", "", "`shop` .Spec.Containers", nil, one, ""},
		{"one container", mc, "`shop` .Spec.Containers", nil, one, "service.namespace=shop,service.version=v7,service.instance.id=shop.$(POD_NAME).web"},
		{"two containers", mc, "`shop` .Spec.Containers", nil, two, "service.namespace=shop,service.instance.id=shop.$(POD_NAME).web"},
		{"the proxy counts", mc, "`shop` .Spec.Containers", nil, append(one[:1:1], corev1.Container{Name: ProxyContainer}),
			"service.namespace=shop,service.instance.id=shop.$(POD_NAME).web"},
		{"digest", mc, "`` .Spec.Containers", nil, digest, "service.version=sha256:abc,service.instance.id=.$(POD_NAME).web"},
		{"tag and digest", mc, "`shop` .Spec.Containers", nil, []corev1.Container{{Name: "web", Image: "nginx:1.21@sha256:aaaa"}},
			"service.namespace=shop,service.version=1.21@sha256:aaaa,service.instance.id=shop.$(POD_NAME).web"},
		{"no containers", mc, "`shop` .Spec.Containers", nil, nil, "service.namespace=shop"},
		{"annotations", mc, "`shop` .Spec.Containers", map[string]string{
			"resource.opentelemetry.io/service.namespace": "n", "resource.opentelemetry.io/service.version": "v", "resource.opentelemetry.io/service.instance.id": "i",
		}, one, "service.namespace=n,service.version=v,service.instance.id=i"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			data := &TemplateData{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}, Spec: corev1.PodSpec{Containers: tt.containers}}
			got, err := render(t, Options{Version: "1.31", Mesh: tt.mesh,
				Config: config("{{ otelResourceAttributes .MeshConfig .ObjectMeta.Annotations .ObjectMeta.Labels " + tt.args + " }}")}, data)
			if err != nil || strings.TrimSpace(got) != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}
