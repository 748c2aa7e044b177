// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/podmap"
)

// printingTemplate prints what it sees of labels, annotations and the node selector.
const printingTemplate = `metadata:
  annotations: {seen: {{ printf "%v %v %v %v" .ObjectMeta.Labels .ObjectMeta.Annotations .Spec.NodeSelector (isset .ObjectMeta.Annotations "note") | quote }}}
spec:
  containers:
  - {name: istio-proxy, image: proxy, env: [{name: ENVOY_SECURE_MERGED_METRICS_PORT, value: "15091"}]}
`

// TestNullIsTheEmptyString injects pods with labels and annotations that have no value, as charts print them. The API server
// reads them as empty, so the result means the same as with the empty string, and what injection leaves alone stays as it is written.
func TestNullIsTheEmptyString(t *testing.T) {
	keys := map[string][]string{
		"labels": {"app", "version", "istio.io/rev", "topology.istio.io/network", "security.istio.io/tlsMode", "service.istio.io/canonical-name"},
		"annotations": {"note", "sidecar.istio.io/status", "sidecar.istio.io/proxyCPU", "sidecar.istio.io/nativeSidecar", "proxy.istio.io/config",
			"inject.istio.io/templates", "prometheus.io/port", "prometheus.io/scrape", "prometheus.istio.io/merge-metrics",
			"prometheus.istio.io/scrape-targets", "prometheus.istio.io/secure-port", "status.sidecar.istio.io/port", "proxy.istio.io/overrides",
			"sidecar.istio.io/rewriteAppHTTPProbers", "sidecar.istio.io/interceptionMode"},
	}
	for _, version := range []string{"1.31", "1.9", "1.5"} {
		for _, admission := range []istio.Admission{istio.AdmissionDefaulted, istio.AdmissionRaw} {
			in := printingInjector(t, version, admission)
			for kind, names := range keys {
				for _, name := range names {
					t.Run(fmt.Sprint(version, " ", admission, " ", name), func(t *testing.T) {
						sameAsEmpty(t, in, kind, name)
					})
				}
			}
		}
	}
}

func printingInjector(t *testing.T, version string, admission istio.Admission) *istio.Injector {
	t.Helper()
	o := istio.Options{Version: version, Config: sidecarConfig(printingTemplate), Values: "global: {network: mesh}", Native: istio.NativeDisabled, Admission: admission}
	if version == "1.5" {
		o.Config = "policy: enabled\ntemplate: |\n  containers:\n  - {name: istio-proxy, image: proxy, args: [{{ annotation .ObjectMeta `note` `x` | toJSON }}, {{ valueOrDefault .ObjectMeta.Name `x` }}]}\n"
	}
	return newInjector(t, o)
}

// sameAsEmpty injects a pod whose label or annotation is null, and one that has the empty string there.
func sameAsEmpty(t *testing.T, in *istio.Injector, kind, name string) {
	t.Helper()
	inject := func(value any) (map[string]any, string) {
		pod := podOf(t, `{spec: {nodeSelector: {disk: }, containers: [{name: web, image: web, livenessProbe: {httpGet: {port: 80}}}]}}`)
		pod["metadata"] = map[string]any{kind: map[string]any{name: value, "own": "x"}}
		res, err := Istio(in, Request{Pod: pod, Namespace: Namespace{Name: "shop"}})
		return res.Pod, fmt.Sprint(err)
	}
	got, err := inject(nil)
	want, wantErr := inject("")
	if err != wantErr {
		t.Fatalf("with null the error is %q, with the empty string %q", err, wantErr)
	}
	if want == nil {
		return
	}
	wantPod, gotPod := asPod(t, want), asPod(t, got)
	if diff := cmp.Diff(wantPod, gotPod); diff != "" {
		t.Errorf("with null it is another pod than with the empty string:\n%s", diff)
	}
	meta, _ := got["metadata"].(map[string]any)
	of, _ := meta[kind].(map[string]any)
	if v, there := of[name]; there && v == "" {
		t.Errorf("the null of %s is written as the empty string", name)
	}
	spec, _ := got["spec"].(map[string]any)
	if selector, _ := spec["nodeSelector"].(map[string]any); !podmap.Same(selector, map[string]any{"disk": nil}) {
		t.Errorf("the node selector is %v", selector)
	}
}

// TestRemoveKeepsNulls takes injections out of pods that have labels and annotations without a value.
func TestRemoveKeepsNulls(t *testing.T) {
	in := smallInjector(t, "1.31", smallTemplate)
	for _, text := range []string{
		`{metadata: {labels: {app: }, annotations: {note: }}, spec: {containers: [{name: web, image: web}]}}`,
		`{metadata: {annotations: {sidecar.istio.io/status: }}, spec: {containers: [{name: web, image: web}]}}`,
	} {
		original := podOf(t, text)
		for name, pod := range map[string]map[string]any{"not injected": original, "injected": injectedPod(t, in, original)} {
			removed, err := Remove(RemoveRequest{Pod: pod})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			want := podmap.CopyMap(original)
			meta, _ := want["metadata"].(map[string]any)
			annotations, _ := meta["annotations"].(map[string]any)
			if removed.Injected {
				delete(annotations, statusAnnotation) // the injection has replaced it
			}
			if len(annotations) == 0 {
				delete(meta, "annotations")
			}
			if diff := cmp.Diff(want, removed.Pod); diff != "" {
				t.Errorf("%s, removing gives another pod:\n%s", name, diff)
			}
		}
	}
}

func injectedPod(t *testing.T, in *istio.Injector, pod map[string]any) map[string]any {
	t.Helper()
	res, err := Istio(in, Request{Pod: pod})
	if err != nil {
		t.Fatal(err)
	}
	return res.Pod
}
