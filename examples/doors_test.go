// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// doors are the ways to the engine: each injects the objects of testdata/doors by its policy, in a directory that holds
// both as objects.yaml and policy.yaml, and ends with a YAML stream on standard output.
var doors = map[string]struct {
	requires   []string
	annotation string // for the policy
	files      map[string]string
	run        string
}{
	"command": {run: "prerig inject -p policy.yaml objects.yaml"},
	"kustomize, program": {
		annotation: "config.kubernetes.io/function: |\n      exec: {path: prerig-fn}",
		files:      map[string]string{"kustomization.yaml": "resources: [objects.yaml]\ntransformers: [policy.yaml]\n"},
		run:        "kustomize build --enable-alpha-plugins --enable-exec .",
	},
	"kustomize, image": {
		requires:   []string{"container"},
		annotation: "config.kubernetes.io/function: |\n      container: {image: " + image + "}",
		files:      map[string]string{"kustomization.yaml": "resources: [objects.yaml]\ntransformers: [policy.yaml]\n"},
		run:        "kustomize build --enable-alpha-plugins .",
	},
	"kpt, program": {
		requires: []string{"kpt"},
		files:    map[string]string{"Kptfile": kptfile("exec: prerig-fn")},
		run:      "kpt fn render --allow-exec && cat objects.yaml",
	},
	"kpt, image": {
		requires: []string{"kpt", "container"},
		files:    map[string]string{"Kptfile": kptfile("image: " + image)},
		run:      "kpt fn render --image-pull-policy never && cat objects.yaml",
	},
	"pipeline, kpt": {
		files: map[string]string{"Kptfile": kptfile("image: " + image), "pipelines/doors.yaml": renderPipeline},
		run:   "prerig render --source . --cache cache",
	},
	"pipeline, kustomize": {
		annotation: "config.kubernetes.io/function: |\n      container: {image: " + image + "}",
		files: map[string]string{
			"kustomization.yaml": "resources: [objects.yaml]\ntransformers: [policy.yaml]\n", "pipelines/doors.yaml": renderPipeline,
		},
		run: "prerig render --source . --cache cache",
	},
	"pipeline, policy": {
		files: map[string]string{"pipelines/doors.yaml": renderPipeline + "  policies: [{path: policy.yaml}]\n"},
		run:   "prerig render --source . --cache cache",
	},
	"kpt eval, program": {
		requires: []string{"kpt"},
		run:      "kpt fn eval --exec prerig-fn --fn-config policy.yaml && cat objects.yaml",
	},
}

// renderPipeline renders the directory itself, in the way that its files ask for.
const renderPipeline = `apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: doors}
spec:
  source: {git: {url: "https://git.example.com/doors.git", ref: {branch: main}}}
  publish: [{git: {branch: rendered}}]
  build: {path: .}
`

func kptfile(function string) string {
	return "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: doors}\npipeline:\n  mutators:\n  - " + function + "\n    configPath: policy.yaml\n"
}

// TestDoors expects the same objects from all doors as from the function called with a ResourceList.
func TestDoors(t *testing.T) {
	objects, policy := read(t, "testdata/doors/objects.yaml"), read(t, "testdata/doors/policy.yaml")
	cmd := exec.Command("sh", "-euc", "prerig-fn")
	cmd.Env, cmd.Stdin = environment(t, nil), bytes.NewReader(resourceList(t, objects, policy))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []map[string]any }
	if err := yaml.Unmarshal(out, &list); err != nil {
		t.Fatal(err)
	}
	want := byName(list.Items)
	if n := strings.Count(string(out), "name: istio-proxy\n"); n != 4 {
		t.Fatalf("%d of the workloads have a proxy, want 4:\n%s", n, out)
	}
	for name, door := range doors {
		t.Run(name, func(t *testing.T) {
			env := environment(t, door.requires)
			dir := t.TempDir()
			files := map[string]string{"objects.yaml": string(objects), "policy.yaml": string(policy)}
			for name, text := range door.files {
				files[name] = text
			}
			if door.annotation != "" {
				files["policy.yaml"] = strings.Replace(files["policy.yaml"], "  name: mesh\n", "  name: mesh\n  annotations:\n    "+door.annotation+"\n", 1)
			}
			for name, text := range files {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.Command("sh", "-euc", door.run)
			cmd.Dir, cmd.Env = dir, env
			var stderr strings.Builder
			cmd.Stderr = &stderr
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("%v\n%s", err, stderr.String())
			}
			if diff := cmp.Diff(want, byName(decode(t, out))); diff != "" {
				t.Errorf("its objects are not those of the function (-function +%s):\n%s", name, diff)
			}
		})
	}
}

// resourceList makes the function's input.
func resourceList(t *testing.T, objects, policy []byte) []byte {
	t.Helper()
	var config map[string]any
	if err := yaml.Unmarshal(policy, &config); err != nil {
		t.Fatal(err)
	}
	list, err := yaml.Marshal(map[string]any{
		"apiVersion": "config.kubernetes.io/v1", "kind": "ResourceList", "functionConfig": config, "items": decode(t, objects),
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// decode reads a YAML stream.
func decode(t *testing.T, stream []byte) []map[string]any {
	t.Helper()
	var all []map[string]any
	for doc := range bytes.SplitSeq(stream, []byte("---\n")) {
		var object map[string]any
		if err := yaml.UnmarshalStrict(doc, &object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if object != nil {
			all = append(all, object)
		}
	}
	return all
}

// byName sorts objects, as kustomize does in its own way.
func byName(objects []map[string]any) []map[string]any {
	name := func(o map[string]any) string {
		meta, _ := o["metadata"].(map[string]any)
		kind, _ := o["kind"].(string)
		n, _ := meta["name"].(string)
		return kind + "/" + n
	}
	return slices.SortedFunc(slices.Values(objects), func(a, b map[string]any) int { return strings.Compare(name(a), name(b)) })
}
