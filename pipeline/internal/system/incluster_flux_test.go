// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
)

var (
	kustomizations = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	deploymentGVR  = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
)

// fluxPrograms are kustomize-controller and the files of the definitions that it needs.
var fluxPrograms = sync.OnceValues(func() ([]string, error) { return upstreamPrograms("-flux") })

// defineFlux has the API server know Flux' kinds.
func (c *inCluster) defineFlux() (controller string) {
	c.t.Helper()
	programs, err := fluxPrograms()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, file := range programs[1:] {
		c.kubectl("apply", "--server-side", "-f", file)
	}
	for _, gvr := range []schema.GroupVersionResource{kustomizations, externalartifact.Resource} {
		c.await("the definition of "+gvr.Resource, func(ctx context.Context) error {
			_, err := c.dynamic.Resource(gvr).List(ctx, metav1.ListOptions{})
			return err
		})
	}
	return programs[0]
}

// startFlux starts the real kustomize-controller as an administrator.
func (c *inCluster) startFlux() {
	c.t.Helper()
	controller := c.defineFlux()
	dir := c.t.TempDir()
	c.startProgram("kustomize-controller", []string{"KUBECONFIG=" + c.kubeconfig, "HOME=" + dir, "TMPDIR=" + dir, "RUNTIME_NAMESPACE=prerig"},
		controller, "--metrics-addr=127.0.0.1:0", "--health-addr=127.0.0.1:0", "--log-encoding=json", "--feature-gates=ExternalArtifact=true")
}

// serveArtifacts has a fixture's daemon publish ExternalArtifacts of a namespace.
func (c *inCluster) serveArtifacts(f *fixture, namespace string) {
	c.t.Helper()
	f.c.Artifacts.Listen = free(c.t)
	f.c.Artifacts.URL = "http://" + f.c.Artifacts.Listen
	c.bindArtifacts(namespace)
}

// artifactPipeline is a pipeline that publishes to an ExternalArtifact of its name.
func artifactPipeline(namespace, name, url string) string {
	text := strings.Replace(pipelineYAML(name, url, "  deletionPolicy: Delete\n"), "namespace: team", "namespace: "+namespace, 1)
	return strings.Replace(text, "git: {branch: rendered}", "externalArtifact: {}", 1)
}

// configMap is a ConfigMap as a source has it.
func configMap(namespace, name string) string {
	return fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: %s}\ndata: {a: b}\n", name, namespace)
}

// TestInClusterExternalArtifact publishes objects that the API server takes, with the ServiceAccount of the manifests: before it may, over
// an object of somebody else, after a restart, a damaged file, a deleted object, and removes it at the end.
func TestInClusterExternalArtifact(t *testing.T) {
	c := newInCluster(t, "artifacts")
	c.defineFlux()
	foreign := c.parse("apiVersion: source.toolkit.fluxcd.io/v1\nkind: ExternalArtifact\nmetadata: {name: taken, namespace: artifacts}\nspec: {}\n")
	c.apply(externalartifact.Resource, foreign)
	f := prepareAlone(t, nil)
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1"), "apps/taken/web.yaml": deployment("taken", "web:1")})
	c.use(f)
	c.serveArtifacts(f, "artifacts")
	if err := c.dynamic.Resource(bindingGVR).Namespace("artifacts").Delete(t.Context(), "prerig-externalartifacts", deleteNow); err != nil {
		t.Fatal(err)
	}
	f.start()
	c.apply(renderPipelines, c.parse(artifactPipeline("artifacts", "web", f.repository.URL)+"  drift: Repair\n"))
	c.reads(renderPipelines, "artifacts", "web", kstatus.InProgressStatus, "RoleBinding in artifacts")
	c.bindArtifacts("artifacts")
	c.annotate("artifacts", "web", v1alpha1.RequestAnnotation, "allowed")
	c.reads(renderPipelines, "artifacts", "web", kstatus.CurrentStatus, "1 object")
	o := c.reads(externalartifact.Resource, "artifacts", "web", kstatus.CurrentStatus, "stored artifact")
	digest, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "digest")
	published := statusOf(t, c.pipeline("artifacts", "web")).Published
	if len(published) != 1 || published[0].Revision != digest || digest == "" {
		t.Errorf("the pipeline's status says %+v, and the object %q", published, digest)
	}

	c.apply(renderPipelines, c.parse(artifactPipeline("artifacts", "taken", f.repository.URL)))
	c.reads(renderPipelines, "artifacts", "taken", kstatus.FailedStatus, "it was not made for this pipeline")
	if now, err := c.dynamic.Resource(externalartifact.Resource).Namespace("artifacts").Get(t.Context(), "taken", metav1.GetOptions{}); err != nil || len(now.GetAnnotations()) > 0 {
		t.Errorf("the object of somebody else is %v: %v", now, err)
	}

	// The file is damaged while nothing runs, and the object is deleted while something does.
	f.stop()
	files, err := filepath.Glob(filepath.Join(f.c.ArtifactsDir(), "artifacts", "web", "*.tar.gz"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %q: %v", files, err)
	}
	whole, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	f.start()
	c.await("the file to be mended", func(context.Context) error {
		if now, err := os.ReadFile(files[0]); err != nil || !slices.Equal(now, whole) {
			return fmt.Errorf("it has %d bytes of %d: %w", len(now), len(whole), err)
		}
		return nil
	})
	if err := c.dynamic.Resource(externalartifact.Resource).Namespace("artifacts").Delete(t.Context(), "web", deleteNow); err != nil {
		t.Fatal(err)
	}
	c.annotate("artifacts", "web", v1alpha1.RequestAnnotation, "deleted")
	c.reads(externalartifact.Resource, "artifacts", "web", kstatus.CurrentStatus, digest)

	if err := c.dynamic.Resource(renderPipelines).Namespace("artifacts").Delete(t.Context(), "web", deleteNow); err != nil {
		t.Fatal(err)
	}
	c.isGone(externalartifact.Resource, "artifacts", "web")
}

