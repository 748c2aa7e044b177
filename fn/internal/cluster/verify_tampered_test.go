// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

var errNotCalled = errors.New("the API server does not call the webhook yet")

// count is how many pods the workload of a tampering has: those of DaemonSets have one, as there is one node.
func (one tampering) count() int64 {
	if one.kind == "DaemonSet" {
		return 1
	}
	return int64(max(one.pods, 1))
}

// committedWorkload is what is committed for a tampering.
func committedWorkload(one tampering) *unstructured.Unstructured {
	kind, apiVersion := one.kind, "apps/v1"
	if kind == "" {
		kind = "Deployment"
	}
	labels := map[string]any{"app": one.name, "tier": "web"}
	pod := map[string]any{
		"volumes": []any{map[string]any{"name": "data", "emptyDir": map[string]any{}}},
		"containers": []any{
			map[string]any{
				"name": "app", "image": "registry.example.com/app:1", "command": []any{"/bin/app"}, "args": []any{"--serve"},
				"env": []any{
					map[string]any{"name": "A", "value": "1"}, map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "C", "value": "3"},
				},
				"ports":           []any{map[string]any{"containerPort": int64(8080)}},
				"volumeMounts":    []any{map[string]any{"name": "data", "mountPath": "/data"}},
				"securityContext": map[string]any{"runAsNonRoot": false},
				"livenessProbe":   map[string]any{"httpGet": map[string]any{"path": "/live", "port": int64(8080)}},
				"resources": map[string]any{
					"requests": map[string]any{"cpu": "0.5"}, "limits": map[string]any{"memory": "64Mi", "cpu": "1"},
				},
			},
			map[string]any{"name": "helper", "image": "registry.example.com/helper:1"},
		},
	}
	n := one.count()
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": one.name}},
		"template": map[string]any{"metadata": map[string]any{"labels": labels, "annotations": map[string]any{"note": "kept"}}, "spec": pod},
	}
	switch kind {
	case "Deployment":
		spec["replicas"], spec["strategy"] = n, map[string]any{"type": "Recreate"} // or else edits would not reach all pods, as none gets ready
	case "StatefulSet":
		spec["replicas"], spec["podManagementPolicy"] = n, "Parallel"
		spec["serviceName"] = one.name
		spec["updateStrategy"] = map[string]any{"type": "OnDelete"} // as no pod gets ready here, others would wait for ever
		spec["volumeClaimTemplates"] = []any{map[string]any{"metadata": map[string]any{"name": "disk"}, "spec": map[string]any{
			"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}},
		}}}
	case "Job":
		apiVersion = "batch/v1"
		delete(spec, "selector")
		pod["restartPolicy"] = "Never"
		spec["completionMode"], spec["completions"], spec["parallelism"] = "Indexed", n, n
	}
	return newUnstructuredObject(map[string]any{
		"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": one.name, "namespace": "tampered"}, "spec": spec,
	})
}

// alone is a Pod that nothing controls.
func alone(name string, labels map[string]any) *unstructured.Unstructured {
	return newUnstructuredObject(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": "tampered", "labels": labels},
		"spec": map[string]any{"containers": []any{map[string]any{"name": "app", "image": "x:1"}}},
	})
}

// podsOf returns the pods of a workload by their label.
func (c *Cluster) podsOf(ctx context.Context, name string) ([]unstructured.Unstructured, error) {
	found, err := c.dynamic.Resource(pods).Namespace("tampered").List(ctx, metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// tamper changes pods and workloads that are there.
func (c *Cluster) tamper(ctx context.Context, one tampering, workload *unstructured.Unstructured) error {
	options := metav1.PatchOptions{FieldManager: "kubectl-edit"}
	if one.updated != "" {
		found, err := c.podsOf(ctx, one.name)
		if err != nil || len(found) == 0 {
			return fmt.Errorf("looking for the pods of %s: %d, %w", one.name, len(found), err)
		}
		var sub []string
		if one.subresource != "" {
			sub = append(sub, one.subresource)
		}
		for _, pod := range found {
			_, err = c.dynamic.Resource(pods).Namespace("tampered").Patch(ctx, pod.GetName(), types.JSONPatchType, []byte("["+one.updated+"]"), options, sub...)
			if err != nil {
				return err
			}
			if one.then == "" {
				continue
			}
			if _, err := c.dynamic.Resource(pods).Namespace("tampered").Patch(ctx, pod.GetName(), types.JSONPatchType, []byte("["+one.then+"]"), options); err != nil {
				return err
			}
		}
		return nil
	}
	if one.edited == "" {
		return nil
	}
	resource, err := c.resourceInterfaceFor(workload)
	if err != nil {
		return err
	}
	if _, err := resource.Patch(ctx, one.name, types.JSONPatchType, []byte("["+one.edited+"]"), options); err != nil {
		return err
	}
	if one.kind == "StatefulSet" {
		found, err := c.podsOf(ctx, one.name)
		if err != nil {
			return err
		}
		for i := range found {
			if err := c.Delete(ctx, &found[i]); err != nil {
				return err
			}
		}
	}
	return c.pollUntilReady(ctx, func(ctx context.Context) error { return c.madeAnew(ctx, one) })
}

// awaitAll waits until the workload of a tampering has all its pods.
func (c *Cluster) awaitAll(ctx context.Context, one tampering) error {
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		found, err := c.podsOf(ctx, one.name)
		if err == nil && int64(len(found)) != one.count() {
			err = fmt.Errorf("%s has %d pods of %d", one.name, len(found), one.count())
		}
		return err
	})
}

