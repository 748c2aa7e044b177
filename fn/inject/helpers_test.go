// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/prerig/prerig/fn/istio"
)

func newInjector(t *testing.T, o istio.Options) *istio.Injector {
	t.Helper()
	in, err := istio.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// injectYAML injects the only workload of a YAML text.
func injectYAML(t *testing.T, in *istio.Injector, text string) *corev1.Pod {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var out *corev1.Pod
	for _, obj := range readObjects(t, path) {
		for _, tmpl := range templates(t, obj) {
			res, err := Istio(in, Request{Pod: tmpl.Pod, Owner: tmpl.OwnerFor(in.Profile().Release()), Namespace: Namespace{Name: "default"}})
			if err != nil {
				t.Fatal(err)
			}
			if out != nil {
				t.Fatal("more than one workload")
			}
			out = asPod(t, res.Pod)
		}
	}
	if out == nil {
		t.Fatal("no workload")
	}
	return out
}

func containerNames(list []corev1.Container) []string {
	out := make([]string, len(list))
	for i, c := range list {
		out[i] = c.Name
	}
	return out
}

func containerOf(t *testing.T, list []corev1.Container, name string) corev1.Container {
	t.Helper()
	i := slices.IndexFunc(list, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("there is no container %s among %v", name, containerNames(list))
	}
	return list[i]
}

func envOf(c corev1.Container, name string) string {
	for _, e := range c.Env {
		if e.Name == name {
			return strings.TrimSpace(e.Value)
		}
	}
	return "(not set)"
}