// isGone waits until there is no such object.
func (c *inCluster) isGone(gvr schema.GroupVersionResource, namespace, name string) {
	c.t.Helper()
	c.await(fmt.Sprintf("%s %s/%s to go", gvr.Resource, namespace, name), func(ctx context.Context) error {
		o, err := c.dynamic.Resource(gvr).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("it is there: %v, %w", o, err)
	})
}

// TestInClusterFlux has the real kustomize-controller apply what the daemon publishes: a first commit, an event, a commit that does not
// render, an object that is gone, and a commit that is reverted.
func TestInClusterFlux(t *testing.T) {
	c := newInCluster(t, "flux", "shop")
	c.startFlux()
	f := prepareAlone(t, nil)
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1"), "apps/web/map.yaml": configMap("shop", "more")})
	c.use(f)
	c.serveArtifacts(f, "flux")
	f.start()
	c.apply(renderPipelines, c.parse(artifactPipeline("flux", "web", f.repository.URL)))
	c.apply(kustomizations, c.parse(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: flux}
spec: {interval: 10m, retryInterval: 10s, prune: true, sourceRef: {kind: ExternalArtifact, name: web}}
`))
	c.runs("web:1")
	if _, err := c.dynamic.Resource(mapGVR).Namespace("shop").Get(t.Context(), "more", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}

	second := f.repository.Commit("second", map[string]string{"apps/web/web.yaml": deployment("web", "web:2")})
	began := time.Now()
	f.push(second)
	c.runs("web:2")
	t.Logf("from the event to the applied object it took %s", time.Since(began).Round(time.Millisecond))
	c.await("the origin of what Flux has applied", func(ctx context.Context) error {
		o, err := c.dynamic.Resource(kustomizations).Namespace("flux").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if origin, _, _ := unstructured.NestedString(o.Object, "status", "lastAppliedOriginRevision"); !strings.Contains(origin, second) {
			return fmt.Errorf("Flux says that it has applied %q, which is not %s", origin, second)
		}
		return nil
	})
	c.reads(kustomizations, "flux", "web", kstatus.CurrentStatus, "Applied revision")
	before := c.revisionOf("web")

	f.push(f.repository.Commit("bad", map[string]string{"apps/web/web.yaml": "kind: [\n"}))
	c.await("the bad commit in the status", func(context.Context) error {
		if ready := condition(c.pipeline("flux", "web"), "Ready"); ready == nil || ready["status"] != "False" {
			return fmt.Errorf("the condition is %v", ready)
		}
		return nil
	})
	if got := c.revisionOf("web"); got != before {
		t.Errorf("a commit that does not render has changed the artifact from %s to %s", before, got)
	}
	c.runs("web:2")

	f.push(f.repository.Commit("third", map[string]string{"apps/web/web.yaml": deployment("web", "web:3"), "apps/web/map.yaml": ""}))
	c.runs("web:3")
	c.isGone(mapGVR, "shop", "more")

	f.push(f.repository.Commit("reverted", map[string]string{"apps/web/web.yaml": deployment("web", "web:2"), "apps/web/map.yaml": configMap("shop", "more")}))
	c.runs("web:2")
	if got := c.revisionOf("web"); got != before {
		t.Errorf("equal content has the revision %s, and had %s", got, before)
	}
}

// revisionOf returns the revision of an ExternalArtifact in the namespace flux.
func (c *inCluster) revisionOf(name string) string {
	c.t.Helper()
	o, err := c.dynamic.Resource(externalartifact.Resource).Namespace("flux").Get(c.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	revision, _, _ := unstructured.NestedString(o.Object, "status", "artifact", "revision")
	return revision
}

// runs waits until the Deployment shop/web has an image, and a proxy beside it.
func (c *inCluster) runs(image string) {
	c.t.Helper()
	c.await("the Deployment to have "+image, func(ctx context.Context) error {
		o, err := c.dynamic.Resource(deploymentGVR).Namespace("shop").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		text, err := o.MarshalJSON()
		if err == nil && !(bytes.Contains(text, []byte(`"`+image+`"`)) && bytes.Contains(text, []byte("istio-proxy"))) {
			containers, _, _ := unstructured.NestedSlice(o.Object, "spec", "template", "spec", "containers")
			err = fmt.Errorf("its containers are %v", containers)
		}
		return err
	})
}
