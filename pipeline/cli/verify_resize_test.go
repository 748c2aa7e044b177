// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/verify"
)

// resizedDeployment is committed: a native sidecar and two containers, of which one has no resources.
const resizedDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      initContainers:
      - {name: istio-proxy, image: "proxy:1", restartPolicy: Always, resources: {requests: {cpu: 10m, memory: 64Mi}}}
      containers:
      - {name: web, image: "web:1"}
      - {name: cache, image: "cache:1", resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}}
`

// runningPod is a pod of resizedDeployment as kubectl get --show-managed-fields saves it, before any change.
const runningPod = `
apiVersion: v1
kind: Pod
metadata:
  name: web-abc-1
  generateName: web-abc-
  namespace: shop
  labels: {app: web, pod-template-hash: abc}
  creationTimestamp: "2026-05-01T10:00:00Z"
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web-abc, uid: u, controller: true}]
  managedFields:
  - {manager: kube-controller-manager, operation: Update, apiVersion: v1, time: "2026-05-01T10:00:00Z", fieldsType: FieldsV1, fieldsV1: {
      "f:spec": {"f:restartPolicy": {}, "f:containers": {'k:{"name":"web"}': {".": {}, "f:image": {}, "f:resources": {}}}}}}
  # more
spec:
  initContainers:
  - {name: istio-proxy, image: "proxy:1", restartPolicy: Always, resources: {requests: {cpu: 10m, memory: 64Mi}}}
  containers:
  - {name: web, image: "web:1", resources: {}}
  - {name: cache, image: "cache:1", resources: {requests: {cpu: 100m, memory: 64Mi}, limits: {memory: 128Mi}}}
`

// resizedBy is an entry of managedFields with the fields of a spec.
func resizedBy(manager, subresource, at, spec string) string {
	return `  - {manager: ` + manager + `, operation: Update, apiVersion: v1, subresource: "` + subresource + `", time: "` + at +
		`", fieldsType: FieldsV1, fieldsV1: {"f:spec": ` + spec + "}}\n  # more\n"
}

// TestVerifyResize verifies pods whose resources were changed in place: by an autoscaler, by a person, of sidecars and of whole pods. Such a
// pod fails only for what a resize cannot have changed, or if nothing proves the resize.
func TestVerifyResize(t *testing.T) {
	const later, earlier = "2026-05-01T11:00:00Z", "2026-05-01T09:00:00Z"
	const webCPU = `{"f:containers": {'k:{"name":"web"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}}`
	const proxyBoth = `{"f:initContainers": {'k:{"name":"istio-proxy"}': {"f:resources": {"f:requests": {"f:cpu": {}, "f:memory": {}}}}}}`
	const cacheLimit = `{"f:containers": {'k:{"name":"cache"}': {"f:resources": {"f:limits": {"f:memory": {}}}}}}`
	const wholePod = `{"f:resources": {"f:requests": {"f:cpu": {}}}}`
	webHas := []string{`image: "web:1", resources: {}`, `image: "web:1", resources: {requests: {cpu: 300m}}`}
	proxyHas := []string{"cpu: 10m, memory: 64Mi", "cpu: 20m, memory: 96Mi"}
	for name, c := range map[string]struct {
		more    string   // entries of managedFields
		replace []string // in the pod
		want    verify.State
		lines   []string
	}{
		"untouched": {"", nil, verify.Current, nil},
		"a value that was not there": {resizedBy("updater", "resize", later, webCPU), webHas, verify.Resized,
			[]string{"shop/web-abc-1: resized in place (Deployment shop/web in web.yaml)", "(resized in place by updater at 2026-05-01T11:00:00Z)", "1 pod compared: 1 resized in place"}},
		"with the autoscaler's annotation": {resizedBy("updater", "resize", later, webCPU), append([]string{"  # more\nspec", "  annotations: {vpaInPlaceUpdated: \"true\"}\nspec"}, webHas...),
			verify.Resized, nil},
		"the annotation without a resize": {"", []string{"  # more\nspec", "  annotations: {vpaInPlaceUpdated: \"true\"}\nspec"}, verify.Changed, nil},
		"a native sidecar":                {resizedBy("kubectl-edit", "resize", later, proxyBoth), proxyHas, verify.Resized, []string{"resized in place by kubectl-edit"}},
		"a limit":                         {resizedBy("updater", "resize", later, cacheLimit), []string{"memory: 128Mi", "memory: 256Mi"}, verify.Resized, nil},
		"two managers": {resizedBy("updater", "resize", later, webCPU) + resizedBy("kubectl-edit", "resize", later, proxyBoth), append(proxyHas, webHas...), verify.Resized,
			[]string{"resized in place by updater", "resized in place by kubectl-edit"}},
		"the whole pod":                 {resizedBy("updater", "resize", later, wholePod), []string{"\nspec:\n", "\nspec:\n  resources: {requests: {cpu: \"1\"}}\n"}, verify.Resized, nil},
		"in the second of its creation": {resizedBy("updater", "resize", "2026-05-01T10:00:00Z", webCPU), webHas, verify.Resized, nil},

		"another image too": {resizedBy("updater", "resize", later, webCPU), append([]string{`"cache:1"`, `"evil:1"`}, webHas...), verify.Changed,
			[]string{"spec.containers[cache].image: evil:1, committed cache:1", "resized in place by updater"}},
		"another image of the resized container": {resizedBy("updater", "resize", later, webCPU), []string{webHas[0], strings.Replace(webHas[1], "web:1", "evil:1", 1)}, verify.Changed,
			[]string{"spec.containers[web].image: evil:1, committed web:1", "resized in place by updater"}},
		"another resource": {resizedBy("updater", "resize", later, `{"f:containers": {'k:{"name":"web"}': {"f:resources": {"f:requests": {"f:ephemeral-storage": {}}}}}}`),
			[]string{webHas[0], strings.Replace(webHas[1], "cpu: 300m", "ephemeral-storage: 1Gi", 1)}, verify.Changed, nil},
		"another value than the resize's": {resizedBy("updater", "resize", later, webCPU), []string{webHas[0], strings.Replace(webHas[1], "cpu: 300m", "cpu: 300m, memory: 1Gi", 1)}, verify.Changed, nil},
		"a value that was removed":        {resizedBy("updater", "resize", later, cacheLimit), []string{", limits: {memory: 128Mi}", ""}, verify.Changed, nil},
		"of another container":            {resizedBy("updater", "resize", later, proxyBoth), webHas, verify.Changed, nil},
		"before the pod was created":      {resizedBy("updater", "resize", earlier, webCPU), webHas, verify.Changed, nil},
		"by another subresource":          {resizedBy("agent", "status", later, webCPU), webHas, verify.Changed, nil},
		"at admission":                    {"", webHas, verify.Changed, []string{"changed at admission"}},
	} {
		pod := strings.Replace(runningPod, "  # more\n", c.more+"  # more\n", 1)
		for i := 0; i+1 < len(c.replace); i += 2 {
			replaced := strings.Replace(pod, c.replace[i], c.replace[i+1], 1)
			if replaced == pod {
				t.Fatalf("%s: the pod lacks %q", name, c.replace[i])
			}
			pod = replaced
		}
		checkVerified(t, name, pod, c.want, c.lines)
	}
}

