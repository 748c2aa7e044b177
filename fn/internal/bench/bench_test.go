// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

func TestGenerate(t *testing.T) {
	list := map[string]any{}
	if err := yaml.UnmarshalStrict(resourceList(plainTripleStream(3)), &list); err != nil {
		t.Fatal(err)
	}
	items := list["items"].([]any)
	kinds := map[any]int{}
	names := map[any]bool{}
	for _, item := range items {
		object := item.(map[string]any)
		kinds[object["kind"]]++
		names[object["metadata"].(map[string]any)["name"]] = true
	}
	if len(items) != 9 || kinds["Deployment"] != 3 || kinds["Service"] != 3 || kinds["ConfigMap"] != 3 || len(names) != 3 {
		t.Errorf("got %d items, kinds %v, names %v, want three triples", len(items), kinds, names)
	}
	if list["functionConfig"].(map[string]any)["kind"] != "InjectionPolicy" {
		t.Errorf("the functionConfig is %v", list["functionConfig"])
	}
	if bytes.Contains(plainTripleStream(3), []byte("%!")) {
		t.Error("a number is missing in the triple")
	}
}

// TestGenerateForAdmit reads what prerig admit is measured with: each account that a workload names exists.
func TestGenerateForAdmit(t *testing.T) {
	const n = 50
	accounts := map[string]bool{}
	kinds := map[any]int{}
	objects := string(clusterObjects(n)) + "---\n" + strings.TrimSuffix(string(mutatingPolicies()), "---\n")
	for doc := range strings.SplitSeq(objects, "---\n") {
		var object map[string]any
		if err := yaml.UnmarshalStrict([]byte(doc), &object); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		kinds[object["kind"]]++
		metadata := object["metadata"].(map[string]any)
		if object["kind"] == "ServiceAccount" {
			accounts[fmt.Sprint(metadata["namespace"], "/", metadata["name"])] = true
		}
	}
	if kinds["LimitRange"] != namespacesOfMixes || kinds["MutatingAdmissionPolicy"] != admitPolicies || kinds["MutatingAdmissionPolicyBinding"] != admitPolicies {
		t.Errorf("got the kinds %v", kinds)
	}
	workloads := strings.Split(string(mixes[3].workloads(n)), "---\n")
	if len(workloads) != n {
		t.Errorf("got %d workloads", len(workloads))
	}
	for _, doc := range workloads {
		var w appsv1.Deployment // of the other kinds only what they have in common is read
		if err := yaml.Unmarshal([]byte(doc), &w); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		account := cmp.Or(w.Spec.Template.Spec.ServiceAccountName, "default")
		if !accounts[w.Namespace+"/"+account] {
			t.Errorf("the account %s of %s/%s is missing", account, w.Namespace, w.Name)
		}
	}
}

func TestMedian(t *testing.T) {
	got := medianOfSamples([]sample{{Wall: 3 * time.Second, Peak: 10, Out: 7}, {Wall: time.Second, CPU: 5, Peak: 30}, {Wall: 2 * time.Second, Peak: 20}})
	if want := (sample{Wall: 2 * time.Second, CPU: 0, Peak: 20, Out: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
