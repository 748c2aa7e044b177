// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/internal/testprograms"
	"github.com/prerig/prerig/pipeline/cli"
)

const exampleImage = "registry.example.com/shop/web:2.14"

// setImage commits another image to the example's application, and other files.
func (a *argoCD) setImage(image string, more map[string]string) (commit string) {
	a.t.Helper()
	files := map[string]string{"apps/shop/web.yaml": strings.ReplaceAll(a.example["apps/shop/web.yaml"], exampleImage, image)}
	for name, text := range more {
		files[name] = text
	}
	return a.f.repository.Commit(image, files)
}

// arrives waits for the rendered branch to be ahead of a commit, has Argo CD look, and waits for the object. It returns the new commit.
func (a *argoCD) arrives(before, image string) string {
	a.t.Helper()
	var now string
	a.f.eventually("waiting for a rendered commit", func() string {
		if now = a.head(); now == before || now == "" {
			return a.f.describe()
		}
		return ""
	})
	rendered := time.Now()
	a.refresh("argocd", "shop")
	a.runs(image)
	a.t.Logf("from the rendered commit, by a refresh, to the applied object it took %s", time.Since(rendered).Round(time.Millisecond))
	a.isSynced("argocd", "shop", now)
	return now
}

// head is the last commit of the rendered branch, "" where there is none.
func (a *argoCD) head() string {
	a.t.Helper()
	return strings.TrimSpace(a.f.repository.Git("for-each-ref", "--format=%(objectname)", "refs/heads/rendered"))
}

// prerig runs a command of prerig at the fixture's daemon.
func (a *argoCD) prerig(args ...string) string {
	a.t.Helper()
	var out, problems bytes.Buffer
	args = append(args[:1:1], append([]string{"--state", a.f.c.State}, args[1:]...)...)
	if code := cli.Main(context.Background(), args, cli.Streams{Out: &out, Err: &problems}, "test"); code != cli.ExitOK {
		a.t.Errorf("prerig %s ended with %d: %s", args[0], code, problems.String())
	}
	return out.String() + problems.String()
}

