// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/internal/corpustest"
)

// objects reads a stream, with the items of lists.
func objects(t *testing.T, path string) []map[string]any {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]any
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		doc, err := reader.Read()
		if err != nil {
			return out
		}
		var obj map[string]any
		if err := yaml.Unmarshal(doc, &obj); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		items, ok := obj["items"].([]any)
		if !ok {
			items = []any{obj}
		}
		for _, i := range items {
			if m, ok := i.(map[string]any); ok {
				out = append(out, m)
			}
		}
	}
}

// TestDeclaredOwnerInCorpus compares Declared with the owner in upstream's golden files.
func TestDeclaredOwnerInCorpus(t *testing.T) {
	dir := corpustest.Dir(t)
	lists, err := filepath.Glob(filepath.Join(dir, "*", "cases.yaml"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	r, compared := registry(t), 0
	for _, list := range lists {
		data, err := os.ReadFile(list)
		if err != nil {
			t.Fatal(err)
		}
		var cases []struct{ Name, Input, Expected string }
		if err := yaml.Unmarshal(data, &cases); err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			if c.Expected == "" {
				continue
			}
			root := filepath.Dir(list)
			in, want := objects(t, filepath.Join(root, c.Input)), objects(t, filepath.Join(root, c.Expected))
			if len(in) != len(want) {
				t.Errorf("%s: %d objects in, %d expected", c.Name, len(in), len(want))
				continue
			}
			for i := range in {
				compared += compareOwner(t, r, filepath.Base(root)+" "+c.Name, in[i], want[i])
			}
		}
	}
	t.Logf("%d owners compared", compared)
	if compared == 0 {
		t.Error("no golden file names an owner")
	}
}

func compareOwner(t *testing.T, r *Registry, name string, in, want map[string]any) int {
	t.Helper()
	before, err := r.Templates(in)
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
	after, err := r.Templates(want)
	if err != nil || len(before) != len(after) {
		t.Errorf("%s: %d templates in, %d expected, %v", name, len(before), len(after), err)
		return 0
	}
	n := 0
	for i := range before {
		owner := env(after[i].Pod, "ISTIO_META_OWNER")
		if owner == "" {
			continue
		}
		n++
		o := before[i].Declared
		if o.Namespace == "" {
			o.Namespace = "default"
		}
		got := "kubernetes://apis/" + o.APIVersion + "/namespaces/" + o.Namespace + "/" + strings.ToLower(o.Kind) + "s/" + o.Name
		if before[i].Owner.Kind == "CronJob" && o.Kind == "CronJob" && before[i].Path == nil {
			got = strings.Replace(got, "apis/batch/v1/", "apis/batch/v1beta1/", 1) // A pod of 1.8; see OwnerFor.
		}
		if got != owner {
			t.Errorf("%s: got %s, want %s", name, got, owner)
		}
	}
	return n
}

func env(pod map[string]any, key string) string {
	spec, _ := pod["spec"].(map[string]any)
	for _, list := range []string{"containers", "initContainers"} {
		containers, _ := spec[list].([]any)
		for _, c := range containers {
			container, _ := c.(map[string]any)
			vars, _ := container["env"].([]any)
			for _, v := range vars {
				if v, _ := v.(map[string]any); v["name"] == key {
					s, _ := v["value"].(string)
					return s
				}
			}
		}
	}
	return ""
}
