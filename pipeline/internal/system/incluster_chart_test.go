// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/prerig/prerig/internal/testprograms"
)

// helm runs Helm itself.
func (c *inCluster) helm(args ...string) (string, error) {
	c.t.Helper()
	dir, err := testprograms.Build(testprograms.Helm)
	if err != nil {
		c.t.Fatal(err)
	}
	cmd := exec.CommandContext(c.t.Context(), filepath.Join(dir, testprograms.Helm.Name), append([]string{"--kubeconfig", c.kubeconfig}, args...)...)
	home := c.t.TempDir()
	cmd.Env = append(cmd.Environ(), "HELM_CACHE_HOME="+home, "HELM_CONFIG_HOME="+home, "HELM_DATA_HOME="+home)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (c *inCluster) mustHelm(args ...string) string {
	c.t.Helper()
	out, err := c.helm(args...)
	if err != nil {
		c.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// TestInClusterChart installs, upgrades and uninstalls the chart with Helm: the pod is admitted, a pipeline comes up with the configuration and the
// ServiceAccount of the release, and neither it nor what it has published goes with the release.
func TestInClusterChart(t *testing.T) {
	c := newInCluster(t, "charted", "chartpipes")
	c.apply(namespaceGVR, object("v1", "Namespace", "", "charted", map[string]any{"metadata": map[string]any{
		"labels": map[string]any{"pod-security.kubernetes.io/enforce": "restricted"},
	}}))
	chart := filepath.Join(c.root, "deploy", "chart")
	c.mustHelm("install", "render", chart, "-n", "charted", "--skip-crds", "--set", "secretNamespaces={chartpipes}")
	c.await("the pod", func(ctx context.Context) error {
		_, err := c.dynamic.Resource(podGVR).Namespace("charted").Get(ctx, "render-0", metav1.GetOptions{})
		return err
	})
	f := prepareAlone(t, nil)
	f.git.Username, f.git.Password = "shop", "password-of-shop"
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	c.configure(f, "charted", "render")
	f.start()
	c.apply(secretGVR, object("v1", "Secret", "chartpipes", "git", map[string]any{"stringData": map[string]any{
		"username": "shop", "password": "password-of-shop", ".hosts": f.git.URL,
	}}))
	c.apply(renderPipelines, c.parse(strings.Replace(inClusterPipeline("chartpipes", "web", f.repository.URL, ""), "name: mesh", "builtIn: istio", 1)))
	c.reads(renderPipelines, "chartpipes", "web", kstatus.CurrentStatus, "1 object")
	published := f.repository.Git("rev-parse", "rendered")

	if out, err := c.helm("upgrade", "render", chart, "-n", "charted", "--set", "replicas=2"); err == nil || !strings.Contains(out, "nats") {
		t.Errorf("two replicas without NATS are accepted:\n%s", out)
	}
	c.mustHelm("upgrade", "render", chart, "-n", "charted", "--reuse-values", "--set", "replicas=2,nats.url=nats://nats.nats.svc:4222,ingress.enabled=true,ingress.host=prerig.example.com")
	installed, err := c.dynamic.Resource(mapGVR).Namespace("charted").Get(t.Context(), "render", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _, _ := unstructured.NestedString(installed.Object, "data", "prerig.yaml"); !strings.Contains(text, "url: nats://nats.nats.svc:4222") {
		t.Errorf("the configuration is\n%s", text)
	}
	f.stop()
	c.mustHelm("uninstall", "render", "-n", "charted")
	if got := f.repository.Git("rev-parse", "rendered"); got != published || c.pipeline("chartpipes", "web") == nil {
		t.Errorf("uninstalling has changed %s to %s, or deleted the pipeline", published, got)
	}
	claims := schemaOf("v1", "persistentvolumeclaims")
	if _, err := c.dynamic.Resource(claims).Namespace("charted").Get(t.Context(), "state-render-0", metav1.GetOptions{}); err != nil {
		t.Errorf("the volume went with the release: %v", err)
	}
}

// TestInClusterChartIsTheBase has the chart with its defaults make what the kustomization makes.
func TestInClusterChartIsTheBase(t *testing.T) {
	c := newInCluster(t)
	chart := c.byName(c.mustHelm("template", "prerig", filepath.Join(c.root, "deploy", "chart"), "-n", "prerig", "--skip-tests"))
	base := c.byName(c.kubectl("kustomize", filepath.Join(c.root, "deploy", "base")))
	delete(base, "Namespace/prerig")
	if len(base) < 8 {
		t.Errorf("the base has only %d objects", len(base))
	}
	for name, want := range base {
		got := chart[name]
		if got == nil {
			t.Errorf("the chart lacks %s", name)
			continue
		}
		if !reflect.DeepEqual(got.Object, want.Object) {
			t.Errorf("%s differs: the chart has\n%v\nthe base\n%v", name, got.Object, want.Object)
		}
	}
	if len(chart) != len(base) {
		t.Errorf("the chart makes %d objects, the base %d", len(chart), len(base))
	}
}

// TestInClusterChartWithNumbersAsNames has names that YAML takes for numbers and booleans stay names.
func TestInClusterChartWithNumbersAsNames(t *testing.T) {
	c := newInCluster(t)
	text := c.mustHelm("template", "true", filepath.Join(c.root, "deploy", "chart"), "-n", "456",
		"--set-string", "secretNamespaces={1e3},networkPolicy.adminNamespaces={0},persistence.storageClassName=789")
	all := c.byName(text)
	for _, name := range []string{"StatefulSet/true", "Service/true", "ConfigMap/true", "ClusterRole/true", "ClusterRole/true-secrets", "RoleBinding/true-secrets"} {
		if all[name] == nil {
			t.Errorf("there is no %s", name)
			continue
		}
		if got, want := all[name].GetLabels()["app.kubernetes.io/name"], "true"; got != want {
			t.Errorf("%s has the label %q", name, got)
		}
	}
	if binding := all["RoleBinding/true-secrets"]; binding != nil && binding.GetNamespace() != "1e3" {
		t.Errorf("the namespace of the binding is %v", binding.Object["metadata"])
	}
	for name, o := range all {
		if path, value := numberAsName(o.Object, ""); path != "" {
			t.Errorf("%s: %s is %v of type %T", name, path, value, value)
		}
	}
}

// numberAsName returns a field of an object that is a name and no string.
func numberAsName(value any, at string) (path string, found any) {
	switch value := value.(type) {
	case map[string]any:
		for key, one := range value {
			switch key {
			case "name", "namespace", "serviceName", "serviceAccountName", "storageClassName", "kubernetes.io/metadata.name", "app.kubernetes.io/name":
				if _, ok := one.(string); !ok {
					return at + "." + key, one
				}
			}
			if path, found = numberAsName(one, at+"."+key); path != "" {
				return path, found
			}
		}
	case []any:
		for i, one := range value {
			if path, found = numberAsName(one, fmt.Sprintf("%s[%d]", at, i)); path != "" {
				return path, found
			}
		}
	}
	return "", nil
}

// byName reads a stream of objects, without what says only how they were made.
func (c *inCluster) byName(text string) map[string]*unstructured.Unstructured {
	c.t.Helper()
	out := map[string]*unstructured.Unstructured{}
	reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			c.t.Fatal(err)
		}
		o := c.parse(string(bytes.TrimSpace(doc)))
		if o.GetKind() == "" {
			continue
		}
		labels := o.GetLabels()
		delete(labels, "helm.sh/chart")
		delete(labels, "app.kubernetes.io/managed-by")
		o.SetLabels(labels)
		unstructured.RemoveNestedField(o.Object, "spec", "template", "metadata", "annotations")
		if configuration, ok, _ := unstructured.NestedString(o.Object, "data", "prerig.yaml"); ok {
			o.Object["data"] = c.parse(configuration).Object
		}
		containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
		for _, one := range containers {
			delete(one.(map[string]any), "imagePullPolicy") // the API server's default
		}
		if len(containers) > 0 {
			if err := unstructured.SetNestedSlice(o.Object, containers, "spec", "template", "spec", "containers"); err != nil {
				c.t.Fatal(err)
			}
		}
		out[fmt.Sprintf("%s/%s", o.GetKind(), o.GetName())] = o
	}
}
