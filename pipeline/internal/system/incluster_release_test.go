// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

var releaseDir = flag.String("release", "", "the directory of a release, to install in a cluster")

// TestInClusterRelease installs a release with what is among its files alone: the image goes from its archive to a registry, Helm installs
// the chart, and the pod that the StatefulSet's controller makes is run from the image that it names by digest, with its own arguments,
// user, volumes and ServiceAccount. There is no kubelet: a container runtime is told what the pod says. `make e2e-release-cluster` runs it.
func TestInClusterRelease(t *testing.T) {
	if *releaseDir == "" {
		t.Skip("-release names no release; make e2e-release-cluster does")
	}
	needsContainers(t)
	c := newInCluster(t, "released", "releasepipes")
	r := openRelease(t, *releaseDir)
	f := prepareAlone(t, nil)
	f.repository.Commit("first", map[string]string{"apps/web/web.yaml": deployment("web", "web:1")})
	ports := freePorts(t, 3)

	begin := time.Now()
	registry := r.mirror()
	c.kubectl("apply", "--server-side", "--force-conflicts", "-f", r.file("crds.yaml"))
	c.mustHelm("install", "render", r.file("prerig-"+strings.TrimPrefix(r.version, "v")+".tgz"), "-n", "released", "--skip-crds",
		"--set", "image.repository="+registry+"/prerig",
		"--set", fmt.Sprintf("config.listen=127.0.0.1:%d,config.admin.listen=127.0.0.1:%d,config.health.listen=127.0.0.1:%d", ports[0], ports[1], ports[2]))
	pod := c.pod("released", "render-0")
	if want := registry + "/prerig:" + r.version + "@" + r.digest.String(); pod.Spec.Containers[0].Image != want {
		t.Fatalf("the chart's image is %s, and the release has %s", pod.Spec.Containers[0].Image, want)
	}
	for _, file := range []string{"install.yaml", "release-notes.md"} {
		if !strings.Contains(r.read(file), "/prerig:"+r.version+"@"+r.digest.String()) {
			t.Errorf("%s does not name the image by its digest %s", file, r.digest)
		}
	}
	n := c.runPod(pod, registry)
	c.await("the daemon to be ready", func(ctx context.Context) error { return n.isReady(ctx, ports[2]) })
	ready := time.Since(begin)
	c.apply(renderPipelines, c.parse(strings.Replace(pipelineYAML("web", f.repository.URL), "namespace: team", "namespace: releasepipes", 1)))
	c.reads(renderPipelines, "releasepipes", "web", kstatus.CurrentStatus, "1 object")
	took := time.Since(begin)
	if got := f.rendered("web/shop/deployment-web.yaml"); !strings.Contains(got, "image: web:1") || !strings.Contains(got, "name: istio-proxy") {
		t.Errorf("what was committed is\n%s", got)
	}
	if said := n.docker("exec", n.name, "/usr/local/bin/prerig", "version"); !strings.HasPrefix(said, "prerig "+r.version+" (commit ") {
		t.Errorf("the program of the image says %q", said)
	}
	t.Logf("from the release's files to a daemon that is ready in %s, to the first rendered commit in %s", ready.Round(time.Millisecond), took.Round(time.Millisecond))
}

// needsContainers skips a test where containers cannot be run.
func needsContainers(t *testing.T) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", "info").CombinedOutput()
	if err != nil && os.Getenv("CI") != "" {
		t.Fatalf("no container runtime answers to docker: %v\n%s", err, out)
	} else if err != nil {
		t.Skipf("no container runtime answers to docker: %v", err)
	}
}

// release is the directory of one.
type release struct {
	t            *testing.T
	dir, version string
	images       layout.Path // the layout of the daemon's image
	digest       v1.Hash     // of the image, for all processors
}

func openRelease(t *testing.T, dir string) *release {
	t.Helper()
	statements, err := filepath.Glob(filepath.Join(dir, "prerig_*.intoto.jsonl"))
	if err != nil || len(statements) != 1 {
		t.Fatalf("%s has %d statements of provenance, and a release has one: %v", dir, len(statements), err)
	}
	r := &release{t: t, dir: dir, version: strings.TrimSuffix(strings.TrimPrefix(filepath.Base(statements[0]), "prerig_"), ".intoto.jsonl")}
	sums := exec.CommandContext(t.Context(), "sha256sum", "--quiet", "--check", "checksums.txt")
	sums.Dir = dir
	if out, err := sums.CombinedOutput(); err != nil {
		t.Fatalf("the checksums: %v\n%s", err, out)
	}
	unpacked := filepath.Join(t.TempDir(), "layout")
	unpackTar(t, r.file("prerig_"+r.version+"_image.tar"), unpacked)
	if r.images, err = layout.FromPath(unpacked); err != nil {
		t.Fatal(err)
	}
	index, err := r.images.ImageIndex()
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("the layout has %+v, %v", manifest, err)
	}
	r.digest = manifest.Manifests[0].Digest
	return r
}

func (r *release) file(name string) string { return filepath.Join(r.dir, name) }

func (r *release) read(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(r.file(name))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(text)
}

// mirror puts the image into a registry of this machine, as skopeo copy --all does, and returns the registry's address.
func (r *release) mirror() string {
	r.t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	r.t.Cleanup(func() { server.CloseClientConnections(); _ = server.Config.Close() })
	address := strings.TrimPrefix(server.URL, "http://")
	to, err := name.ParseReference(address + "/prerig:" + r.version)
	if err != nil {
		r.t.Fatal(err)
	}
	index, err := r.images.ImageIndex()
	if err != nil {
		r.t.Fatal(err)
	}
	image, err := index.ImageIndex(r.digest)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := remote.WriteIndex(to, image, remote.WithContext(r.t.Context())); err != nil {
		r.t.Fatal(err)
	}
	return address
}

func unpackTar(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpackFrom(t, file, dir)
}

// pod waits for a pod.
func (c *inCluster) pod(namespace, name string) *corev1.Pod {
	c.t.Helper()
	var pod corev1.Pod
	c.await("the pod "+name, func(ctx context.Context) error {
		found, err := c.dynamic.Resource(podGVR).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &pod)
	})
	return &pod
}

// isReady asks the endpoint of the pod's readiness probe.
func (n *podRun) isReady(ctx context.Context, port int) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/readyz", port), nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
