// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

var update = flag.Bool("update", false, "write the expected outputs")

// mergeCase is a file of testdata/merge: what is injected with config.yaml, and how.
type mergeCase struct {
	Version       string            `json:"version"`
	Config        map[string]any    `json:"config"`
	Values        map[string]any    `json:"values"`
	Mesh          string            `json:"mesh"`
	Revision      string            `json:"revision"`
	Native        istio.Native      `json:"native"`
	Kubernetes    string            `json:"kubernetesVersion"`
	Admission     istio.Admission   `json:"admission"`
	Env           map[string]string `json:"env"`
	Cluster       string            `json:"cluster"`
	Network       string            `json:"network"`
	ProxyEnv      map[string]string `json:"proxyEnv"`
	ProxyConfigs  []map[string]any  `json:"proxyConfigs"`
	Namespace     string            `json:"namespace"`
	NSAnnotations map[string]string `json:"namespaceAnnotations"`
}

// loadMerge reads a case and its pod.
func loadMerge(t testing.TB, dir string) (*istio.Injector, Request) {
	t.Helper()
	return loadMergeSeen(t, dir, "", "")
}

// loadMergeSeen reads a case whose pod is seen in a way by a version of Kubernetes, or as the case says.
func loadMergeSeen(t testing.TB, dir string, admission istio.Admission, kubernetes string) (*istio.Injector, Request) {
	t.Helper()
	var c mergeCase
	read(t, filepath.Join(dir, "case.yaml"), &c)
	if admission != "" {
		c.Admission, c.Kubernetes = admission, kubernetes
	}
	var config map[string]any
	read(t, filepath.Join("testdata", "merge", "config.yaml"), &config)
	for k, v := range c.Config {
		config[k] = v
	}
	if c.Native == "" {
		c.Native = istio.NativeDisabled
	}
	in, err := istio.New(istio.Options{
		Version: c.Version, Config: text(t, config), Values: text(t, c.Values), Mesh: c.Mesh, Revision: c.Revision, Native: c.Native,
		KubernetesVersion: c.Kubernetes, Admission: c.Admission,
		IstiodEnv: c.Env, Cluster: c.Cluster, Network: c.Network, ProxyEnv: c.ProxyEnv, ProxyConfigs: c.ProxyConfigs,
	})
	if err != nil {
		t.Fatal(err)
	}
	return in, Request{
		Pod:       readPod(t, filepath.Join(dir, "pod.yaml")),
		Owner:     workload.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", Namespace: c.Namespace},
		Namespace: Namespace{Name: c.Namespace, Annotations: c.NSAnnotations, Known: true},
	}
}