// checkVerified verifies a pod of resizedDeployment and compares its state, the exit code and lines of the text.
func checkVerified(t *testing.T, name, saved string, want verify.State, lines []string) {
	t.Helper()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "web.yaml"), []byte(resizedDeployment), 0o600))
	wantCode := 0
	if want == verify.Changed {
		wantCode = 1
	}
	code, out, text := command(t, saved, "verify", "--rendered", dir, "-")
	if code != wantCode {
		t.Errorf("%s: exit code %d, want %d:\n%s%s", name, code, wantCode, out, text)
	}
	for _, line := range lines {
		if !strings.Contains(out, line) {
			t.Errorf("%s: the text lacks %q:\n%s", name, line, out)
		}
	}
	_, out, _ = command(t, saved, "verify", "--rendered", dir, "-o", "json", "-")
	var report verify.Report
	must(t, json.Unmarshal([]byte(out), &report))
	if len(report.Pods) != 1 || report.Pods[0].State != want || len(report.Pods[0].Differences) > 0 != (want != verify.Current) {
		t.Errorf("%s: want %s:\n%s", name, want, out)
	}
	code, _, _ = command(t, saved, "verify", "--rendered", dir, "--fail-on", "resized", "-")
	if (code == 1) != (want == verify.Resized) {
		t.Errorf("%s: --fail-on resized exits with %d", name, code)
	}
}

// TestVerifyResizeOfAChangedWorkload fails for a resized pod if its workload in the cluster has other resources than the committed one: the
// resize hides the value that the pod was created with.
func TestVerifyResizeOfAChangedWorkload(t *testing.T) {
	const webCPU = `{"f:containers": {'k:{"name":"web"}': {"f:resources": {"f:requests": {"f:cpu": {}}}}}}`
	pod := strings.Replace(runningPod, "  # more\n", resizedBy("updater", "resize", "2026-05-01T11:00:00Z", webCPU), 1)
	pod = strings.Replace(pod, `image: "web:1", resources: {}`, `image: "web:1", resources: {requests: {cpu: 300m}}`, 1)
	set := strings.NewReplacer("Deployment", "ReplicaSet", "name: web, namespace: shop", "name: web-abc, uid: u, namespace: shop, ownerReferences: "+
		"[{apiVersion: apps/v1, kind: Deployment, name: web, uid: d, controller: true}]", "labels: {app: web}", "labels: {app: web, pod-template-hash: abc}").Replace(resizedDeployment)
	checkVerified(t, "the committed template", pod+"---"+set, verify.Resized, nil)
	changed := strings.Replace(set, `image: "web:1"`, `image: "web:1", resources: {requests: {cpu: 200m}}`, 1)
	checkVerified(t, "another template", pod+"---"+changed, verify.Changed, []string{
		"the template of its owner differs as well, in spec.containers[web].resources.requests",
	})
}

// TestVerifyResizeWithoutManagedFields leaves open what nothing proves, and says how to find out.
func TestVerifyResizeWithoutManagedFields(t *testing.T) {
	before, rest, _ := strings.Cut(runningPod, "  managedFields:")
	_, spec, _ := strings.Cut(rest, "  # more\n")
	pod := strings.Replace(before+spec, "cpu: 100m", "cpu: 250m", 1)
	checkVerified(t, "cpu", pod, verify.Changed, []string{"only cpu and memory differ", "--show-managed-fields"})
	code, out, _ := command(t, strings.Replace(pod, `"cache:1"`, `"evil:1"`, 1), "verify", "--rendered", t.TempDir(), "-")
	if code == 0 || strings.Contains(out, "only cpu and memory differ") {
		t.Errorf("another image: exit code %d\n%s", code, out)
	}
}
