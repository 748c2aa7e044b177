// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/internal/oracle"
)

// mark is an annotation that the webhook alone sets: pods with it have been through it.
const mark = "example.com/webhook-was-here"

// choosesTemplates is the annotation of pods that say themselves which templates they want, so that the mark is none of them.
const choosesTemplates = "inject.istio.io/templates"

// markPods has the webhook set the mark on each pod that it injects into, and waits until it does. No policy that was imported
// before knows of that.
func (c *Cluster) markPods(ctx context.Context, revision string) error {
	name := "istio-sidecar-injector"
	if revision != "" {
		name += "-" + revision
	}
	maps := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}).Namespace(istioNamespace)
	found, err := maps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	text, _, err := unstructured.NestedString(found.Object, "data", "config")
	if err != nil {
		return err
	}
	var config map[string]any
	if err := yaml.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(config, fmt.Sprintf("metadata: {annotations: {%s: yes-it-was}}", mark), "templates", "mark"); err != nil {
		return err
	}
	if err := unstructured.SetNestedStringSlice(config, []string{"sidecar", "mark"}, "defaultTemplates"); err != nil {
		return err
	}
	changed, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(found.Object, string(changed), "data", "config"); err != nil {
		return err
	}
	if _, err := maps.Update(ctx, found, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		pod, err := dryRunRevisionPod(ctx, c, revision)
		if err == nil && pod.GetAnnotations()[mark] == "" {
			return errors.New("the webhook does not set the mark yet")
		}
		return err
	})
}

// leftOn is what became of a workload that Prerig has injected into, in a cluster whose webhook is on and in one without.
type leftOn struct {
	original    *unstructured.Unstructured
	injected    *unstructured.Unstructured
	warned      bool // Prerig says that the webhook will come
	webhook     Outcome
	plain       Outcome
	admission   Outcome // what the webhook makes of the original, asked where only the pod that it has rendered again is accepted
	differences []oracle.Difference
}

// acceptedOnceRenderedAgain is a Pod whose own proxy has a probe that the API server refuses. The webhook takes it over as it is, and so
// does Prerig; of what Prerig wrote the webhook takes it for one of the application's and rewrites it, which is accepted.
func acceptedOnceRenderedAgain() *unstructured.Unstructured {
	return newUnstructuredObject(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p-own-probe", "namespace": "shop"},
		"spec": map[string]any{"containers": []any{
			map[string]any{"name": "app", "image": "app"},
			map[string]any{"name": "istio-proxy", "image": "auto", "readinessProbe": map[string]any{"httpGet": map[string]any{"port": "8080"}}},
		}},
	})
}