func read(t testing.TB, path string, into any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(data, into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readPod(t testing.TB, path string) map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := manifest.Decode(data)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return v.(map[string]any)
}

func text(t testing.TB, v any) string {
	t.Helper()
	out, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// TestMerge injects every case of testdata/merge and compares with its want.yaml; -update writes it.
func TestMerge(t *testing.T) {
	cases, err := filepath.Glob(filepath.Join("testdata", "merge", "*", "case.yaml"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	known := map[string]bool{"case.yaml": true, "pod.yaml": true, "want.yaml": true}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range files {
				if !known[f.Name()] {
					t.Errorf("%s belongs to no test", filepath.Join(dir, f.Name()))
				}
			}
			in, req := loadMerge(t, dir)
			before := podmap.CopyMap(req.Pod)
			got, err := Istio(in, req)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(before, req.Pod); d != "" {
				t.Errorf("the request has been changed:\n%s", d)
			}
			out := text(t, map[string]any{"pod": got.Pod, "warnings": got.Warnings})
			want := filepath.Join(dir, "want.yaml")
			if *update {
				if err := os.WriteFile(want, []byte(out), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(expected), out); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
			again, err := Istio(in, Request{Pod: got.Pod, Owner: req.Owner, Namespace: req.Namespace})
			if err != nil {
				t.Fatalf("injecting again: %v", err)
			}
			if d := cmp.Diff(got.Pod, again.Pod); d != "" {
				t.Errorf("injecting again changes it (-once +twice):\n%s", d)
			}
			ten(t, in, req, got.Pod)
			if found := leftovers(got.Pod, req.Pod, ""); found != "" {
				t.Errorf("the injection leaves %s, which means nothing", found)
			}
		})
	}
}

// ten injects ten times at once and wants the same every time.
func ten(t *testing.T, in *istio.Injector, req Request, want map[string]any) {
	t.Helper()
	results := make(chan map[string]any)
	for range 10 {
		go func() {
			got, err := Istio(in, req)
			if err != nil {
				got.Pod = map[string]any{"error": err.Error()}
			}
			results <- got.Pod
		}()
	}
	for range 10 {
		if got := <-results; !reflect.DeepEqual(got, want) {
			t.Errorf("another run gives another pod:\n%s", cmp.Diff(want, got))
		}
	}
}

// leftovers finds a null or an empty list, or resources: {}, that is in the injected pod and was not in the pod before.
func leftovers(got, before any, path string) string {
	switch got := got.(type) {
	case nil:
		if before != nil {
			return path
		}
	case map[string]any:
		was, _ := before.(map[string]any)
		for _, k := range podmap.SortedKeys(got) {
			old, had := was[k]
			if !had && (got[k] == nil || podmap.IsZero(got[k]) && (k == "resources" || k == "status" || k == "creationTimestamp")) {
				return path + "." + k
			}
			if list, ok := got[k].([]any); ok && len(list) == 0 && !had {
				return path + "." + k
			}
			if found := leftovers(got[k], old, path+"."+k); found != "" {
				return found
			}
		}
	case []any:
		for i, e := range got {
			var was any
			if list, ok := before.([]any); ok && i < len(list) {
				was = list[i]
			}
			if m, ok := e.(map[string]any); ok {
				if list, ok := before.([]any); ok {
					name, _ := m["name"].(string)
					if own := podmap.Find(list, name); own != nil {
						was = own
					}
				}
			}
			if found := leftovers(e, was, path); found != "" {
				return found
			}
		}
	}
	return ""
}

// TestFieldsOfNoKubernetes are dropped from what a template prints: istiod reads the pod into its types. The templates of 1.9
// to 1.15 have an fsGroup at their containers. What a newer Istio's template has may be newer than our types, and stays.
func TestFieldsOfNoKubernetes(t *testing.T) {
	for version, want := range map[string]bool{"1.15.7": false, "1.31.0": false, "1.99.0": true} {
		in := newInjector(t, istio.Options{Version: version, Values: "{}", Config: `policy: enabled
defaultTemplates: [sidecar]
templates:
  sidecar: |
    spec:
      containers:
      - {name: istio-proxy, image: proxyv2, securityContext: {fsGroup: 1337, runAsUser: 1337}}
`})
		res, err := Istio(in, Request{Pod: podOf(t, `{metadata: {name: web}, spec: {containers: [{name: web, mine: 1, securityContext: {fsGroup: 1}}]}}`)})
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPod(res.Pod)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := securityContextField(p.findProxyContainer(true), "fsGroup"); has != want {
			t.Errorf("%s: the proxy's fsGroup is there: %t, want %t", version, has, want)
		}
		web := podmap.Find(p.specListMaps(containersKey), "web")
		if _, has := securityContextField(web, "fsGroup"); !has || web["mine"] == nil {
			t.Errorf("%s: the application's own fields are gone: %v", version, web)
		}
	}
}

// TestNamespaceOfTheWorkload has templates print the pod's namespace: the one that the pod will live in, which its template's own
// metadata does not change.
func TestNamespaceOfTheWorkload(t *testing.T) {
	in := smallInjector(t, "1.31", "metadata: {annotations: {in: {{ .ObjectMeta.Namespace | quote }}}}\nspec: {}\n")
	const written = `{metadata: {namespace: elsewhere}, spec: {containers: [{name: web, image: web}]}}`
	for name, tc := range map[string]struct {
		req  Request
		want string
	}{
		"of the request": {Request{Namespace: Namespace{Name: "shop"}, Owner: workload.Owner{Namespace: "owners"}}, "shop"},
		"of the owner":   {Request{Owner: workload.Owner{Namespace: "owners"}}, "owners"},
		"nowhere":        {Request{}, "elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.req.Pod = podOf(t, written)
			res, err := Istio(in, tc.req)
			if err != nil {
				t.Fatal(err)
			}
			pod := asPod(t, res.Pod)
			if got := pod.Annotations["in"]; got != tc.want || pod.Namespace != "elsewhere" {
				t.Errorf("templates see the namespace %q, want %q; %q is written", got, tc.want, pod.Namespace)
			}
		})
	}
}

// TestSecurePortWithoutAnnotations injects a pod that has no annotation at all, with a proxy that serves metrics with mutual TLS.
func TestSecurePortWithoutAnnotations(t *testing.T) {
	in := newInjector(t, istio.Options{Version: "1.31", Values: "{}", Native: istio.NativeDisabled, Mesh: "enablePrometheusMerge: false",
		Config: sidecarConfig("spec:\n  containers:\n  - {name: istio-proxy, image: proxy, env: [{name: ENVOY_SECURE_MERGED_METRICS_PORT, value: '15092'}]}\n")})
	res, err := Istio(in, Request{Pod: podOf(t, `{spec: {containers: [{name: web, image: web}]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if got := asPod(t, res.Pod).Annotations[securePortAnnotation]; got != "15092" {
		t.Errorf("the annotation %s is %q", securePortAnnotation, got)
	}
}
