// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// istioTools is the directory of the programs that are made of Istio's own code; make operator builds them.
var istioTools = flag.String("istio-tools", "", "directory of the programs charts and injector, to compare with anew")

const operatorData = "testdata/operator"

// operatorRequest is what the program charts renders: a document as istioctl does, or the chart's values.
type operatorRequest struct {
	Operator  string         `json:"operator,omitempty"`
	Values    map[string]any `json:"values,omitempty"`
	Namespace string         `json:"namespace,omitempty"`
}

// TestOperatorAnswers injects with the policies of documents and compares with the pods that Istio's own webhook made with
// Istio's own charts, which istioctl's code rendered from the same documents.
func TestOperatorAnswers(t *testing.T) {
	t.Parallel()
	documents, err := filepath.Glob(operatorData + "/*.yaml")
	must(t, err)
	compared := 0
	for _, path := range documents {
		name, isDocument := strings.CutSuffix(filepath.Base(path), ".yaml")
		if !isDocument || name == "pods" || strings.HasSuffix(name, ".values") {
			continue
		}
		compared++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(path)
			must(t, err)
			answers := strings.TrimSuffix(path, ".yaml") + ".pods.json"
			if *istioTools != "" {
				got, refused := chartPods(t, requestFor(t, path, text))
				if refused != "" {
					t.Fatalf("Istio refuses it: %s", refused)
				}
				if *update {
					must(t, os.WriteFile(answers, marshalPods(t, got), 0o644))
				}
				comparePods(t, "stored", storedPods(t, answers), got)
			}
			got, err := prerigPods(t, text)
			must(t, err)
			comparePods(t, "Prerig", storedPods(t, answers), got)
		})
	}
	if compared < 15 {
		t.Errorf("%d documents were compared", compared)
	}
}

// requestFor asks for what istioctl renders, or for what the Sail operator hands to the chart, which a file beside the document has.
func requestFor(t *testing.T, path string, text []byte) operatorRequest {
	t.Helper()
	values, err := os.ReadFile(strings.TrimSuffix(path, ".yaml") + ".values.yaml")
	if err != nil {
		return operatorRequest{Operator: string(text)}
	}
	var r operatorRequest
	must(t, yaml.Unmarshal(values, &r.Values))
	r.Namespace = podmap.TextAt(r.Values, "global", "istioNamespace")
	return r
}

func comparePods(t *testing.T, who string, want, got []corev1.Pod) {
	t.Helper()
	sorted := cmpopts.SortSlices(func(a, b corev1.Volume) bool { return a.Name < b.Name })
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), sorted); d != "" {
		t.Errorf("pods (-Istio +%s):\n%s", who, d)
	}
}

// operatorPods are the pods that are injected, with all that the API server sets by default.
func operatorPods(t *testing.T) []map[string]any {
	t.Helper()
	text, err := os.ReadFile(operatorData + "/pods.yaml")
	must(t, err)
	var pods []map[string]any
	file, err := manifest.Parse("pods.yaml", text)
	must(t, err)
	for _, doc := range file.Docs {
		pod, err := doc.Object()
		must(t, err)
		pods = append(pods, pod)
	}
	return pods
}

// answersVersion is the Istio that the stored answers are of.
const answersVersion = "1.31.1"

// prerigPods injects with the policy of a document; the error is that of the import.
func prerigPods(t *testing.T, document []byte) ([]corev1.Pod, error) {
	t.Helper()
	objects, err := Read("operator.yaml", document)
	must(t, err)
	text, _, err := imported(objects, Options{Version: answersVersion})
	if err != nil {
		return nil, err
	}
	policy, err := v1alpha1.Parse(text)
	must(t, err)
	injector, err := fn.New([]*v1alpha1.InjectionPolicy{policy})
	must(t, err)
	var items []fn.Item
	for _, pod := range operatorPods(t) {
		raw, err := yaml.Marshal(pod)
		must(t, err)
		file, err := manifest.Parse("pods.yaml", raw)
		must(t, err)
		items = append(items, fn.Item{Doc: file.Docs[0]})
	}
	report, err := injector.Run(t.Context(), items)
	must(t, err)
	if report.Results.Worst() == result.Error {
		t.Errorf("injecting: %v", report.Results)
	}
	var out []corev1.Pod
	for _, item := range report.Items {
		var pod corev1.Pod
		must(t, yaml.UnmarshalStrict(item.Doc.Raw(), &pod))
		out = append(out, withoutRecord(pod))
	}
	return out, nil
}

