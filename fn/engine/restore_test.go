// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// TestStatusThatNoInjectionWrote injects pods with an own, privileged istio-proxy beside a status annotation that says nothing of
// it. The webhook keeps such a proxy and merges the template under it (fn/internal/oracle compares with the real one). Here
// that holds for every further injection, too, and removing gives the pod back.
func TestStatusThatNoInjectionWrote(t *testing.T) {
	for name, status := range map[string]string{
		"no JSON":           "not JSON",
		"of other times":    `{"version":"abc","initContainers":["init0"],"containers":["side1"]}`,
		"lists nothing":     `{}`,
		"from another pod":  `{"initContainers":["istio-init"],"containers":["istio-proxy"],"volumes":["istio-envoy"],"imagePullSecrets":null,"revision":"default"}`,
		"lists the own one": `{"initContainers":["istio-proxy"],"containers":["istio-proxy"]}`,
		"in other letters":  `{"Containers":["istio-proxy"],"InitContainers":["init0"]}`,
	} {
		for _, kind := range []string{"Deployment", "Pod"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				doc := workloadOf(kind, map[string]any{
					"metadata": map[string]any{"labels": map[string]any{"app": "web"}, "annotations": map[string]any{"sidecar.istio.io/status": status}},
					"spec": map[string]any{
						"initContainers": []any{map[string]any{"name": "init0", "image": "init:1"}},
						"containers": []any{
							map[string]any{"name": "side1", "image": "web:1", "ports": []any{map[string]any{"containerPort": int64(80)}}},
							map[string]any{"name": "istio-proxy", "image": "mine:1",
								// The API server refuses a privileged container that has the template's allowPrivilegeEscalation: false.
								"securityContext": map[string]any{"allowPrivilegeEscalation": true, "privileged": true},
								"env":             []any{map[string]any{"name": "OWN", "value": "x"}}},
						},
					},
				})
				p := builtIn(v1alpha1.ModeInject)
				once := runForeign(t, p, doc, "delete the annotation")
				wanted := []string{"name: OWN", "name: init0", "name: side1", "PILOT_CERT_PROVIDER"}
				if name != "lists the own one" { // there the webhook lets the template win
					wanted = append(wanted, "privileged: true")
				}
				for _, want := range wanted {
					if !strings.Contains(string(once.Raw()), want) {
						t.Errorf("the injected pod is without %q:\n%s", want, once.Raw())
					}
				}
				if again := runForeign(t, p, once, ""); !bytes.Equal(again.Raw(), once.Raw()) {
					t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once.Raw()), string(again.Raw())))
				}
				if checks, _ := runAll(t, p, v1alpha1.ModeCheck, []*manifest.Document{once}); len(checks[0].errors) > 0 {
					t.Errorf("checking: %v", checks[0].errors)
				}
				_, back := runAll(t, p, v1alpha1.ModeRemove, []*manifest.Document{once})
				if !sameObject(t, back[0], doc) {
					t.Errorf("removing gives something else:\n%s", cmp.Diff(string(doc.Raw()), string(back[0].Raw())))
				}
			})
		}
	}
}

// runForeign injects into a document, and checks which warning there is of the status annotation.
func runForeign(t *testing.T, p *v1alpha1.InjectionPolicy, doc *manifest.Document, warning string) *manifest.Document {
	t.Helper()
	results, docs := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
	if len(results[0].errors) > 0 {
		t.Fatal(results[0].errors)
	}
	told := slices.ContainsFunc(results[0].warnings, func(w string) bool { return strings.Contains(w, "[sidecar.istio.io/status]") })
	if told != (warning != "") || told && !strings.Contains(strings.Join(results[0].warnings, "\n"), warning) {
		t.Errorf("the warnings are %v, want one with %q", results[0].warnings, warning)
	}
	return docs[0]
}

// TestPortsOfProbes removes injections from pods whose probes give the number of a port that has a name. A Deployment's record
// tells it, and of a bare Pod the number is taken.
func TestPortsOfProbes(t *testing.T) {
	for _, kind := range []string{"Deployment", "Pod"} {
		doc := workloadOf(kind, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"app": "web"}},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1",
				"ports":         []any{map[string]any{"name": "http", "containerPort": int64(80)}},
				"livenessProbe": map[string]any{"httpGet": map[string]any{"path": "/live", "port": int64(80)}}}}},
		})
		p := builtIn(v1alpha1.ModeInject)
		_, injected := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
		results, back := runAll(t, p, v1alpha1.ModeRemove, injected)
		if diff := cmp.Diff(string(doc.Raw()), string(back[0].Raw())); diff != "" {
			t.Errorf("%s: removing gives something else:\n%s", kind, diff)
		}
		if warned := strings.Contains(strings.Join(results[0].warnings, "\n"), "livenessProbe.httpGet.port"); warned != (kind == "Pod") {
			t.Errorf("%s: the warnings are %v", kind, results[0].warnings)
		}
	}
}