// testWebhookLeftOn applies what Prerig makes of workloads to a cluster whose webhook is on for their namespaces. Where Prerig
// warns, the webhook renders once more; all other pods are those that a cluster without any webhook makes. So it is with
// runtimeWebhook: Keep, and with Disable, where it warns only if no mark is safe. Where injection is switched off for the namespaces, all
// pods are what a cluster without any webhook makes.
func testWebhookLeftOn(t *testing.T, webhook, plain *Cluster, prerig *Prerig, i oracle.Installation, workloads []*unstructured.Unstructured) {
	t.Helper()
	revision, _ := i.Values["revision"].(string)
	if err := webhook.markPods(t.Context(), revision); err != nil {
		t.Fatalf("having the webhook mark pods: %v", err)
	}
	for _, mode := range []struct {
		runtimeWebhook, first string
		says                  []string
		off                   bool // injection is switched off for the namespaces, and Prerig does not know of it
	}{
		{"Keep", "y", []string{"renders its own template over it at admission"}, false},
		{"Disable", "x", []string{"so the pod is not marked", "nothing keeps the cluster's webhook away"}, false},
		{"Keep", "q", nil, true},
	} {
		name := i.Name + ", runtimeWebhook: " + mode.runtimeWebhook
		if mode.off {
			name += ", injection switched off"
			if err := webhook.switchOff(t.Context(), i.Namespaces()); err != nil {
				t.Fatalf("switching injection off: %v", err)
			}
		}
		with := *prerig
		with.Policy = withField(t, prerig.Policy, mode.runtimeWebhook, "spec", "istio", "runtimeWebhook")
		cases, err := runLeftOn(t.Context(), webhook, plain, &with, mode.first, mode.says, append([]*unstructured.Unstructured{acceptedOnceRenderedAgain()}, workloads...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		judgeLeftOn(t, name, cases)
	}
}

// switchOff labels namespaces as Istio's documentation says, so that no webhook of Istio's sees their pods, whatever the pods say.
func (c *Cluster) switchOff(ctx context.Context, all []oracle.Namespace) error {
	namespaces := c.dynamic.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, one := range all {
		patch := []byte(`{"metadata":{"labels":{"istio-injection":"disabled","istio.io/rev":null}}}`)
		if _, err := namespaces.Patch(ctx, one.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	// The API server learns of it a little later: a pod that asks for injection tells.
	return c.pollUntilReady(ctx, func(ctx context.Context) error {
		for _, one := range all {
			pod := newUnstructuredObject(map[string]any{
				"apiVersion": "v1", "kind": "Pod",
				"metadata": map[string]any{"name": "asks", "namespace": one.Name, "labels": map[string]any{"sidecar.istio.io/inject": "true", "istio.io/rev": "canary"}},
				"spec":     map[string]any{"containers": []any{map[string]any{"name": "app", "image": "app"}}},
			})
			made, err := c.create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			if err != nil {
				return err
			}
			if made.GetAnnotations()["sidecar.istio.io/status"] != "" {
				return fmt.Errorf("a pod of %s is injected into", one.Name)
			}
		}
		return nil
	})
}

// withField writes a policy with another value of a field, and returns its path.
func withField(t *testing.T, policy, value string, field ...string) string {
	t.Helper()
	text, err := os.ReadFile(policy)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := decodeAll(text)
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	set := 0
	for _, obj := range objects {
		if obj.GetKind() == "InjectionPolicy" {
			if err := unstructured.SetNestedField(obj.Object, value, field...); err != nil {
				t.Fatal(err)
			}
			set++
		}
		one, err := yaml.Marshal(obj.Object)
		if err != nil {
			t.Fatal(err)
		}
		out = append(append(out, "---\n"...), one...)
	}
	if set != 1 {
		t.Fatalf("there are %d policies", set)
	}
	path := filepath.Join(t.TempDir(), "prerig.yaml")
	if err := os.WriteFile(path, out, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// runLeftOn injects into the workloads, under names that begin with first, and has both clusters make pods of the same objects.
func runLeftOn(ctx context.Context, webhook, plain *Cluster, prerig *Prerig, first string, says []string, workloads []*unstructured.Unstructured) ([]*leftOn, error) {
	var cases []*leftOn
	var injected []*unstructured.Unstructured
	for _, w := range workloads {
		// CronJobs wait for the next minute, and the webhook sees the same pods of Jobs.
		if w.GetKind() == "CronJob" || w.GetAnnotations()[choosesTemplates] != "" {
			continue
		}
		w = w.DeepCopy()
		original := w.DeepCopy()
		if name := w.GetName(); name != "" {
			w.SetName(first + name[1:])
			original.SetName("o" + w.GetName())
		}
		out, said, err := prerig.injectWorkload(ctx, w)
		if err != nil {
			return nil, err
		}
		if out == nil || !injectedInto(out) {
			continue
		}
		c := &leftOn{original: original, injected: out}
		for _, one := range says {
			c.warned = c.warned || strings.Contains(said, one)
		}
		cases, injected = append(cases, c), append(injected, out)
	}
	var byWebhook, byPlain []Outcome
	group, both := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		byWebhook, err = webhook.Run(both, injected)
		return err
	})
	group.Go(func() (err error) {
		byPlain, err = plain.Run(both, injected)
		return err
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	for i, c := range cases {
		c.webhook, c.plain = byWebhook[i], byPlain[i]
		if c.webhook.Pod != nil && c.plain.Pod != nil {
			c.differences = Compare(c.webhook.Pod, c.plain.Pod, map[string]int{})
		}
		if c.warned && c.webhook.Pod != nil && c.plain.Pod == nil {
			admitted, err := webhook.Run(ctx, []*unstructured.Unstructured{c.original})
			if err != nil {
				return nil, err
			}
			c.admission = admitted[0]
		}
	}
	return cases, nil
}

// injectedInto reports whether a workload has Istio's status annotation, and leaves the choice of templates to the webhook.
func injectedInto(workload *unstructured.Unstructured) bool {
	template := []string{"spec", "template"}
	switch workload.GetKind() {
	case "Pod":
		template = nil
	case "PodTemplate":
		template = []string{"template"}
	}
	annotations, _, _ := unstructured.NestedStringMap(workload.Object, append(template, "metadata", "annotations")...)
	return annotations["sidecar.istio.io/status"] != "" && annotations[choosesTemplates] == ""
}

// judgeLeftOn fails the test for each pod that is not what Prerig has said.
func judgeLeftOn(t *testing.T, name string, cases []*leftOn) {
	t.Helper()
	warned, left, refused := 0, 0, 0
	classes, examples := map[string]int{}, map[string]oracle.Difference{}
	for _, c := range cases {
		about := fmt.Sprintf("%s: %s %s/%s", name, c.injected.GetKind(), c.injected.GetNamespace(), c.injected.GetName())
		switch {
		case c.plain.Pod == nil && c.webhook.Pod == nil:
			refused++
		case c.warned && c.webhook.Pod == nil:
			refused++ // by the webhook
			t.Logf("%s: %s", about, c.webhook)
		case c.warned && c.plain.Pod == nil && c.admission.Pod == nil:
			refused++ // as the original is, until the webhook comes a second time
			t.Logf("%s: %s; the webhook's own: %s", about, c.plain, c.admission)
		case c.webhook.Pod == nil || c.plain.Pod == nil:
			t.Errorf("%s: with the webhook %s, without %s", about, c.webhook, c.plain)
		case c.warned:
			if warned++; c.webhook.Pod.GetAnnotations()[mark] == "" {
				t.Errorf("%s: Prerig warns that the webhook comes, and it does not", about)
			}
			for _, d := range c.differences {
				if !strings.Contains(d.Place, mark) {
					classes[differenceClass(d)]++
					examples[differenceClass(d)] = d
				}
			}
		default:
			left++
			for _, d := range c.differences {
				t.Errorf("%s: is not what was committed, and Prerig does not warn: %s", about, d)
			}
		}
	}
	t.Logf("%s: of %d injected workloads the webhook renders %d again as Prerig warns, leaves %d alone, and %d get no pod", name, len(cases), warned, left, refused)
	for place, n := range classes {
		t.Logf("%6d  %s differs after the webhook, as %s", n, place, examples[place])
	}
	if warned+left == 0 {
		t.Errorf("%s: nothing was compared", name)
	}
}
