// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// othersAtOnce is how many policies are bound in one namespace: the API server cuts warnings off where they have more than 4096 letters.
const othersAtOnce = 6

func othersNamespace(i int) string { return fmt.Sprintf("others-%d", i) }

// TestPoliciesOfOthers has the API server and prerig gate evaluate the ValidatingAdmissionPolicies below PRERIG_POLICIES, which are other
// people's, for the objects there and for those of the gate's own cases. Each policy is bound with the action Warn, so that all of them
// are heard about each object.
func TestPoliciesOfOthers(t *testing.T) {
	dir := os.Getenv("PRERIG_POLICIES")
	if dir == "" {
		t.Skip("PRERIG_POLICIES is not set")
	}
	c := startedPolicies(t)
	o := readOthers(t, dir)
	for i := range o.namespaces() {
		if err := c.AddNamespace(t.Context(), othersNamespace(i), nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, obj := range o.definitions {
		if err := tryGate(t, c.Cluster, obj); err != nil {
			t.Fatal(err)
		}
	}
	c.asked.forgetKinds()
	for _, obj := range slices.Concat(o.parameters, o.policies, o.bindings) {
		if _, err := c.Create(t.Context(), obj); err != nil {
			t.Fatalf("%s %s: %v", obj.GetKind(), obj.GetName(), err)
		}
	}
	c.mark(t)
	found := o.findings(t)
	same, warnings, otherwise := 0, 0, 0
	for i, obj := range o.objects {
		answer, ok := c.ask(t, obj)
		if !ok {
			otherwise++
			continue
		}
		want := slices.DeleteFunc(answer.Warnings, func(w string) bool { return !strings.HasPrefix(w, "Validation failed") })
		warnings += len(want)
		if slices.Equal(want, found[i]) && answer.Refused == "" {
			same++
			continue
		}
		t.Errorf("%s %s:\nserver %q %s\ngate   %s", obj.GetKind(), obj.GetName(), answer.Refused, strings.Join(want, "\n       "), strings.Join(found[i], "\n       "))
	}
	t.Logf("%d policies, %d objects: %d with the same %d warnings, %d refused by something else", len(o.policies), len(o.objects), same, warnings, otherwise)
}

// others are what a directory has.
type others struct {
	definitions, policies, bindings, parameters, objects []*unstructured.Unstructured
}

func readOthers(t *testing.T, dir string) *others {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, root := range []string{dir, policyCases} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			read, _ := decodeAll(content) // what cannot be read is not compared
			for _, obj := range read {
				if obj.GetKind() != "" && obj.GetAPIVersion() != "" && (root == dir || obj.GroupVersionKind().Group != "admissionregistration.k8s.io") {
					all = append(all, obj)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o := &others{}
	wanted := map[string][]string{} // the policies by the kinds of their parameters
	for _, obj := range all {
		switch obj.GetKind() {
		case "CustomResourceDefinition":
			o.definitions = append(o.definitions, obj)
		case "ValidatingAdmissionPolicy":
			o.policies = append(o.policies, obj)
			kind, _, _ := unstructured.NestedString(obj.Object, "spec", "paramKind", "kind")
			wanted[kind] = append(wanted[kind], obj.GetName())
		}
	}
	for _, obj := range all {
		kind := obj.GetKind()
		switch {
		case len(wanted[kind]) > 0 && !slices.ContainsFunc(o.parameters, func(p *unstructured.Unstructured) bool { return p.GetKind() == kind }):
			o.parameters = append(o.parameters, obj)
			for _, name := range wanted[kind] {
				o.bind(name, obj.GetName())
			}
		case len(wanted[kind]) == 0 && !strings.Contains(kind, "Policy") && !strings.Contains(kind, "List") && kind != "CustomResourceDefinition" && kind != "Namespace":
			for i := range o.namespaces() {
				placed := obj.DeepCopy()
				placed.SetNamespace(othersNamespace(i))
				placed.SetName(fmt.Sprintf("o%d-%s", len(o.objects), obj.GetName()))
				o.objects = append(o.objects, placed)
			}
		}
	}
	for _, name := range wanted[""] {
		o.bind(name, "")
	}
	return o
}

// namespaces is how many are needed.
func (o *others) namespaces() int { return (len(o.policies) + othersAtOnce - 1) / othersAtOnce }

func (o *others) bind(policy, parameter string) {
	place := othersNamespace(len(o.bindings) / othersAtOnce)
	spec := map[string]any{"policyName": policy, "validationActions": []any{"Warn"}, "matchResources": map[string]any{
		"namespaceSelector": map[string]any{"matchLabels": map[string]any{"kubernetes.io/metadata.name": place}},
	}}
	if parameter != "" {
		spec["paramRef"] = map[string]any{"name": parameter, "parameterNotFoundAction": "Deny"}
	}
	o.bindings = append(o.bindings, newUnstructuredObject(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding", "metadata": map[string]any{"name": "of-" + policy}, "spec": spec,
	}))
}

// findings are the warnings that prerig gate has about each object.
func (o *others) findings(t *testing.T) [][]string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, list []*unstructured.Unstructured) {
		for i, obj := range list {
			text, err := json.Marshal(obj.Object)
			if err == nil {
				err = os.MkdirAll(filepath.Join(dir, name), 0o700)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, name, fmt.Sprintf("%06d.json", i)), text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var namespaces []*unstructured.Unstructured
	for i := range o.namespaces() {
		namespaces = append(namespaces, newUnstructuredObject(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": othersNamespace(i)}}))
	}
	write("cluster", slices.Concat(o.definitions, o.parameters, o.policies, o.bindings, namespaces))
	write("objects", o.objects)
	command := exec.CommandContext(t.Context(), builtPrerig(t), "gate", "--as-is", "-o", "json", "--fail-on", "never", "--as", "administrator", "--as-group", "system:masters",
		"--kubernetes-version", kubernetesVersion(), "--policies", filepath.Join(dir, "cluster"), filepath.Join(dir, "objects"))
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	var report struct {
		Results []gateFinding `json:"results"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	found := make([][]string, len(o.objects))
	for _, f := range report.Results {
		switch {
		case strings.HasPrefix(f.Message, "the pods of "):
		case f.Code == "policy-not-evaluated", f.Code == "policy-invalid":
			t.Logf("%s: %s", f.Code, f.Message)
		case strings.HasPrefix(f.Message, "Validation failed"):
			var i int
			if _, err := fmt.Sscanf(filepath.Base(f.File), "%d.json", &i); err != nil {
				t.Fatal(err)
			}
			found[i] = append(found[i], f.Message)
		}
	}
	for _, list := range found {
		slices.Sort(list)
	}
	return found
}
