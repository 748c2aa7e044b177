// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestInClusterArtifactsOfANamespace takes the role of a namespace away, which leaves its files, and then the namespace, with which they go.
func TestInClusterArtifactsOfANamespace(t *testing.T) {
	c := newInCluster(t, "leaving")
	c.defineFlux()
	c.grant("artifacts")
	var not []access
	for _, verb := range []string{"list", "watch", "create", "update", "patch", "delete", "deletecollection"} {
		not = append(not, access{verb: verb, resource: "namespaces"})
	}
	c.holdAccess([]access{{verb: "get", resource: "namespaces"}}, not)
	f := prepareAlone(t, nil)
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	c.use(f, "leaving")
	c.serveArtifacts(f, "leaving")
	f.c.Artifacts.Keep = time.Second
	f.start()
	c.apply(renderPipelines, c.parse(artifactPipeline("leaving", "web", f.repository.URL)))
	c.reads(renderPipelines, "leaving", "web", kstatus.CurrentStatus, "1 object")
	files := func() []string {
		found, err := filepath.Glob(filepath.Join(f.c.ArtifactsDir(), "leaving", "web", "*.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := files(); len(got) != 1 {
		t.Fatalf("the files are %q", got)
	}

	// The directory is looked at every second.
	if err := c.dynamic.Resource(bindingGVR).Namespace("leaving").Delete(t.Context(), "prerig-externalartifacts", deleteNow); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if got := files(); len(got) != 1 {
		t.Errorf("without the role, but with the namespace, the files are %q", got)
	}

	c.setDeletionPolicy("leaving", "web", v1alpha1.DeletionOrphan)
	if err := c.dynamic.Resource(namespaceGVR).Delete(t.Context(), "leaving", deleteNow); err != nil {
		t.Fatal(err)
	}
	c.await("the files of the namespace to go", func(context.Context) error {
		if got := files(); len(got) > 0 {
			return fmt.Errorf("they are %q", got)
		}
		return nil
	})
	if _, err := os.Stat(filepath.Join(f.c.ArtifactsDir(), "leaving", "web")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory is there: %v", err)
	}
}

// setDeletionPolicy changes what is to become of what a pipeline has published, and waits until its finalizer is as that says.
func (c *inCluster) setDeletionPolicy(namespace, name string, policy v1alpha1.DeletionPolicy) {
	c.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"deletionPolicy":%q}}`, policy)
	if _, err := c.dynamic.Resource(renderPipelines).Namespace(namespace).Patch(c.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.await("the finalizer of "+name, func(context.Context) error {
		o := c.pipeline(namespace, name)
		if o == nil || (len(o.GetFinalizers()) > 0) != (policy == v1alpha1.DeletionDelete) {
			return fmt.Errorf("it is %v", o)
		}
		return nil
	})
}
