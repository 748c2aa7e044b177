// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

const risky = `
apiVersion: apps/v1
kind: Deployment
metadata:
  name: shop
  namespace: web
spec:
  template:
    metadata:
      annotations:
        sidecar.istio.io/status: '{"initContainers":["istio-init"],"containers":["istio-proxy"]}'
    spec:
      initContainers:
      - name: istio-init
        image: docker.io/istio/proxyv2:1.31.0
        args: [istio-iptables, -u, "1337", -m, REDIRECT, -i, "*", -b, "*"]
      containers:
      - name: app
        image: registry.example/app:1
      - name: istio-proxy
        image: docker.io/istio/proxyv2:1.31.0
        args: [proxy, sidecar]
        resources:
          requests: {cpu: 100m, memory: 128Mi}
`

func codes(rs result.Results) string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Tags[result.TagCode]+"="+string(r.Severity))
	}
	return strings.Join(out, " ")
}

// found returns what Check finds and is not suppressed.
func found(in lint.Input, sev lint.Severities) result.Results {
	rs, _ := lint.Check(in, sev)
	return rs
}

func input(t testing.TB, text string) lint.Input {
	t.Helper()
	in, ok := inputOf(t, nil, decode(t, []byte(text))[0], lint.Facts{})
	if !ok {
		t.Fatal("no pod template")
	}
	return in
}

func TestSeverities(t *testing.T) {
	in := input(t, risky)
	for _, c := range []struct {
		name  string
		rules map[string]string
		want  string
	}{
		{"defaults", nil, "PR107=info PR201=warning"},
		{"raised and off", map[string]string{"PR107": "Off", "PR201": "Error"}, "PR201=error"},
		{"case does not matter", map[string]string{"PR107": "off", "PR201": "info"}, "PR201=info"},
	} {
		sev, err := lint.NewSeverities(c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if got := codes(found(in, sev)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := found(in, lint.Off()); got != nil {
		t.Errorf("switched off: %v", got)
	}
	for rules, want := range map[string]string{"PR999": `there is no rule "PR999", did you mean PR909?`, "PR201": `rule PR201: "Fatal" is not Error`} {
		if _, err := lint.NewSeverities(map[string]string{rules: "Fatal"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", rules, err, want)
		}
	}
}

func TestIgnore(t *testing.T) {
	for _, c := range []struct{ name, annotation, on, want string }{
		{"in the template", `prerig.dev/lint-ignore: "PR107, PR999"`, "        sidecar", "PR201=warning"},
		{"on the workload", `prerig.dev/lint-ignore: PR201`, "", "PR107=info"},
		{"everything", `prerig.dev/lint-ignore: "*"`, "", ""},
		{"an analyzer that no finding answers", `galley.istio.io/analyze-suppress: "*"`, "", "PR107=info PR201=warning"},
	} {
		text := strings.Replace(risky, "  namespace: web\n", "  namespace: web\n  annotations:\n    "+c.annotation+"\n", 1)
		if c.on != "" {
			text = strings.Replace(risky, c.on, "        "+c.annotation+"\n"+c.on, 1)
		}
		if got := codes(found(input(t, text), lint.Severities{})); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	typo := strings.Replace(risky, "        sidecar", "        sidecar.istio.io/proxyCpu: 1\n        galley.istio.io/analyze-suppress: IST0108\n        sidecar", 1)
	if got := codes(found(input(t, typo), lint.Severities{})); strings.Contains(got, "PR603") {
		t.Errorf("suppressed for istioctl, and reported: %s", got)
	}
}

func TestResult(t *testing.T) {
	in := input(t, risky)
	in.File = &result.File{Path: "shop.yaml", Index: 2, Line: 7}
	got := found(in, lint.Severities{})[1]
	want := result.Result{
		Message:     got.Message,
		Severity:    result.Warning,
		ResourceRef: &result.ResourceRef{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop", Namespace: "web"},
		Field:       &result.Field{Path: "spec.template.spec.containers[1]"},
		File:        in.File,
		Tags:        map[string]string{result.TagCode: "PR201", lint.TagContainer: "istio-proxy", lint.TagScope: lint.ScopeMesh},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestCheckChangesNothing and gives the same from many goroutines at once.
func TestCheckChangesNothing(t *testing.T) {
	in := input(t, risky)
	in.NamespaceKnown, in.NamespaceLabels = true, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	before, err := json.Marshal(in.After)
	if err != nil {
		t.Fatal(err)
	}
	want := found(in, lint.Severities{})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if diff := cmp.Diff(want, found(in, lint.Severities{})); diff != "" {
				t.Errorf("a second run differs:\n%s", diff)
			}
		})
	}
	wg.Wait()
	after, err := json.Marshal(in.After)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the pod was changed")
	}
}

// TestNotInjected finds nothing of the proxy in a pod that has none, and nothing in what is no pod.
func TestNotInjected(t *testing.T) {
	plain := strings.Split(risky, "    metadata:\n")[0] + "    spec:\n      containers:\n      - {name: app, image: registry.example/app:1, lifecycle: {preStop: {sleep: {seconds: 20}}}}\n"
	if got := found(input(t, plain), lint.Severities{}); len(got) > 0 {
		t.Errorf("a pod without sidecars: %v", got)
	}
	if got := found(lint.Input{After: map[string]any{"spec": "text"}}, lint.Severities{}); got != nil {
		t.Errorf("no pod: %v", got)
	}
	if _, ok := lint.Summarize(lint.Input{}); ok {
		t.Error("no pod has a summary")
	}
}

// FuzzCheck looks for a pod that makes a rule panic.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"metadata":{"annotations":{"sidecar.istio.io/status":"{}"}},"spec":{"containers":[{"name":"istio-proxy","args":["proxy"]}]}}`), "baseline")
	f.Add([]byte(`{"spec":{"initContainers":[{"name":"istio-init","args":[1]},null,{}],"containers":{}}}`), "")
	f.Add([]byte(`{"metadata":{"annotations":{"sidecar.istio.io/status":"{\"containers\":[\"istio-proxy\"]}","proxy.istio.io/overrides":"{\"containers\":[{}]}"}},"spec":{"containers":[{"name":"istio-proxy","env":[{"name":"PROXY_CONFIG","value":"{\"terminationDrainDuration\":\"1h\"}"}],"lifecycle":{"preStop":{"exec":{"command":["sh","-c","sleep 9"]}}}}]}}`), "restricted")
	f.Fuzz(func(t *testing.T, data []byte, level string) {
		var pod map[string]any
		if json.Unmarshal(data, &pod) != nil {
			return
		}
		in := lint.Input{
			Kind: "Pod", After: pod, Before: pod, NamespaceKnown: true,
			NamespaceLabels: map[string]string{"pod-security.kubernetes.io/enforce": level},
			Facts:           lint.Facts{IstioVersion: "1.31", KubernetesVersion: "1.28", CNI: lint.Yes},
		}
		found(in, lint.Severities{})
		in.Before = nil
		found(in, lint.Severities{})
		lint.Summarize(in)
	})
}

func BenchmarkCheck(b *testing.B) {
	in := input(b, risky)
	for _, known := range []bool{false, true} {
		name := "pod"
		if known {
			name = "pod in a restricted namespace"
			in.NamespaceKnown, in.NamespaceLabels = true, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
		}
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				found(in, lint.Severities{})
			}
		})
	}
}