// madeAnew returns nil when a workload that was edited has its pods of its new template, and no others.
func (c *Cluster) madeAnew(ctx context.Context, one tampering) error {
	found, err := c.podsOf(ctx, one.name)
	if err != nil {
		return err
	}
	anew := 0
	for _, pod := range found {
		text, err := pod.MarshalJSON()
		if err != nil {
			return err
		}
		if strings.Contains(string(text), `"image":"x:1"`) || strings.Contains(string(text), `"name":"A","value":"3"`) {
			anew++
		}
	}
	if anew == len(found) && int64(anew) == one.count() {
		return nil
	}
	return fmt.Errorf("%s has %d pods of %d, and %d of the new template", one.name, len(found), one.count(), anew)
}

// tamperedFleet is a cluster in which every tampering was done, beside as many workloads that nobody touched.
func tamperedFleet(t *testing.T, f *fleet, all []tampering) {
	t.Helper()
	ctx := t.Context()
	if err := f.AddNamespace(ctx, "tampered", map[string]string{"tamper": "true"}, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Furnish(ctx, []string{"tampered"}, []string{"web"}, "own-tampered"); err != nil {
		t.Fatal(err)
	}
	webhooks := append([]tampering{{name: "probe", admitted: `{"op":"add","path":"/metadata/labels/probed","value":"true"}`}}, all...)
	url, bundle := f.tamperingWebhook(t, webhooks)
	if err := f.addTamperingWebhook(ctx, url, bundle); err != nil {
		t.Fatal(err)
	}
	var committed []*unstructured.Unstructured
	for _, one := range all {
		committed = append(committed, committedWorkload(one))
	}
	for i, kind := range []string{"Deployment", "StatefulSet", "DaemonSet", "Job"} {
		committed = append(committed, committedWorkload(tampering{name: fmt.Sprintf("untouched-%d", i), kind: kind}))
	}
	for _, w := range committed {
		if _, err := f.Create(ctx, w); err != nil {
			t.Fatalf("creating %s: %v", w.GetName(), err)
		}
	}
	if without, err := f.awaitPods(ctx, committed); err != nil || len(without) > 0 {
		t.Fatalf("waiting for the pods: %v, none of %v", err, without)
	}
	for i, one := range all {
		if err := f.awaitAll(ctx, one); err != nil {
			t.Fatal(err)
		}
		if err := f.tamper(ctx, one, committed[i]); err != nil {
			t.Fatalf("tampering, %s: %v", one.name, err)
		}
	}
	f.workloads = append(f.workloads, committed...)
	foreign := committedWorkload(tampering{name: "foreign"})
	for _, obj := range []*unstructured.Unstructured{foreign, alone("alone", map[string]any{"app": "alone"})} {
		if _, err := f.Create(ctx, obj); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.awaitPods(ctx, []*unstructured.Unstructured{foreign}); err != nil {
		t.Fatal(err)
	}
	f.repository.commit("Add what is tampered with", committed...)
}

func TestVerifyFindsWhatIsTamperedWith(t *testing.T) {
	f := &fleet{Cluster: started(t, programs(t, "etcd", "kube-apiserver", "kube-controller-manager"), Options{}), repository: newRepository(t), program: builtPrerig(t)}
	if err := f.Furnish(t.Context(), nil, nil, "own"); err != nil {
		t.Fatal(err)
	}
	all := append(admittedTamperings(), afterwards()...)
	if version := f.programs.Kubernetes; strings.HasPrefix(version, "v1.30.") || strings.HasPrefix(version, "v1.32.") {
		// Pods have the subresource resize since Kubernetes 1.33.
		all = slices.DeleteFunc(all, func(one tampering) bool { return one.subresource == "resize" })
	}
	for i := range all {
		all[i].pods = setting(t, "PRERIG_CLUSTER_TAMPERED", 2)
	}
	tamperedFleet(t, f, all)
	found, exit, took := f.repository.verify(f.program, f.Kubeconfig)
	t.Logf("Kubernetes %s: %v of %d tamperings, exit code %d, after %s", f.programs.Kubernetes, found.Counts, len(all), exit, took)
	if exit != 1 {
		t.Errorf("the exit code is %d, want 1", exit)
	}
	f.checkTampered(t, found, all)

	// With the rights that the documentation gives, all of it is found too, and without them nothing is.
	verifier := f.kubeconfigPath("verifier")
	if out, err := f.repository.run(f.program, verifier); err == nil || !strings.Contains(out, "forbidden") {
		t.Errorf("without any rights: %v\n%.500s", err, out)
	}
	f.letVerify(t)
	found, _, _ = f.repository.verify(f.program, verifier)
	if len(found.Unread) > 0 {
		t.Errorf("the rights of the documentation do not suffice for %v", found.Unread)
	}
	f.checkTampered(t, found, all)
}

// letVerify gives the user verifier the rights that docs/verify.md has.
func (f *fleet) letVerify(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "verify.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := bytes.Cut(page, []byte("<!-- file: prerig-verify.yaml -->\n```yaml\n"))
	text, _, _ = bytes.Cut(text, []byte("```\n"))
	role, err := singleObject(text)
	if err != nil {
		t.Fatal(err)
	}
	binding := newUnstructuredObject(map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": map[string]any{"name": "prerig-verify"},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role.GetName()},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "verifier"}},
	})
	for _, obj := range []*unstructured.Unstructured{role, binding} {
		if _, err := f.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	err = f.pollUntilReady(t.Context(), func(context.Context) error { // until the API server has heard of it
		_, err := f.repository.run(f.program, f.kubeconfigPath("verifier"), "--fail-on", "never")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// checkTampered compares what was found with what was done.
func (f *fleet) checkTampered(t *testing.T, found verified, all []tampering) {
	t.Helper()
	seen := map[string]string{}            // the fields that were found, by workload
	caught := map[string]map[string]bool{} // the pods that were caught, by workload
	caughtOne := func(workload, pod string) {
		if caught[workload] == nil {
			caught[workload] = map[string]bool{}
		}
		caught[workload][pod] = true
	}
	for _, pod := range found.Pods {
		if pod.Namespace != "tampered" {
			continue
		}
		name := strings.TrimPrefix(pod.Workload[strings.Index(pod.Workload, " ")+1:], "tampered/")
		i := slices.IndexFunc(all, func(one tampering) bool { return one.name == name })
		for _, d := range pod.Differences {
			seen[name] += fmt.Sprintf("%s: %v, committed %v, by %s %v\n", d.Field, d.Found, d.Committed, d.Cause.Kind, d.Cause.By)
			if i >= 0 && pod.State == all[i].state && strings.HasPrefix(d.Field, all[i].field) && d.Cause.Kind == all[i].cause {
				caughtOne(name, pod.Name)
				checkBy(t, all[i], d.Cause.By)
			}
		}
		if pod.State == "Foreign" {
			caughtOne(pod.Workload, pod.Name)
		}
		if i < 0 && pod.State != "Current" && pod.State != "Foreign" {
			t.Errorf("%s of %s is %s, and nobody touched it: %s", pod.Name, pod.Workload, pod.State, seen[name])
		}
	}
	for _, one := range all {
		if n := int64(len(caught[one.name])); n != one.count() {
			t.Errorf("%s: %s by %s was found in %d pods of %d, but %q", one.name, one.field, one.cause, n, one.count(), seen[one.name])
		}
	}
	for _, workload := range []string{"Deployment tampered/foreign", "Pod tampered/alone"} {
		if len(caught[workload]) == 0 {
			t.Errorf("%s counts as from Git", workload)
		}
	}
}

func checkBy(t *testing.T, one tampering, by []string) {
	t.Helper()
	want := "kubectl-edit"
	if one.cause == byHook {
		want = "tamper/pods.tamper.example.com"
	}
	if !slices.Equal(by, []string{want}) {
		t.Errorf("%s was done by %v, want %s", one.name, by, want)
	}
}
