// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"
	"time"

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

func TestMedian(t *testing.T) {
	got := medianOfSamples([]sample{{Wall: 3 * time.Second, Peak: 10, Out: 7}, {Wall: time.Second, CPU: 5, Peak: 30}, {Wall: 2 * time.Second, Peak: 20}})
	if want := (sample{Wall: 2 * time.Second, CPU: 0, Peak: 20, Out: 7}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
