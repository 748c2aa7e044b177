// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// alikeWorkloads is how many workloads a set has.
const alikeWorkloads = 24

// addAlike adds sets of namespaces with policies, and makes up workloads for them.
func (b *admitBench) addAlike(t *testing.T, phase, n int) []*alikeSet {
	t.Helper()
	var out []*alikeSet
	for i := range n {
		s := b.maker.alike(fmt.Sprintf("alike-%d-%d", phase, i), alikeWorkloads)
		b.createAll(t, s.objects)
		out = append(out, s)
	}
	b.awaitMutation(t, fmt.Sprintf("mark-alike-%d", phase))
	return out
}

// compareAlike compares what prerig admit makes of workloads that are alike with what the API server makes of the pods of their controllers.
func (b *admitBench) compareAlike(t *testing.T, mesh, cluster string, sets []*alikeSet) {
	t.Helper()
	clients := b.controllerClients(t)
	var outcomes []string
	shared := 0
	for i, s := range sets {
		// Other policies read other values, so that nothing would be alike beside them.
		flags := slices.Repeat([]string{"--why"}, i%4/3)
		got := b.admitTexts(t, withPoliciesOf(t, cluster, s.name), s.workloads, flags...)
		own := make([]string, len(got))
		b.each(t, len(got), func(i int) {
			pod, user := controllersPod(t, s.workloads[i])
			own[i] = compareAdmitted(t, clients[user], pod, got[i])
		})
		for _, one := range got {
			if one.Shape > 0 {
				shared++
			}
		}
		outcomes = append(outcomes, own...)
	}
	b.count(t, mesh+", alike, "+fmt.Sprint(shared)+" admitted together", outcomes)
	if shared == 0 {
		t.Error("no workloads are admitted together")
	}
}

// controllerUsers are the service accounts of the controllers that make the pods of a kind.
var controllerUsers = map[string]string{
	"Deployment": "replicaset-controller", "StatefulSet": "statefulset-controller", "DaemonSet": "daemon-set-controller",
	"Job": "job-controller", "CronJob": "job-controller",
}

// controllerClients returns clients that act as the controllers.
func (b *admitBench) controllerClients(t *testing.T) map[string]*client {
	t.Helper()
	out := map[string]*client{}
	for _, name := range controllerUsers {
		config := b.restConfig()
		config.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:kube-system:" + name,
			Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"},
		}
		var err error
		if out[name], err = newClient(config); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// numberBetween is what the name of the object between a workload and its pods ends in. Only a cluster knows it, so pods are compared without.
var numberBetween = map[string]string{"Deployment": "-5d8f7c9b6d", "CronJob": "-29012345"}

// withoutNumbers removes the numbers from a text.
func withoutNumbers(text string) string {
	for _, number := range numberBetween {
		text = strings.ReplaceAll(text, number, "")
	}
	return text
}

// controllersPod returns the pod that the controller of a workload makes, and its user.
func controllersPod(t *testing.T, text string) (*unstructured.Unstructured, string) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	workload := unstructured.Unstructured{Object: object}
	path, owner := []string{"spec", "template"}, workload.GroupVersionKind()
	switch owner.Kind {
	case "Deployment":
		owner.Kind = "ReplicaSet"
	case "CronJob":
		path, owner.Kind = []string{"spec", "jobTemplate", "spec", "template"}, "Job"
	}
	template, found, err := unstructured.NestedMap(object, path...)
	if err != nil || !found {
		t.Fatalf("no template in\n%s", text)
	}
	metadata := template["metadata"].(map[string]any)
	name := workload.GetName() + numberBetween[workload.GetKind()]
	metadata["generateName"], metadata["namespace"] = name+"-", workload.GetNamespace()
	labels := metadata["labels"].(map[string]any)
	switch workload.GetKind() {
	case "Deployment":
		labels["pod-template-hash"] = numberBetween["Deployment"][1:]
	case "StatefulSet":
		metadata["name"] = name + "-0"
		labels["statefulset.kubernetes.io/pod-name"], labels["apps.kubernetes.io/pod-index"] = name+"-0", "0"
		labels["controller-revision-hash"] = "5d8f7c9b6d"
	case "DaemonSet":
		labels["controller-revision-hash"], labels["pod-template-generation"] = "5d8f7c9b6d", "1"
	case "Job", "CronJob":
		labels["job-name"], labels["batch.kubernetes.io/job-name"] = name, name
		labels["controller-uid"], labels["batch.kubernetes.io/controller-uid"] = "0-1-2", "0-1-2"
	}
	metadata["ownerReferences"] = []any{map[string]any{
		"apiVersion": owner.GroupVersion().String(), "kind": owner.Kind, "name": name, "uid": "00000000-0000-0000-0000-000000000000",
		"controller": true, "blockOwnerDeletion": true,
	}}
	pod := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
	return converted(t, pod), controllerUsers[workload.GetKind()]
}

// withPoliciesOf copies a capture with no other admission policies than those of a set, whose names begin with its own.
func withPoliciesOf(t *testing.T, capture, set string) string {
	t.Helper()
	out := t.TempDir()
	err := filepath.WalkDir(capture, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var kept [][]byte
		for one := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var o unstructured.Unstructured
			if err := yaml.Unmarshal(one, &o.Object); err != nil {
				return err
			}
			if !strings.Contains(o.GetKind(), "AdmissionPolicy") || strings.HasPrefix(o.GetName(), set+"-") {
				kept = append(kept, one)
			}
		}
		return os.WriteFile(filepath.Join(out, strings.ReplaceAll(path[len(capture)+1:], "/", "_")), bytes.Join(kept, []byte("\n---\n")), 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
