// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// appendTemplate is a small template of generation B.
const appendTemplate = `
rewriteAppHTTPProbe: {{ .Values.rewrite }}
podRedirectAnnot:
  sidecar.istio.io/interceptionMode: "REDIRECT"
  traffic.sidecar.istio.io/excludeOutboundIPRanges: ""
initContainers:
- name: {{ .Values.init }}
  image: init:1
  imagePullPolicy: IfNotPresent
  args: ["-p", 15001]
  restartPolicy: Always
containers:
- name: istio-proxy
  image: proxy:1
  args: ["proxy", "--statusPort", "15020"]
  resources: {limits: {cpu: 1500m}}
  securityContext: {runAsUser: 1337, fsGroup: 1337}
volumes:
- name: istio-envoy
  emptyDir: {medium: Memory}
imagePullSecrets:
- name: registry
{{- if .Values.search }}
dnsConfig: {searches: [{{ .Values.search }}]}
{{- end }}
`

const appendPod = `{
  "metadata": {"labels": {"app": "web"}, "annotations": {"prometheus.io/scrape": "true", "prometheus.io/port": "9090"}},
  "spec": {
    "containers": [{
      "name": "web", "image": "web:1", "ports": [{"name": "http", "containerPort": 8080}],
      "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "timeoutSeconds": 4},
      "readinessProbe": {"httpGet": {"path": "/ready", "port": 8081, "scheme": "HTTPS"}},
      "startupProbe": {"httpGet": {"path": "/start", "port": "nope"}},
      "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}]
    }],
    "initContainers": [{"name": "setup", "image": "setup:1"}],
    "imagePullSecrets": [{"name": "own"}],
    "securityContext": {"runAsUser": 1000}
  }
}`

// appendInjector makes an injector of a version with the small template.
func appendInjector(t *testing.T, minor int, mesh, values, extra string, env map[string]string) *istio.Injector {
	t.Helper()
	template := strings.TrimSpace(appendTemplate)
	if minor < 2 {
		template, _, _ = strings.Cut(template, "\n{{- if .Values.search }}")
		template = strings.NewReplacer("{{ .Values.rewrite }}", "true", "{{ .Values.init }}", "[[ `istio-init` ]]").Replace(template)
	}
	config := "policy: enabled\n" + extra + "template: |\n  " + strings.ReplaceAll(template, "\n", "\n  ") + "\n"
	if minor >= 2 && values == "" {
		values = `{"rewrite": true, "init": "istio-init"}`
	}
	in, err := istio.New(istio.Options{Version: fmt.Sprintf("1.%d", minor), Config: config, Values: values, Mesh: mesh, Revision: "canary", IstiodEnv: env})
	if err != nil {
		t.Fatalf("1.%d: %v", minor, err)
	}
	return in
}