// TestOwnProxyWithoutAnImage has an istio-proxy that leaves its image to the template, with auto or with none at all. What the
// injection notes of both differs in the pull policy that the API server gives them.
func TestOwnProxyWithoutAnImage(t *testing.T) {
	for name, proxy := range map[string]map[string]any{
		"none":            {"name": "istio-proxy"},
		"auto":            {"name": "istio-proxy", "image": "auto"},
		"auto and policy": {"name": "istio-proxy", "image": "auto", "imagePullPolicy": "IfNotPresent"},
		"its own":         {"name": "istio-proxy", "image": "mine:1"},
	} {
		for _, kind := range []string{"Deployment", "Pod"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				doc := workloadOf(kind, map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}, proxy}}})
				p := builtIn(v1alpha1.ModeInject)
				_, once := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
				if _, again := runAll(t, p, v1alpha1.ModeInject, once); !bytes.Equal(again[0].Raw(), once[0].Raw()) {
					t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once[0].Raw()), string(again[0].Raw())))
				}
				if _, back := runAll(t, p, v1alpha1.ModeRemove, once); !sameObject(t, back[0], doc) {
					t.Errorf("removing gives something else:\n%s", cmp.Diff(string(doc.Raw()), string(back[0].Raw())))
				}
			})
		}
	}
}

// TestNothingOfABarePodIsLost removes injections from Pods, which have no record: a field of their own istio-proxy that is null
// is noted where the injection keeps the container, and a probe without a path stays without.
func TestNothingOfABarePodIsLost(t *testing.T) {
	for name, containers := range map[string][]any{
		"null":        {map[string]any{"name": "web", "image": "web:1"}, map[string]any{"args": nil, "name": "istio-proxy"}},
		"nulls alone": {map[string]any{"args": nil, "command": nil, "name": "istio-proxy", "ports": nil}},
		"path of a probe": {map[string]any{"name": "web", "image": "web:1",
			"livenessProbe": map[string]any{"httpGet": map[string]any{"port": int64(80)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := map[string]any{"spec": map[string]any{"containers": containers}}
			if name == "nulls alone" { // a native proxy would leave the Pod without containers, which the API server refuses
				pod["metadata"] = map[string]any{"annotations": map[string]any{"sidecar.istio.io/nativeSidecar": "false"}}
			}
			doc := workloadOf("Pod", pod)
			p := builtIn(v1alpha1.ModeInject)
			_, once := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
			if bytes.Equal(once[0].Raw(), doc.Raw()) {
				t.Fatal("it is not injected")
			}
			if _, again := runAll(t, p, v1alpha1.ModeInject, once); !bytes.Equal(again[0].Raw(), once[0].Raw()) {
				t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once[0].Raw()), string(again[0].Raw())))
			}
			if _, back := runAll(t, p, v1alpha1.ModeRemove, once); !sameObject(t, back[0], doc) {
				t.Errorf("removing gives something else:\n%s", cmp.Diff(string(doc.Raw()), string(back[0].Raw())))
			}
		})
	}
}

// TestOwnFieldsOfABarePodBeforeMerging: Istio 1.8 would set the label istio.io/rev, and this Pod chose its own. With it in place the
// second injection is the first, if what the first did to the Prometheus annotations is not taken for the Pod's own too. Where
// nothing is merged, they are the Pod's own.
func TestOwnFieldsOfABarePodBeforeMerging(t *testing.T) {
	testOwnFields(t, "true", map[string]any{"labels": map[string]any{"app": "web", "istio.io/rev": "own"}})
	testOwnFields(t, "false", map[string]any{"labels": map[string]any{"app": "web"}, "annotations": map[string]any{
		"prometheus.io/path": "/stats/prometheus", "prometheus.io/port": "15020", "prometheus.io/scrape": "true"}})
}

// testOwnFields injects twice into a Pod of some metadata with Istio 1.8, which merges metrics or does not.
func testOwnFields(t *testing.T, merge string, metadata map[string]any) {
	t.Helper()
	p, err := v1alpha1.Parse([]byte(`apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata: {name: old}
spec:
  istio:
    version: 1.8.6
    injector:
      config: |
        policy: enabled
        alwaysInjectSelector: []
        neverInjectSelector: []
        template: |
          containers:
          - name: istio-proxy
            image: example.com/proxyv2:1.8.6
      values: "{}"
    meshConfig: |
      enablePrometheusMerge: ` + merge + `
  unknownNamespace: Inject
`))
	if err != nil {
		t.Fatal(err)
	}
	doc := workloadOf("Pod", map[string]any{
		"metadata": metadata,
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "web", "image": "web:1"}}},
	})
	results, once := runAll(t, p, v1alpha1.ModeInject, []*manifest.Document{doc})
	if !strings.Contains(string(once[0].Raw()), "sidecar.istio.io/status") {
		t.Fatalf("it is not injected: %v\n%s", results, once[0].Raw())
	}
	if _, again := runAll(t, p, v1alpha1.ModeInject, once); !bytes.Equal(again[0].Raw(), once[0].Raw()) {
		t.Errorf("injecting twice is not injecting once:\n%s", cmp.Diff(string(once[0].Raw()), string(again[0].Raw())))
	}
}
