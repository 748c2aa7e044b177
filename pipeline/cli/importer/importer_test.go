// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/internal/corpustest"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCases runs every directory below testdata/cases: input.*, options.json, and as the result policy.yaml with messages.txt, or
// error.txt.
func TestCases(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob("testdata/cases/*")
	must(t, err)
	for _, dir := range dirs {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			got := outcome(t, dir)
			if *update {
				write(t, dir, got)
			}
			want := map[string]string{}
			for _, name := range []string{"policy.yaml", "messages.txt", "error.txt"} {
				if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
					want[name] = string(b)
				}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for _, name := range []string{"policy.yaml", "messages.txt", "error.txt"} {
		_ = os.Remove(filepath.Join(dir, name))
	}
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

func outcome(t *testing.T, dir string) map[string]string {
	t.Helper()
	objects, opts := input(t, dir)
	text, imp, err := imported(objects, opts)
	if err != nil {
		return map[string]string{"error.txt": err.Error() + "\n"}
	}
	// The order of the input and a second run change nothing.
	slices.Reverse(objects)
	again, _, err := imported(objects, opts)
	must(t, err)
	if !bytes.Equal(text, again) {
		t.Errorf("another order of the objects gives another policy:\n%s", cmp.Diff(string(text), string(again)))
	}
	for _, word := range []string{"caBundle", "TUlJQmFrZQ", "c2VjcmV0", "s.secret", "managedFields", "BEGIN CERTIFICATE"} {
		if bytes.Contains(text, []byte(word)) {
			t.Errorf("the policy holds %s", word)
		}
	}
	if _, err := v1alpha1.Parse(text); err != nil {
		t.Errorf("the policy does not decode: %v", err)
	}
	var messages strings.Builder
	for _, w := range imp.Warnings {
		messages.WriteString("warning: " + w + "\n")
	}
	for _, n := range imp.Notes {
		messages.WriteString("info: " + n + "\n")
	}
	out := map[string]string{"policy.yaml": string(text)}
	if messages.Len() > 0 {
		out["messages.txt"] = messages.String()
	}
	return out
}

func input(t *testing.T, dir string) ([]Object, Options) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "input.*"))
	must(t, err)
	var objects []Object
	for _, path := range paths {
		data, err := os.ReadFile(path)
		must(t, err)
		os, err := Read(filepath.Base(path), data)
		must(t, err)
		objects = append(objects, os...)
	}
	var opts Options
	if data, err := os.ReadFile(filepath.Join(dir, "options.json")); err == nil {
		must(t, json.Unmarshal(data, &opts))
	}
	return objects, opts
}

func imported(objects []Object, opts Options) ([]byte, *Import, error) {
	imp, err := Policy(objects, opts)
	if err != nil {
		return nil, nil, err
	}
	text, err := Marshal(imp.Policy, imp.Comment())
	return text, imp, err
}

func TestInjectionSettings(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]map[string]string{
		"/inject":                                 nil,
		"/inject/":                                nil,
		"/injected/cluster/a":                     nil,
		"/inject/cluster/a/net/b":                 {"cluster": "a", "net": "b"},
		"/inject/cluster/a/net":                   {"cluster": "a"},
		"/inject/cluster/a--slash--b/":            {"cluster": "a/b"},
		"/inject/:ENV:cluster=a:ENV:net=b/c":      {"cluster": "a", "net": "b/c"},
		"/inject/:ENV:cluster=a:ENV:broken:ENV:x": {"cluster": "a"},
	} {
		if d := cmp.Diff(want, injectionSettings(path)); d != "" {
			t.Errorf("%s (-want +got):\n%s", path, d)
		}
	}
}

// TestOneRevisionInTwoNamespaces imports one of two control planes that have the same revision in two namespaces, as those of OpenShift
// Service Mesh 2 do: the other's webhooks are another's, and give neither a tag nor settings.
func TestOneRevisionInTwoNamespaces(t *testing.T) {
	t.Parallel()
	plane := func(namespace string) string {
		return strings.ReplaceAll(`
apiVersion: v1
kind: ConfigMap
metadata: {name: istio-sidecar-injector-basic, namespace: NS, labels: {istio.io/rev: basic}}
data: {config: "templates: {sidecar: 'spec: {}'}", values: '{"global": {"tag": "1.18.7"}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istiod-basic-NS, labels: {istio.io/rev: basic, istio.io/tag: tag-NS}}
webhooks:
- name: sidecar-injector.istio.io
  clientConfig: {service: {name: istiod-basic, namespace: NS, path: /inject/cluster/NS}}
---
`, "NS", namespace)
	}
	objects, err := Read("cluster", []byte(plane("mesh-a")+plane("mesh-b")))
	must(t, err)
	for namespace, other := range map[string]string{"mesh-a": "mesh-b", "mesh-b": "mesh-a"} {
		imp, err := Policy(objects, Options{Namespace: namespace})
		must(t, err)
		got := map[string]string{}
		for _, w := range imp.Policy.Spec.Istio.Webhooks {
			got[w.Name] = w.Revision
		}
		if d := cmp.Diff(map[string]string{"istiod-basic-" + namespace: "", "istiod-basic-" + other: "basic." + other}, got); d != "" {
			t.Errorf("revisions of webhooks (-want +got):\n%s", d)
		}
		if i := imp.Policy.Spec.Istio; i.Cluster != namespace || cmp.Diff(i.RevisionTags, []string{"tag-" + namespace}) != "" {
			t.Errorf("the settings of %s are of the cluster %q, with the tags %v", namespace, i.Cluster, i.RevisionTags)
		}
	}
}

func TestTag(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"istio/pilot:1.2.3": "1.2.3", "r:5000/pilot": "", "r:5000/pilot:1.2": "1.2", "pilot": "", "pilot:1@sha256:ab": "1", "pilot@sha256:ab": "",
	} {
		if got := imageTag(image); got != want {
			t.Errorf("tag(%s) = %q, want %q", image, got, want)
		}
	}
}

// TestCorpus imports the ConfigMaps of real versions, verbatim.
func TestCorpus(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join(corpustest.Dir(t), "*", "configmaps.yaml"))
	must(t, err)
	if len(paths) == 0 {
		t.Skip("the corpus has no configmaps.yaml")
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(path)
			must(t, err)
			objects, err := Read(path, data)
			must(t, err)
			text, imp, err := imported(objects, Options{})
			must(t, err)
			back, err := v1alpha1.Parse(text)
			must(t, err)
			if d := cmp.Diff(imp.Policy.Spec.Istio.Injector, back.Spec.Istio.Injector); d != "" {
				t.Errorf("(-imported +read back):\n%s", d)
			}
			if back.Spec.Istio.Injector.Config == "" || back.Spec.Istio.MeshConfig == "" {
				t.Error("the config or the mesh config is empty")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// FuzzImport: whatever the objects say, an import gives an error or a policy that can be read back as the same.
func FuzzImport(f *testing.F) {
	paths, err := filepath.Glob("testdata/cases/*/input.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Read("fuzz", data)
		if err != nil {
			return
		}
		imp, err := Policy(objects, Options{})
		if err != nil {
			return
		}
		text, err := Marshal(imp.Policy, imp.Comment())
		if err != nil {
			// What is no valid object makes no valid policy. But a policy that reads as another one is a defect.
			if strings.Contains(err.Error(), "please report") {
				t.Errorf("%v\n%s", err, data)
			}
			return
		}
		if _, err := v1alpha1.Parse(text); err != nil {
			t.Errorf("%v\n%s", err, data)
		}
	})
}
