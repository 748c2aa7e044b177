// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	k8syaml "sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
)

const contextWorkload = `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1"}]}
`

const contextWebhook = `{"metadata":{"name":"mutate"},"webhooks":[{"name":"image.example.com","sideEffects":"None","admissionReviewVersions":["v1"],
"clientConfig":{"url":"https://example.com"},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["pods"]}]}]}`

// TestAdmitContext sends the pod of a workload as a dry run, and names a field that a webhook changes. What needs the real
// API server is in fn/internal/cluster.
func TestAdmitContext(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   []string
		absent string
	}{
		"changed": {http.StatusCreated, "", []string{
			"spec.containers[web].image: mirror/web:1, was web:1 (not predicted: webhook mutate/image.example.com)",
			"metadata.labels.app: removed, was web (not predicted: webhook mutate/image.example.com)",
		}, "kube-api-access-abcde"},
		"rejected": {http.StatusForbidden, "pods \"web-\" is forbidden: exceeded quota: few", []string{"cluster: rejected: ", "exceeded quota: few"}, "not predicted"},
		"not allowed": {http.StatusForbidden, `pods is forbidden: User "me" cannot create resource "pods" in API group "" in the namespace "shop"`, []string{
			"cluster: not known: it needs the permission to create pods in namespace shop",
		}, "not predicted"},
		"dry runs are refused": {http.StatusBadRequest, `admission webhook "image.example.com" does not support dry run`, []string{
			"cluster: not known: a webhook has side effects",
		}, "not predicted"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				answerAsAPIServer(t, w, r, c.status, c.answer)
			}))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			dir := t.TempDir()
			kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "web.yaml")
			must(t, os.WriteFile(kubeconfig, fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: x, contexts: [{name: x, context: {cluster: c}}],
clusters: [{name: c, cluster: {server: %q}}]}`, server.URL), 0o600))
			must(t, os.WriteFile(file, []byte(contextWorkload), 0o600))
			code, out, text := command(t, "", "admit", "--as-is", "--kubeconfig", kubeconfig, file)
			if code != 1 {
				t.Errorf("exit code %d\n%s\n%s", code, out, text)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("the output lacks %q:\n%s\n%s", want, out, text)
				}
			}
			if strings.Contains(out, c.absent) {
				t.Errorf("the output has %q:\n%s", c.absent, out)
			}
		})
	}
}

// answerAsAPIServer answers lists, and the dry run of a pod with another image and without labels.
func answerAsAPIServer(t *testing.T, w http.ResponseWriter, r *http.Request, status int, message string) {
	t.Helper()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.URL.Path == "/version":
		fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/mutatingwebhookconfigurations"):
		fmt.Fprintf(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[%s]}`, contextWebhook)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/namespaces"):
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"shop"}}]}`)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/serviceaccounts"):
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"default","namespace":"shop"}}]}`)
	case r.Method == http.MethodGet:
		fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
	case r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/shop/pods" || r.URL.Query().Get("dryRun") != "All":
		t.Errorf("the request %s %s may change the cluster", r.Method, r.URL)
	case status != http.StatusCreated:
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status, "message": message})
	default:
		var pod map[string]any
		if err := json.NewDecoder(r.Body).Decode(&pod); err != nil {
			t.Error(err)
		}
		metadata, _ := pod["metadata"].(map[string]any)
		owners, _ := metadata["ownerReferences"].([]any)
		owner, _ := owners[0].(map[string]any)
		if metadata["generateName"] != "web-5d8f7c9b6d-" || owner["kind"] != "ReplicaSet" || owner["name"] != "web-5d8f7c9b6d" || owner["uid"] == "" {
			t.Errorf("the pod that is sent has the metadata %v", metadata)
		}
		delete(metadata, "labels")
		spec, _ := pod["spec"].(map[string]any)
		spec["containers"].([]any)[0].(map[string]any)["image"] = "mirror/web:1"
		spec["volumes"] = []any{map[string]any{"name": "kube-api-access-abcde"}}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(pod)
	}
}

// TestLiveFields compares a file, the prediction and the cluster in each combination.
func TestLiveFields(t *testing.T) {
	t.Parallel()
	pod := func(labels map[string]any) map[string]any {
		return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{}}
	}
	p := &render.AdmittedPod{
		Created:  pod(map[string]any{"same": "1", "predicted": "1", "ignored": "1", "other": "1"}),
		Pod:      pod(map[string]any{"same": "1", "predicted": "2", "ignored": "2", "other": "2"}),
		Live:     &render.LivePod{Pod: pod(map[string]any{"same": "1", "predicted": "2", "ignored": "1", "other": "3", "new": "1"})},
		Webhooks: []string{"a/b", "c/d"},
		Reasons:  []render.Reason{{Field: "metadata.labels.predicted", Before: "1", After: "2", Step: "LimitRanger"}},
	}
	var got []string
	for _, f := range liveFields(p) {
		got = append(got, describeLiveField(f))
	}
	want := []string{
		"metadata.labels.ignored: unchanged, 1 (not predicted: one of the webhooks a/b, c/d)",
		"metadata.labels.new: 1 (not predicted: one of the webhooks a/b, c/d)",
		"metadata.labels.other: 3, was 1 (not predicted: one of the webhooks a/b, c/d)",
		"metadata.labels.predicted: 2, was 1 (LimitRanger)",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestPodsAsYAML has the library that Kubernetes' programs use read the text of a pod.
func TestPodsAsYAML(t *testing.T) {
	t.Parallel()
	pod := map[string]any{
		"spec":  map[string]any{"seconds": 30.0, "priority": 2e9, "share": 0.25, "negative": -1.0, "large": 1e20, "on": true, "none": nil},
		"texts": []any{"yes", "1e3", "0x10", "a: b", "", "line\nline\n", " space", "<b>&", "ü", "~", "2001-01-01", "1_000", "{{x}}", "0o7", "010"},
		"empty": map[string]any{}, "list": []any{}, "10": "a", "9": "b", "y": "c",
	}
	var got map[string]any
	text := manifest.Marshal(pod)
	if err := k8syaml.Unmarshal(text, &got); err != nil || !reflect.DeepEqual(got, pod) {
		t.Errorf("%v: got\n%v\nof\n%s", err, got, text)
	}
	if !strings.Contains(string(text), "seconds: 30\n") {
		t.Errorf("a whole number is not written as one:\n%s", text)
	}
}
