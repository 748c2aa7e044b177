// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestExamples has the API server look at every object of every example as it is and as it comes out. That what is expected
// there comes out of it is tested where the examples are.
func TestExamples(t *testing.T) {
	c := started(t, programs(t), Options{})
	dirs, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", "*", ".expected"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("looking for the examples: found %d, %v", len(dirs), err)
	}
	e := acceptance{c: c, unknown: map[string]int{}, injected: map[string]int{}, workloads: map[string]int{}, namespaces: map[string]bool{"default": true}}
	for _, expected := range dirs {
		dir := filepath.Dir(expected)
		e.example = filepath.Base(dir)
		t.Run(e.example, func(t *testing.T) {
			work := t.TempDir()
			if err := os.CopyFS(work, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
			e.tryAll(t, work)
			e.tryOutput(t, filepath.Join(work, ".expected", "output.yaml"))
			patch := filepath.Join(work, ".expected", "diff.patch")
			if content, err := os.ReadFile(patch); err == nil && len(content) > 0 {
				command := exec.CommandContext(t.Context(), "git", "apply", "--whitespace=nowarn", patch)
				command.Dir = work
				command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(work))
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("changing the files as is expected: %v\n%s", err, out)
				}
				e.tryAll(t, work)
			}
			if e.workloads[e.example] > 0 && e.injected[e.example] == 0 && reviews[e.example] == "" {
				t.Error("no object came out of it that a sidecar had been added to")
			}
		})
	}
	t.Logf("the API server took %d objects; these kinds are none of its own:", e.taken)
	for _, kind := range slices.Sorted(maps.Keys(e.unknown)) {
		t.Logf("%6d  %s", e.unknown[kind], kind)
	}
}

// partial are files of examples that hold less than objects, and what they are.
var partial = map[string]string{
	"argo-cd/sidecar.yaml": "a patch of Argo CD's own Deployment",
}

// reviews are examples that print no objects, and what they print.
var reviews = map[string]string{
	"review-an-upgrade": "what the reviewers of an upgrade read",
}

// injected reports whether the pods of an object carry what an injection writes down of itself.
func injected(obj *unstructured.Unstructured) bool {
	text, err := obj.MarshalJSON()
	return err == nil && (bytes.Contains(text, []byte(`"sidecar.istio.io/status"`)) || bytes.Contains(text, []byte(`"sidecar.prerig.dev/`)))
}

// hasPods reports whether Pods are made of an object, or it is one.
func hasPods(obj *unstructured.Unstructured) bool {
	for _, path := range [][]string{
		{"spec", "template", "spec", "containers"}, {"spec", "jobTemplate", "spec", "template", "spec", "containers"}, {"spec", "containers"},
	} {
		if _, ok, _ := unstructured.NestedFieldNoCopy(obj.Object, path...); ok {
			return true
		}
	}
	return false
}

// acceptance is what the API server says of objects.
type acceptance struct {
	c          *Cluster
	taken      int
	unknown    map[string]int // objects by a kind that it does not know
	injected   map[string]int // objects that a sidecar has come to, by example
	workloads  map[string]int // objects with Pods, by example; one of alerts has none
	example    string         // the one that is looked at
	namespaces map[string]bool
}

// tryAll tries all objects in the manifests of a directory.
func (a *acceptance) tryAll(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Name() == ".expected", d.IsDir() && d.Name() == "templates": // those of a chart are no manifests yet
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(path) != ".yaml":
			return nil
		}
		if name, _ := filepath.Rel(filepath.Dir(dir), path); partial[a.example+strings.TrimPrefix(name, filepath.Base(dir))] != "" {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		objects, err := decodeAll(content)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for _, obj := range objects {
			a.try(t, path, obj)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// tryOutput tries the objects that an example prints, up to where it prints something else: a diff, or what it has to say.
func (a *acceptance) tryOutput(t *testing.T, path string) {
	t.Helper()
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	content, _, _ = bytes.Cut(content, []byte("\n--- a/")) // the head of a diff
	objects, _ := decodeAll(content)
	for _, obj := range objects {
		a.try(t, path, obj)
	}
}

func (a *acceptance) try(t *testing.T, path string, obj *unstructured.Unstructured) {
	t.Helper()
	if items, ok := obj.Object["items"].([]any); ok {
		for _, item := range items {
			if m, ok := item.(map[string]any); ok {
				a.try(t, path, newUnstructuredObject(m))
			}
		}
		return
	}
	if obj.GetKind() == "" {
		return // a file that only looks like a manifest, such as values
	}
	if n := obj.GetNamespace(); n != "" && !a.namespaces[n] {
		if err := a.c.AddNamespace(t.Context(), n, nil, nil); err != nil {
			t.Fatal(err)
		}
		a.namespaces[n] = true
	}
	if hasPods(obj) {
		a.workloads[a.example]++
	}
	_, err := a.c.Try(t.Context(), obj)
	switch {
	case meta.IsNoMatchError(err):
		a.unknown[obj.GetAPIVersion()+" "+obj.GetKind()]++
		if template, ok, _ := unstructured.NestedMap(obj.Object, "spec", "template"); ok && hasPods(obj) {
			// Pods are made of it all the same.
			a.try(t, path, newUnstructuredObject(map[string]any{
				"apiVersion": "v1", "kind": "PodTemplate", "template": template,
				"metadata": map[string]any{"name": obj.GetName(), "namespace": obj.GetNamespace()},
			}))
		}
	case apierrors.IsAlreadyExists(err), err == nil:
		a.taken++
		if injected(obj) {
			a.injected[a.example]++
		}
	default:
		t.Errorf("%s: %s %s: %v", path, obj.GetKind(), obj.GetName(), err)
	}
}