// TestArgoCDSyncs has the real Argo CD apply the branch that the daemon publishes, by the example's Application: a first commit, an event,
// a commit that does not render, an object that is gone, a change in the cluster, and a rollback.
func TestArgoCDSyncs(t *testing.T) {
	a := newArgoCD(t, "shop", "team")
	more := "resources:\n- web.yaml\n- more.yaml\n"
	a.example["apps/shop/kustomization.yaml"] = strings.Replace(a.example["apps/shop/kustomization.yaml"], "resources:\n- web.yaml\n", more, 1)
	a.example["apps/shop/more.yaml"] = configMap("shop", "more")
	a.f.repository.Commit("first", a.example)
	a.f.start()
	a.apply(applicationGVR, a.parse(a.example["application.yaml"]))
	t.Cleanup(func() { a.deleteApplicationAtEnd("argocd", "shop") })
	first := a.arrives("", exampleImage)
	if _, err := a.dynamic.Resource(mapGVR).Namespace("shop").Get(t.Context(), "more", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	began := time.Now()
	a.f.push(a.setImage("web:2", nil))
	second := a.arrives(first, "web:2")
	t.Logf("from the event to the applied object, seen as Synced, it took %s", time.Since(began).Round(time.Millisecond))

	a.f.push(a.f.repository.Commit("bad", map[string]string{"apps/shop/web.yaml": "kind: [\n"}))
	a.f.eventually("waiting for the bad commit in the status", func() string {
		if said := a.prerig("daemon", "status"); !strings.Contains(said, "web.yaml") {
			return said
		}
		return ""
	})
	if now := a.head(); now != second {
		t.Errorf("a commit that does not render has made the commit %s after %s", now, second)
	}
	a.refresh("argocd", "shop")
	a.isSynced("argocd", "shop", second)
	a.runs("web:2")

	a.f.push(a.setImage("web:3", map[string]string{"apps/shop/kustomization.yaml": strings.Replace(a.example["apps/shop/kustomization.yaml"], "- more.yaml\n", "", 1), "apps/shop/more.yaml": ""}))
	third := a.arrives(second, "web:3")
	a.isGone(mapGVR, "shop", "more")

	patch := []byte(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:by-hand"}]}}}}`)
	if _, err := a.dynamic.Resource(deploymentGVR).Namespace("shop").Patch(t.Context(), "web", types.StrategicMergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	a.runs("web:3") // selfHeal

	a.prerig("daemon", "rollback", "shop")
	a.arrives(third, "web:2")
	if _, err := a.dynamic.Resource(mapGVR).Namespace("shop").Get(t.Context(), "more", metav1.GetOptions{}); err != nil {
		t.Errorf("what was deleted is not back after the rollback: %v", err)
	}
}

// deleteApplicationAtEnd removes an Application and what it has applied, for the tests that come.
func (a *argoCD) deleteApplicationAtEnd(namespace, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_ = a.dynamic.Resource(applicationGVR).Namespace(namespace).Delete(ctx, name, metav1.DeleteOptions{})
	_ = a.dynamic.Resource(deploymentGVR).Namespace("shop").Delete(ctx, "web", deleteNow)
}

// TestArgoCDRunsThePlugin has the real repo server and cmp-server run the plugin as the example configures it, for Applications that name
// the pipeline, and for one outside of Argo CD's namespace that does not.
func TestArgoCDRunsThePlugin(t *testing.T) {
	a := newArgoCD(t, "shop", "team")
	prerig, err := testprograms.PrerigPath()
	if err != nil {
		t.Fatal(err)
	}
	// The image has prerig in its PATH, and the file where the sidecar mounts it.
	config, bin := filepath.Join(a.dir, "config"), filepath.Join(a.dir, "bin")
	a.f.write(filepath.Join(config, "plugin.yaml"), a.example["plugin.yaml"])
	if err := os.Symlink(filepath.Dir(prerig), bin); err != nil {
		t.Fatal(err)
	}
	programs, err := argoCDPrograms()
	if err != nil {
		t.Fatal(err)
	}
	a.run("argocd-cmp-server", programs[0], "--config-dir-path", config)
	a.await("the plugin's socket", func(context.Context) error {
		_, err := os.Stat(filepath.Join(a.dir, "plugins", "prerig.sock"))
		return err
	})
	commit := a.f.repository.Commit("first", a.example)
	sync := map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true}}
	named := a.parse(a.example["application-plugin.yaml"])
	unnamed := named.DeepCopy()
	for _, o := range []*unstructured.Unstructured{named, unnamed} {
		if err := unstructured.SetNestedMap(o.Object, sync, "spec", "syncPolicy"); err != nil {
			t.Fatal(err)
		}
	}
	a.apply(applicationGVR, named)
	t.Cleanup(func() { a.deleteApplicationAtEnd("argocd", named.GetName()) })
	a.runs(exampleImage)
	a.isSynced("argocd", named.GetName(), commit)

	began := time.Now()
	commit = a.setImage("web:2", nil)
	a.refresh("argocd", named.GetName())
	a.runs("web:2")
	t.Logf("from the source's commit, by a refresh and the plugin, to the applied object it took %s", time.Since(began).Round(time.Millisecond))
	a.isSynced("argocd", named.GetName(), commit)

	a.f.repository.Commit("bad", map[string]string{"apps/shop/web.yaml": "kind: [\n"})
	a.refresh("argocd", named.GetName())
	a.application("argocd", named.GetName(), "refused", func(o *unstructured.Unstructured) string {
		if text := fmt.Sprint(o.Object["status"]); !strings.Contains(text, "ComparisonError") || !strings.Contains(text, "web.yaml") {
			return "there is no error of the plugin"
		}
		return ""
	})
	a.runs("web:2")

	commit = a.setImage("web:2", nil)
	a.deleteApplication("argocd", named.GetName())
	a.isGone(deploymentGVR, "shop", "web")
	unnamed.SetNamespace("team")
	unnamed.SetName("shop")
	unstructured.RemoveNestedField(unnamed.Object, "spec", "source", "plugin", "env")
	a.apply(applicationGVR, unnamed)
	t.Cleanup(func() { a.deleteApplicationAtEnd("team", "shop") })
	a.runs("web:2")
	a.isSynced("team", "shop", commit)
}