// TestPathIn finds a container again where a file has it.
func TestPathIn(t *testing.T) {
	pod := map[string]any{"spec": map[string]any{
		"initContainers": []any{map[string]any{"name": "migrate"}},
		"containers":     []any{map[string]any{"name": "app"}, "broken", map[string]any{"name": "istio-proxy"}},
	}}
	for _, c := range []struct{ template, path, container, want string }{
		{"spec.template", "spec.template.spec.containers[1].image", "app", "spec.template.spec.containers[0].image"},
		{"", "spec.initContainers[1].resources", "istio-proxy", "spec.containers[2].resources"},
		{"", "spec.initContainers[3]", "migrate", "spec.initContainers[0]"},
		{"spec.template", "spec.template.spec.containers[0].image", "injected", "spec.template.spec"},
		{"spec.template", "spec.template.spec.terminationGracePeriodSeconds", "istio-proxy", "spec.template.spec.terminationGracePeriodSeconds"},
		{"spec.template", `metadata.annotations["a.b/c"]`, "", `metadata.annotations["a.b/c"]`},
	} {
		r := result.Result{Field: &result.Field{Path: c.path}, Tags: map[string]string{lint.TagContainer: c.container}}
		if got := lint.PathIn(pod, c.template, r); got != c.want {
			t.Errorf("%s of %s: %s, want %s", c.path, c.container, got, c.want)
		}
	}
	if got := lint.PathIn(pod, "spec.template", result.Result{}); got != "spec.template" {
		t.Errorf("no field: %s", got)
	}
}

// TestKubeInjected finds the proxy where istioctl kube-inject left no status on the pod, as in a CronJob, and takes no
// override of a user for one.
func TestKubeInjected(t *testing.T) {
	text := strings.Replace(risky, "        sidecar.istio.io/status: '{\"initContainers\":[\"istio-init\"],\"containers\":[\"istio-proxy\"]}'\n", "        a: b\n", 1)
	if got := codes(found(input(t, text), lint.Severities{})); got != "PR107=info PR201=warning" {
		t.Errorf("without a status: %q", got)
	}
	override := strings.Replace(strings.Replace(text, "        args: [proxy, sidecar]\n", "", 1), "image: docker.io/istio/proxyv2:1.31.0\n        resources", "image: auto\n        resources", 1)
	if got := codes(found(input(t, override), lint.Severities{})); got != "PR601=warning" {
		t.Errorf("an override: %q", got)
	}
}
