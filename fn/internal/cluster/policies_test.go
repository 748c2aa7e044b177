// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

var update = flag.Bool("update", false, "write the answers of the API server to admission policies anew")

// policyCases are tried here and, with the answers that are recorded beside them, by the tests of the gate.
const policyCases = "../../../pipeline/render/engine/apiserver/testdata/admission"

// policyAnswer is what the API server says of an object.
type policyAnswer struct {
	Refused  string   `json:"refused,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// TestPolicies asks the API server about the cases of the gate: each object that names no namespace, in each namespace of its file.
// With -update it records the answers, else it compares them with those that are recorded.
func TestPolicies(t *testing.T) {
	c := startedPolicies(t)
	names, err := filepath.Glob(filepath.Join(policyCases, "*.yaml"))
	if err != nil || len(names) == 0 {
		t.Fatalf("looking for the cases: %v", err)
	}
	for _, name := range names {
		answers := c.answers(t, gateObjects(t, name))
		refused, warned := 0, 0
		for _, a := range answers {
			if a.Refused != "" {
				refused++
			}
			if len(a.Warnings) > 0 {
				warned++
			}
		}
		t.Logf("%s: %d answers, %d refused, %d with warnings", filepath.Base(name), len(answers), refused, warned)
		text, err := json.MarshalIndent(answers, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, '\n')
		recorded := strings.TrimSuffix(name, ".yaml") + ".answers.json"
		if *update {
			if err := os.WriteFile(recorded, text, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if was, err := os.ReadFile(recorded); err != nil || !bytes.Equal(was, text) {
			t.Errorf("the answers are not those of %s (%v); -update writes them", recorded, err)
		}
	}
}

// policyCluster is a cluster of which the warnings are heard.
type policyCluster struct {
	*Cluster

	warnings *heard
	asked    *client
	marks    int
}

// heard collects warnings.
type heard struct {
	lock sync.Mutex
	text []string
}

// HandleWarningHeader takes a warning.
func (h *heard) HandleWarningHeader(_ int, _, text string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	h.text = append(h.text, text)
}

func startedPolicies(t *testing.T) *policyCluster {
	t.Helper()
	if os.Getenv(chosenKubernetes) != "" {
		t.Skip("the answers are recorded of the newest Kubernetes alone")
	}
	c := &policyCluster{Cluster: started(t, programs(t, "etcd", "kube-apiserver", "kube-controller-manager"), Options{}), warnings: &heard{}}
	config := c.restConfig()
	var err error
	if c.asked, err = newClient(c.restConfig()); err != nil {
		t.Fatal(err)
	}
	config.WarningHandler = c.warnings
	if c.asked.dynamic, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	return c
}

// answers sets up what a file has for the cluster, and asks about its other objects.
func (c *policyCluster) answers(t *testing.T, objects []*unstructured.Unstructured) map[string]policyAnswer {
	t.Helper()
	var asked, made []*unstructured.Unstructured
	var namespaces []string
	for _, obj := range objects {
		group := obj.GroupVersionKind().Group
		switch {
		case obj.GetKind() == "Namespace":
			namespaces = append(namespaces, obj.GetName())
			if err := c.AddNamespace(t.Context(), obj.GetName(), obj.GetLabels(), obj.GetAnnotations()); err != nil {
				t.Fatal(err)
			}
		case group == "admissionregistration.k8s.io" || obj.GetNamespace() != "":
			made = append(made, obj)
		default:
			asked = append(asked, obj)
		}
	}
	for _, obj := range made {
		if _, err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	c.mark(t)
	out := map[string]policyAnswer{}
	for _, namespace := range namespaces {
		for _, obj := range asked {
			placed := obj.DeepCopy()
			placed.SetNamespace(namespace)
			if a, ok := c.ask(t, placed); ok {
				out[namespace+"/"+obj.GetKind()+"/"+obj.GetName()] = a
			}
		}
	}
	return out
}

// mark waits until the API server evaluates the policies that were made before.
func (c *policyCluster) mark(t *testing.T) {
	t.Helper()
	c.marks++
	name := fmt.Sprintf("mark-%d", c.marks)
	policy := newUnstructuredObject(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"matchConstraints": map[string]any{"resourceRules": []any{map[string]any{
				"apiGroups": []any{""}, "apiVersions": []any{"v1"}, "operations": []any{"CREATE"}, "resources": []any{"configmaps"}, "resourceNames": []any{name},
			}}},
			"validations": []any{map[string]any{"expression": "false"}},
		},
	})
	binding := newUnstructuredObject(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"policyName": name, "validationActions": []any{"Deny"}},
	})
	for _, obj := range []*unstructured.Unstructured{policy, binding} {
		if _, err := c.Create(t.Context(), obj); err != nil {
			t.Fatal(err)
		}
	}
	probe := newUnstructuredObject(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name}})
	err := c.pollUntilReady(t.Context(), func(ctx context.Context) error {
		if _, err := c.Try(ctx, probe); err == nil || !strings.Contains(err.Error(), name+"' with binding") {
			return fmt.Errorf("the policy %s is not evaluated yet: %w", name, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ask returns the answer; false where something else than admission refuses the object.
func (c *policyCluster) ask(t *testing.T, obj *unstructured.Unstructured) (policyAnswer, bool) {
	t.Helper()
	c.warnings.text = nil
	_, err := c.asked.Try(t.Context(), obj)
	var a policyAnswer
	if err != nil {
		message := err.Error()
		_, reason, ok := strings.Cut(message, "is forbidden: ")
		if !ok || !strings.HasPrefix(reason, "ValidatingAdmissionPolicy") && !strings.HasPrefix(reason, "violates PodSecurity") {
			if apierrors.IsInternalError(err) {
				t.Fatal(err)
			}
			t.Logf("refused otherwise: %s %s/%s: %v", obj.GetKind(), obj.GetNamespace(), obj.GetName(), err)
			return a, false
		}
		a.Refused = reason
	}
	for _, w := range c.warnings.text {
		if strings.Contains(w, "ValidatingAdmissionPolicy") || strings.Contains(w, "PodSecurity") && obj.GetKind() == "Pod" {
			a.Warnings = append(a.Warnings, w)
		}
	}
	slices.Sort(a.Warnings)
	return a, true
}
