// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package hermetic

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// inputs are the inputs of all tests that run the binary: our own and, where the conformance corpus is there, its cases.
// Cases with the same configuration are one ResourceList, but for those that are wrong.
func inputs(t *testing.T) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for name, text := range own {
		all[name] = []byte(text)
	}
	corpus := os.Getenv("PRERIG_CORPUS")
	if corpus == "" {
		corpus = filepath.Join("..", "..", "..", "..", "shared", "istio")
	}
	lists, err := filepath.Glob(filepath.Join(corpus, "*", "cases.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if len(lists) == 0 {
		t.Log("no corpus: running on the tests' own inputs only")
	}
	for _, list := range lists {
		dir := filepath.Dir(list)
		var cases []corpusCase
		if err := yaml.Unmarshal(read(t, list), &cases); err != nil {
			t.Fatal(err)
		}
		groups := map[string][]any{}
		for _, c := range cases {
			config, err := yaml.Marshal(c.functionConfig(t, dir))
			if err != nil {
				t.Fatal(err)
			}
			if c.ExpectError != "" {
				config = append(config, "# "+c.Name...)
			}
			groups[string(config)] = append(groups[string(config)], c.items(t, dir)...)
		}
		for i, config := range slices.Sorted(maps.Keys(groups)) {
			var policy any
			if err := yaml.Unmarshal([]byte(config), &policy); err != nil {
				t.Fatal(err)
			}
			list, err := yaml.Marshal(map[string]any{
				"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "functionConfig": policy, "items": groups[config],
			})
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s %d", filepath.Base(dir), i)] = list
		}
	}
	return all
}

// corpusCase is what is read of a case.
type corpusCase struct {
	Name, Input, Config, Values, Mesh, Revision, ExpectError string
	NativeSidecars                                           bool
	IstiodEnv                                                map[string]string
}

// functionConfig is the policy of a case.
func (c corpusCase) functionConfig(t *testing.T, dir string) map[string]any {
	t.Helper()
	version := strings.Split(filepath.Base(dir), ".")
	injector := map[string]any{"config": string(read(t, filepath.Join(dir, c.Config)))}
	istio := map[string]any{
		"version": version[0] + "." + version[1], "injector": injector, "nativeSidecars": "Disabled", "revision": c.Revision,
	}
	if c.NativeSidecars {
		istio["nativeSidecars"] = "Enabled"
	}
	if c.IstiodEnv != nil {
		istio["istiodEnv"] = c.IstiodEnv
	}
	if c.Values != "" {
		injector["values"] = string(read(t, filepath.Join(dir, c.Values)))
	}
	if c.Mesh != "" {
		istio["meshConfig"] = string(read(t, filepath.Join(dir, c.Mesh)))
	}
	return map[string]any{
		"apiVersion": "prerig.dev/v1alpha1", "kind": "InjectionPolicy", "metadata": map[string]any{"name": "mesh"},
		"spec": map[string]any{"istio": istio},
	}
}

// items are the objects of a case's input, each in a namespace of the case's name, as many of them have the same name.
func (c corpusCase) items(t *testing.T, dir string) []any {
	t.Helper()
	var items []any
	for doc := range bytes.SplitSeq(read(t, filepath.Join(dir, c.Input)), []byte("\n---")) {
		var object map[string]any
		if err := yaml.Unmarshal(doc, &object); err != nil || object == nil {
			continue
		}
		if meta, ok := object["metadata"].(map[string]any); ok {
			meta["namespace"] = strings.ToLower(c.Name)
		}
		items = append(items, object)
	}
	return items
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("the corpus names %s, which is not there", path)
	} else if err != nil {
		t.Fatal(err)
	}
	return data
}
