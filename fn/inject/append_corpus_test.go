// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/istio"
	"github.com/prerig/prerig/fn/istio/release"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/internal/corpustest"
)

// corpusCase is one line of a corpus' cases.yaml.
type corpusCase struct {
	Name           string            `json:"name"`
	Input          string            `json:"input"`
	Expected       string            `json:"expected"`
	Config         string            `json:"config"`
	Values         string            `json:"values"`
	Mesh           string            `json:"mesh"`
	NativeSidecars bool              `json:"nativeSidecars"`
	Revision       string            `json:"revision"`
	Path           string            `json:"path"`
	ExpectError    string            `json:"expectError"`
	IstiodEnv      map[string]string `json:"istiodEnv"`
	Namespaces     map[string]any    `json:"namespaceAnnotations"`
}

func corpusCases(t testing.TB, dir, version string) []corpusCase {
	t.Helper()
	var cases []corpusCase
	if err := yaml.Unmarshal(readFile(t, filepath.Join(dir, version, "cases.yaml")), &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// injector makes the injector of a case, whose templates see the pods as they are written (Istio's own test has no API server
// before its injector) or with defaults.
func (c corpusCase) injector(t testing.TB, dir, version string, admission istio.Admission) *istio.Injector {
	t.Helper()
	at := func(path string) string {
		if path == "" {
			return ""
		}
		return string(readFile(t, filepath.Join(dir, version, path)))
	}
	native := istio.NativeDisabled
	if c.NativeSidecars {
		native = istio.NativeEnabled
	}
	in, err := istio.New(istio.Options{Version: version, Config: at(c.Config), Values: at(c.Values), Mesh: at(c.Mesh),
		Revision: c.Revision, Native: native, Admission: admission, IstiodEnv: c.IstiodEnv})
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// readObjects reads a stream of YAML documents.
func readObjects(t testing.TB, path string) []map[string]any {
	t.Helper()
	var out []map[string]any
	r := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(readFile(t, path)), 4096)
	for {
		var raw runtime.RawExtension
		err := r.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		obj := decodeObject(t, raw.Raw)
		if items, ok := obj["items"].([]any); ok {
			for _, item := range items {
				out = append(out, item.(map[string]any))
			}
			continue
		}
		out = append(out, obj)
	}
}

func decodeObject(t testing.TB, data []byte) map[string]any {
	t.Helper()
	obj := map[string]any{}
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// templates returns the pod templates of an object.
func templates(t testing.TB, obj map[string]any) []workload.Template {
	t.Helper()
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := registry.Templates(obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// required reports whether kube-inject injects a pod: it knows the annotation and nothing of namespaces or the policy.
func required(pod map[string]any, minor int) bool {
	p, err := newPod(pod)
	if err != nil {
		return false
	}
	if host, _ := p.spec["hostNetwork"].(bool); host {
		return false
	}
	v, _ := p.annotation("sidecar.istio.io/inject")
	if l, ok := p.label("sidecar.istio.io/inject"); ok && minor >= 12 {
		v = l
	}
	switch strings.ToLower(v) {
	case "", "y", "yes", "true", "on":
		return true
	}
	return false
}

func asPod(t testing.TB, obj map[string]any) *corev1.Pod {
	t.Helper()
	data, err := json.Marshal(map[string]any{"metadata": obj["metadata"], "spec": obj["spec"]})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(data, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// withoutHash takes the hash of the template out of a status annotation: upstream's golden files have none.
func withoutHash(pod *corev1.Pod) {
	text, ok := pod.Annotations[statusAnnotation]
	if !ok {
		return
	}
	status := map[string]any{}
	if json.Unmarshal([]byte(text), &status) == nil {
		delete(status, "version")
		data, _ := json.Marshal(status)
		pod.Annotations[statusAnnotation] = string(data)
	}
}

// webhookOnly takes out of an injected pod what the webhook of the version sets and its kube-inject, a code path of its own
// up to 1.7, does not. It says whether there was any.
func webhookOnly(pod, golden *corev1.Pod, minor int) bool {
	found := false
	drop := func(m, other map[string]string, keys ...string) {
		for _, k := range keys {
			if _, ok := other[k]; ok {
				continue
			}
			if _, ok := m[k]; ok {
				delete(m, k)
				found = true
			}
		}
	}
	if minor >= 5 {
		drop(pod.Labels, golden.Labels, "service.istio.io/canonical-name", "service.istio.io/canonical-revision")
	}
	if minor >= 6 {
		drop(pod.Annotations, golden.Annotations, "prometheus.io/scrape", "prometheus.io/path", "prometheus.io/port")
	}
	if minor <= 5 && len(golden.Spec.ImagePullSecrets) < len(pod.Spec.ImagePullSecrets) {
		pod.Spec.ImagePullSecrets = golden.Spec.ImagePullSecrets
		found = true
	}
	return found
}

// onJobTemplate moves the metadata that kube-inject writes to a CronJob's job template to its pod template. That is a defect
// of kube-inject in these versions: nothing reads them there. The webhook changes the pod.
func onJobTemplate(obj map[string]any) bool {
	if obj["kind"] != "CronJob" {
		return false
	}
	spec, _ := obj["spec"].(map[string]any)
	job, _ := spec["jobTemplate"].(map[string]any)
	meta, ok := job["metadata"].(map[string]any)
	if !ok {
		return false
	}
	jobSpec, _ := job["spec"].(map[string]any)
	pod, _ := jobSpec["template"].(map[string]any)
	pod["metadata"] = meta
	return true
}

// TestCorpusAppended runs the corpora of the generations that append and prints how many cases are equal.
func TestCorpusAppended(t *testing.T) {
	dir := corpustest.Dir(t)
	for _, version := range []string{"1.1.3", "1.5.0", "1.8.6"} {
		count := map[string]int{}
		var defects, different []string
		for _, c := range corpusCases(t, dir, version) {
			diff, outcome := runAppended(t, dir, version, c)
			if diff != "" {
				different = append(different, c.Name)
				t.Errorf("%s %s:\n%s", version, c.Name, diff)
				continue
			}
			count[outcome]++
			if outcome == outcomeDefect {
				defects = append(defects, c.Name)
			}
		}
		t.Logf("%s: %v, different %v, kube-inject defects %v", version, count, different, defects)
	}
}

// The ways in which a case can be as expected.
const (
	outcomeEqual   = "equal"
	outcomeWebhook = "equal but for webhook-only fields"
	outcomeDefect  = "equal but for a defect of kube-inject"
	outcomeError   = "expected error"
)

func runAppended(t *testing.T, dir, version string, c corpusCase) (diff, outcome string) {
	t.Helper()
	outcome = outcomeEqual
	in := c.injector(t, dir, version, istio.AdmissionRaw)
	minor := in.Profile().Minor()
	var want []map[string]any
	if c.Expected != "" {
		want = readObjects(t, filepath.Join(dir, version, c.Expected))
	}
	for i, obj := range readObjects(t, filepath.Join(dir, version, c.Input)) {
		for _, tmpl := range templates(t, obj) {
			if !required(tmpl.Pod, minor) {
				continue
			}
			owner := tmpl.Declared
			if c.Path == "webhook" {
				owner = tmpl.OwnerFor(release.Newest(minor))
			}
			res, err := Istio(in, Request{Pod: tmpl.Pod, Owner: owner})
			if c.ExpectError != "" {
				if err == nil || !strings.Contains(strings.ToLower(err.Error()), c.ExpectError) {
					return "have error " + errorText(err) + ", want " + c.ExpectError, ""
				}
				outcome = outcomeError
				continue
			}
			if err != nil {
				return err.Error(), ""
			}
			if c.Path == "kube-inject" && onJobTemplate(want[i]) {
				outcome = outcomeDefect
			}
			golden := asPod(t, templates(t, want[i])[0].Pod)
			got := asPod(t, res.Pod)
			withoutHash(got)
			withoutHash(golden)
			// Upstream's injectors have no REVISION; the chart gives istiod the revision default.
			if rev, ok := golden.Labels["istio.io/rev"]; ok && rev == "" && got.Labels["istio.io/rev"] == "default" {
				got.Labels["istio.io/rev"] = ""
			}
			if c.Path == "kube-inject" && minor <= 7 {
				if webhookOnly(got, golden, minor) && outcome == outcomeEqual {
					outcome = outcomeWebhook
				}
			}
			if d := cmp.Diff(golden, got, cmpopts.EquateEmpty()); d != "" {
				return d, ""
			}
		}
	}
	return "", outcome
}

func errorText(err error) string {
	if err == nil {
		return "none"
	}
	return err.Error()
}