func appendTo(t *testing.T, in *istio.Injector, pod string) map[string]any {
	t.Helper()
	res, err := Istio(in, Request{Pod: decodeObject(t, []byte(pod)), Owner: workload.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web-deployment"}})
	if err != nil {
		t.Fatal(err)
	}
	return res.Pod
}

// TestAppendByVersion has what the code of each version does beside the template.
func TestAppendByVersion(t *testing.T) {
	for minor := 0; minor <= 8; minor++ {
		t.Run(fmt.Sprintf("1.%d", minor), func(t *testing.T) {
			in := appendInjector(t, minor, "", "", "", nil)
			p, err := newPod(appendTo(t, in, appendPod))
			if err != nil {
				t.Fatal(err)
			}
			checkAppendedLabels(t, p, minor)
			checkAppendedProbes(t, p, minor)
			checkAppendedStatus(t, p, in)
			proxy := p.findProxyContainer(false)
			args := fmt.Sprint(proxy["args"])
			if got := strings.Contains(args, "--concurrency 2"); got != (minor >= 1) {
				t.Errorf("arguments %s", args)
			}
			if _, ok := podmap.Find(p.specListMaps(initContainersKey), "istio-init")["restartPolicy"]; ok {
				t.Error("istio-init has a restartPolicy, which did not exist then")
			}
			if _, ok := mapAt(proxy, "securityContext")["fsGroup"]; ok {
				t.Error("a container has an fsGroup, which does not exist")
			}
			mounts, _ := proxy["volumeMounts"].([]any)
			if got := len(mounts) == 1; got != (minor >= 1) {
				t.Errorf("mounts %v", mounts)
			}
			context := mapAt(p.spec, "securityContext")
			if got := context["fsGroup"] == int64(1337); got != (minor >= 6) || context["runAsUser"] != int64(1000) {
				t.Errorf("security context %v", context)
			}
			if got := podmap.Names(p.specListMaps("imagePullSecrets")); !cmp.Equal(got, []string{"own", "registry"}) {
				t.Errorf("pull secrets %v", got)
			}
			_, redirect := p.annotation("sidecar.istio.io/interceptionMode")
			if redirect != (minor >= 3 && minor <= 7) {
				t.Errorf("podRedirectAnnot is applied: %t", redirect)
			}
			if _, empty := p.annotation("traffic.sidecar.istio.io/excludeOutboundIPRanges"); empty {
				t.Error("an empty annotation")
			}
			port, _ := p.annotation("prometheus.io/port")
			env, _ := proxy["env"].([]any)
			settings := podmap.Find(env, "ISTIO_PROMETHEUS_ANNOTATIONS")["value"]
			if merged := minor >= 6; merged != (port == "15020") || merged != (settings == `{"scrape":"true","path":"","port":"9090"}`) {
				t.Errorf("Prometheus: port %s, settings %v", port, settings)
			}
		})
	}
}

func checkAppendedLabels(t *testing.T, p *pod, minor int) {
	t.Helper()
	want := map[string]string{"app": "web"}
	if minor >= 4 {
		want["security.istio.io/tlsMode"] = "istio"
	}
	if minor >= 5 {
		want["service.istio.io/canonical-name"], want["service.istio.io/canonical-revision"] = "web", "latest"
	}
	if minor >= 6 {
		want["istio.io/rev"] = "canary"
	}
	if diff := cmp.Diff(want, p.labels()); diff != "" {
		t.Error(diff)
	}
}

func checkAppendedProbes(t *testing.T, p *pod, minor int) {
	t.Helper()
	env, _ := p.findProxyContainer(false)["env"].([]any)
	got, _ := podmap.Find(env, probersEnv)["value"].(string)
	want := ""
	switch {
	case minor >= 5:
		want = `{"/app-health/web/livez":{"httpGet":{"path":"/live","port":8080,"scheme":"HTTP"},"timeoutSeconds":4},"/app-health/web/readyz":{"httpGet":{"path":"/ready","port":8081,"scheme":"HTTPS"},"timeoutSeconds":1}}`
	case minor >= 1:
		want = `{"/app-health/web/livez":{"path":"/live","port":8080,"scheme":"HTTP"},"/app-health/web/readyz":{"path":"/ready","port":8081,"scheme":"HTTPS"}}`
	}
	if got != want {
		t.Errorf("probers %s\nwant %s", got, want)
	}
	web := podmap.Find(p.specListMaps(containersKey), "web")
	ready := mapAt(mapAt(web, "readinessProbe"), "httpGet")
	start := mapAt(mapAt(web, "startupProbe"), "httpGet")
	if minor >= 1 && (ready["path"] != "/app-health/web/readyz" || ready["port"] != int64(15020) || ready["scheme"] != "HTTP") {
		t.Errorf("readiness %v", ready)
	}
	if rewritten := start["path"] == "/app-health/web/startupz"; rewritten != (minor >= 7) {
		t.Errorf("startup %v", start)
	}
}

func checkAppendedStatus(t *testing.T, p *pod, in *istio.Injector) {
	t.Helper()
	text, _ := p.annotation(statusAnnotation)
	hash := sha256.Sum256([]byte(in.Config().Template))
	want := fmt.Sprintf(`{"version":"%s","initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["istio-envoy"],"imagePullSecrets":["registry"]}`, hex.EncodeToString(hash[:]))
	if text != want {
		t.Errorf("status %s\nwant %s", text, want)
	}
}

// TestAppendPlaces has the order of containers.
func TestAppendPlaces(t *testing.T) {
	values := `{"rewrite": false, "init": "istio-validation", "global": {"proxy": {"holdApplicationUntilProxyStarts": true}}}`
	for minor := 2; minor <= 8; minor++ {
		p, err := newPod(appendTo(t, appendInjector(t, minor, "", values, "", nil), appendPod))
		if err != nil {
			t.Fatal(err)
		}
		containers, inits := []string{"web", "istio-proxy"}, []string{"setup", "istio-validation"}
		if minor >= 6 {
			inits = []string{"istio-validation", "setup"}
		}
		if minor >= 7 {
			containers = []string{"istio-proxy", "web"}
		}
		if got := podmap.Names(p.specListMaps(containersKey)); !cmp.Equal(got, containers) {
			t.Errorf("1.%d: containers %v", minor, got)
		}
		if got := podmap.Names(p.specListMaps(initContainersKey)); !cmp.Equal(got, inits) {
			t.Errorf("1.%d: init containers %v", minor, got)
		}
	}
	hold := `{"metadata": {"annotations": {"proxy.istio.io/config": "holdApplicationUntilProxyStarts: true"}}, "spec": {"containers": [{"name": "web"}]}}`
	for minor, want := range map[int]string{7: "web", 8: "istio-proxy"} {
		p, _ := newPod(appendTo(t, appendInjector(t, minor, "", "", "", nil), hold))
		if got := podmap.Names(p.specListMaps(containersKey))[0]; got != want {
			t.Errorf("1.%d with the pod's annotation: %s is first", minor, got)
		}
	}
}

func TestAppendFSGroup(t *testing.T) {
	sds := "sdsUdsPath: unix:/var/run/sds/uds_path\nenableSdsTokenMount: true\n"
	tests := []struct {
		minor int
		mesh  string
		env   map[string]string
		want  string
	}{
		{1, "sdsUdsPath: unix:/x", nil, `{"runAsUser":1000}`},
		{1, sds, nil, `{"fsGroup":1337}`},
		{2, sds, nil, `{"fsGroup":1337}`},
		{3, "sdsUdsPath: unix:/x", nil, `{"fsGroup":1337}`},
		{4, "sdsUdsPath: unix:/x", nil, `{"fsGroup":1337,"runAsUser":1000}`},
		{5, "", nil, `{"runAsUser":1000}`},
		{7, "sdsUdsPath: ''", nil, `{"runAsUser":1000}`},
		{8, "", nil, `{"fsGroup":1337,"runAsUser":1000}`},
		{8, "", map[string]string{"ENABLE_LEGACY_FSGROUP_INJECTION": "false"}, `{"runAsUser":1000}`},
	}
	for _, test := range tests {
		pod := appendTo(t, appendInjector(t, test.minor, test.mesh, "", "", test.env), appendPod)
		got, _ := json.Marshal(mapAt(mapAt(pod, "spec"), "securityContext"))
		if string(got) != test.want {
			t.Errorf("1.%d %q %v: have %s, want %s", test.minor, test.mesh, test.env, got, test.want)
		}
	}
}

func TestAppendAnnotations(t *testing.T) {
	bare := `{"spec": {"containers": [{"name": "web", "livenessProbe": {"httpGet": {"port": 1}}}], "dnsConfig": {"nameservers": ["1.1.1.1"]}}}`
	values := `{"rewrite": false, "init": "istio-init", "search": "\"{{ .Values.init }}.global\""}`
	p, _ := newPod(appendTo(t, appendInjector(t, 5, "", values, "injectedAnnotations: {psp: strict}\n", nil), bare))
	if got, _ := p.annotation("psp"); got != "strict" {
		t.Errorf("injectedAnnotations: %v", p.annotations())
	}
	if got := fmt.Sprint(p.spec["dnsConfig"]); got != "map[searches:[{{ .Values.init }}.global]]" {
		t.Errorf("dnsConfig %s", got)
	}
	if env, _ := p.findProxyContainer(false)["env"].([]any); len(env) != 0 {
		t.Errorf("environment %v", env)
	}
	p, _ = newPod(appendTo(t, appendInjector(t, 3, "", values, "injectedAnnotations: {psp: strict}\n", nil), bare))
	if _, ok := p.annotation("psp"); ok {
		t.Error("1.3 has injectedAnnotations")
	}
	on := strings.Replace(bare, `{"spec"`, `{"metadata": {"annotations": {"sidecar.istio.io/rewriteAppHTTPProbers": "true"}}, "spec"`, 1)
	p, _ = newPod(appendTo(t, appendInjector(t, 2, "", values, "", nil), on))
	if mapAt(mapAt(podmap.Find(p.specListMaps(containersKey), "web"), "livenessProbe"), "httpGet")["port"] != int64(15020) {
		t.Error("the pod's annotation does not turn the rewrite on")
	}
	quiet := `{"spec": {"containers": [{"name": "web"}]}}`
	for minor, want := range map[int]bool{7: true, 8: false} {
		p, _ = newPod(appendTo(t, appendInjector(t, minor, "", "", "", nil), quiet))
		env, _ := p.findProxyContainer(false)["env"].([]any)
		if got := podmap.Find(env, probersEnv) != nil; got != want {
			t.Errorf("1.%d without probes: the variable is there: %t", minor, got)
		}
	}
}

// TestAppendRender renders a template that is in the values.
func TestAppendRender(t *testing.T) {
	config := "policy: enabled\ntemplate: |\n  containers:\n  - name: istio-proxy\n    image: a\n  dnsConfig:\n    searches:\n    {{- range .Values.search }}\n    - {{ render . }}\n    {{- end }}\n"
	in, err := istio.New(istio.Options{Version: "1.5", Config: config, Values: `{"search": ["global", "{{ valueOrDefault .DeploymentMeta.Namespace \"default\" }}.global"]}`})
	if err != nil {
		t.Fatal(err)
	}
	pod := appendTo(t, in, `{"spec": {"containers": [{"name": "web"}]}}`)
	if got := fmt.Sprint(mapAt(mapAt(pod, "spec"), "dnsConfig")); got != "map[searches:[global default.global]]" {
		t.Errorf("have %s", got)
	}
	in, err = istio.New(istio.Options{Version: "1.5", Config: config, Values: `{"search": ["{{ nope }}"]}`})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Istio(in, Request{Pod: map[string]any{"spec": map[string]any{}}})
	if err == nil || !strings.Contains(err.Error(), `function "nope"`) {
		t.Errorf("have %v", err)
	}
	if _, err = istio.New(istio.Options{Version: "1.14", Config: strings.Replace(config, "template: |", "templates:\n  sidecar: |", 1), Values: "{}"}); err == nil {
		t.Error("1.14 has render")
	}
}

func TestAppendErrors(t *testing.T) {
	tests := map[string]struct{ template, want string }{
		"not YAML":       {"a: [", "what it prints is not an injection"},
		"no name":        {"containers: [{image: a}]", "container 1 of what it prints has no name"},
		"wrong type":     {"containers: {a: b}", "what it prints is not an injection"},
		"template fails": {"{{ .Values.a.b.c }}", "rendering template"},
	}
	for name, test := range tests {
		in, err := istio.New(istio.Options{Version: "1.8", Config: "policy: enabled\ntemplate: |\n  " + test.template + "\n", Values: `{"a": 1}`})
		if err != nil {
			t.Fatal(err)
		}
		_, err = Istio(in, Request{Pod: map[string]any{"spec": map[string]any{}}})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: have %v", name, err)
		}
	}
}

// TestInjectedAnnotationsStayBehindTheMetrics: up to 1.8, createPatch writes the metrics' annotations over the injected ones.
func TestInjectedAnnotationsStayBehindTheMetrics(t *testing.T) {
	for minor, want := range map[int]string{5: "9999", 6: "15020", 7: "15020", 8: "15020"} {
		in := appendInjector(t, minor, "", "", "injectedAnnotations: {prometheus.io/port: \"9999\", psp: strict}\n", nil)
		p, err := newPod(appendTo(t, in, appendPod))
		if err != nil {
			t.Fatal(err)
		}
		port, _ := p.annotation("prometheus.io/port")
		if psp, _ := p.annotation("psp"); port != want || psp != "strict" {
			t.Errorf("1.%d: annotations %v", minor, p.annotations())
		}
	}
}