// withoutRecord leaves out what is noted about the injection: the status with its hash, and Prerig's own record.
func withoutRecord(pod corev1.Pod) corev1.Pod {
	for _, name := range []string{"sidecar.istio.io/status", "prerig.dev/undo", "prerig.dev/original"} {
		delete(pod.Annotations, name)
	}
	return pod
}

// chartPods renders with Istio's charts and injects with Istio's webhook, one of which may refuse what it is given.
func chartPods(t *testing.T, request operatorRequest) (pods []corev1.Pod, refused string) {
	t.Helper()
	var rendered struct{ Manifests, Error string }
	runTool(t, tool{name: "charts"}, []any{request}, &rendered)
	if rendered.Error != "" {
		return nil, rendered.Error
	}
	objects, err := Read("chart.yaml", []byte(rendered.Manifests))
	must(t, err)
	planes, err := controlPlanes(viewObjects(objects))
	must(t, err)
	if len(planes) != 1 || planes[0].mesh == nil || planes[0].istiod == nil {
		return nil, "the chart installs no injector"
	}
	return webhookPods(t, planes[0], viewObjects(objects))
}

func webhookPods(t *testing.T, plane *controlPlane, all []*clusterObject) (injected []corev1.Pod, refused string) {
	t.Helper()
	var env []string
	cluster := ""
	for _, e := range objectsOf(discoveryContainer(plane.istiod)["env"]) {
		if v, ok := e["value"].(string); ok {
			env = append(env, podmap.TextAt(e, "name")+"="+v)
			if e["name"] == "CLUSTER_ID" {
				cluster = v
			}
		}
	}
	path := "/inject"
	for _, o := range all {
		if entries := objectsOf(o.Value["webhooks"]); o.kind == "MutatingWebhookConfiguration" && len(entries) > 0 {
			path = injectPath(entries[0])
		}
	}
	clusters := []string{cluster}
	if called := injectionSettings(path)["cluster"]; called != "" && called != cluster {
		clusters = append(clusters, called)
	}
	installation, err := json.Marshal(map[string]any{
		"config": podmap.TextAt(plane.injector.Value, "data", "config"), "values": podmap.TextAt(plane.injector.Value, "data", "values"),
		"mesh": podmap.TextAt(plane.mesh.Value, "data", "mesh"), "revision": plane.revision, "path": path, "clusters": clusters,
		"kubelets": []string{"v1.34.1"}, "namespaces": []any{map[string]any{"metadata": map[string]any{"name": "shop"}}},
	})
	must(t, err)
	file := filepath.Join(t.TempDir(), "installation.json")
	must(t, os.WriteFile(file, installation, 0o600))
	var requests []any
	pods := operatorPods(t)
	for _, pod := range pods {
		requests = append(requests, map[string]any{"namespace": "shop", "pod": pod})
	}
	answers := make([]struct {
		Pod     corev1.Pod `json:"pod"`
		Refused string     `json:"refused"`
	}, len(pods))
	into := make([]any, len(answers))
	for i := range answers {
		into[i] = &answers[i]
	}
	runTool(t, tool{name: "injector", installation: file, env: append(env, "HOME=/nonexistent")}, requests, into...)
	for _, a := range answers {
		if a.Refused != "" {
			return nil, a.Refused
		}
		if a.Pod.Name == "" {
			return nil, "the webhook leaves the pod alone"
		}
		injected = append(injected, withoutRecord(a.Pod))
	}
	return injected, ""
}

// tool is a program that answers requests. One with an installation writes its answers to a file.
type tool struct {
	name, installation string
	env                []string
}

// runTool gives requests to a program, a line each, and reads as many answers.
func runTool(t *testing.T, p tool, requests []any, answers ...any) {
	t.Helper()
	var in, out, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, r := range requests {
		must(t, enc.Encode(r))
	}
	var args []string
	file := filepath.Join(t.TempDir(), "answers")
	if p.installation != "" {
		args = []string{p.installation, file}
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(*istioTools, p.name), args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Env = &in, &out, &stderr, slices.Concat(p.env, []string{"PATH=/nonexistent"})
	if err := cmd.Run(); err != nil {
		t.Fatalf("running %s: %v: %s", p.name, err, stderr.String())
	}
	text := out.Bytes()
	if len(args) > 0 {
		var err error
		text, err = os.ReadFile(file)
		must(t, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	for _, a := range answers {
		must(t, dec.Decode(a))
	}
}

func storedPods(t *testing.T, path string) []corev1.Pod {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	var pods []corev1.Pod
	must(t, json.Unmarshal(text, &pods))
	return pods
}

func marshalPods(t *testing.T, pods []corev1.Pod) []byte {
	t.Helper()
	text, err := json.MarshalIndent(pods, "", " ")
	must(t, err)
	return append(text, '\n')
}
