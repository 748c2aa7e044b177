// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package deploy_test makes what kustomize and Helm make of the manifests, without a cluster. What an API server says of them is in
// pipeline/internal/system.
package deploy_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// objects are those of a build by KIND/NAME.
type objects map[string]*unstructured.Unstructured

// build makes kustomizations by their directories, of which the last, in name, is built. The manifests are in /deploy.
func build(t *testing.T, name string, kustomizations map[string]string) objects {
	t.Helper()
	files := filesys.MakeFsInMemory()
	err := eachFile(".", func(name string, content []byte) error { return files.WriteFile("/deploy/"+name, content) })
	if err != nil {
		t.Fatal(err)
	}
	for dir, text := range kustomizations {
		text = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n" + text
		if err := files.WriteFile(path.Join("/", dir, "kustomization.yaml"), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, path.Join("/", name))
	if err != nil {
		t.Fatal(err)
	}
	text, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}

// template makes what Helm makes of a release of the chart with values.
func template(t *testing.T, release, namespace, values string) (string, error) {
	t.Helper()
	b := tree.NewBuilder(tree.Limits{})
	err := eachFile("chart", func(name string, content []byte) error { return b.Add(name, tree.File, content) })
	if err != nil {
		t.Fatal(err)
	}
	spec := &v1alpha1.Helm{
		Chart: "chart", ReleaseName: release, Namespace: namespace, KubeVersion: "1.33.4",
		Hooks: v1alpha1.HooksKeep, Lookup: v1alpha1.ImpureRefuse, Impure: v1alpha1.ImpureRefuse, IncludeCRDs: new(bool),
	}
	if err := yaml.Unmarshal([]byte(values), &spec.Values); err != nil {
		t.Fatal(err)
	}
	manifests, err := helmchart.Render(t.Context(), tree.NewView(b.Build(), tree.Limits{}), spec, helmchart.Options{})
	var text strings.Builder
	for _, one := range manifests {
		fmt.Fprintf(&text, "---\n%s\n", one.YAML)
	}
	return text.String(), err
}

// install is template of a release named prerig that must succeed.
func install(t *testing.T, values string) objects {
	t.Helper()
	text, err := template(t, "prerig", "prerig", values)
	if err != nil {
		t.Fatalf("%s: %v", values, err)
	}
	return parse(t, text)
}

func eachFile(dir string, do func(name string, content []byte) error) error {
	return fs.WalkDir(os.DirFS("."), dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		return do(name, content)
	})
}

func parse(t *testing.T, text string) objects {
	t.Helper()
	out := objects{}
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(doc, &o.Object); err != nil {
			t.Fatalf("%v in\n%s", err, doc)
		}
		if len(o.Object) == 0 {
			continue
		}
		name := o.GetKind() + "/" + o.GetName()
		if out[name] != nil {
			t.Fatalf("there are two of %s", name)
		}
		out[name] = o
	}
}

// into has an object in its own type; a field that it does not have is an error.
func into[T any](t *testing.T, all objects, name string) *T {
	t.Helper()
	to := new(T)
	if all[name] == nil {
		t.Fatalf("there is no %s", name)
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(all[name].Object, to, true); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return to
}

// portNamed returns the number of a container's port, 0 where it has none of that name.
func portNamed(c corev1.Container, name string) int32 {
	at := slices.IndexFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name })
	if at < 0 {
		return 0
	}
	return c.Ports[at].ContainerPort
}
