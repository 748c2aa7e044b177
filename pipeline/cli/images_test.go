// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/pipeline/cli/images"
)

const pinnedPolicy = `apiVersion: prerig.dev/v1alpha1
kind: InjectionPolicy
metadata:
  name: mesh
spec:
  istio:
    injector:
      builtIn: istio
      overrides:
        global: {hub: HOST/istio, tag: 1.31.0}
  images:
    lock: images
    onMissing: Fail
`

const pinnedWork = `apiVersion: v1
kind: Pod
metadata:
  name: shop
  labels: {sidecar.istio.io/inject: "true"}
spec:
  containers:
  - name: shop
    image: HOST/istio/proxyv2:1.31.0 # the user's own use of the image keeps its tag
`

// push puts an index of random images for the platforms into a registry, and returns its digest.
func push(t *testing.T, image string, platforms ...string) string {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for _, p := range platforms {
		img, err := random.Image(64, 1)
		must(t, err)
		platform, err := v1.ParsePlatform(p)
		must(t, err)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	ref, err := name.ParseReference(image)
	must(t, err)
	must(t, remote.WriteIndex(ref, index))
	digest, err := index.Digest()
	must(t, err)
	return digest.String()
}

// TestImages pins what a policy injects, injects with the lock while the registry is gone, and sees a tag move.
func TestImages(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	digest := push(t, host+"/istio/proxyv2:1.31.0", "linux/amd64", "linux/arm64")
	t.Chdir(t.TempDir())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	must(t, os.WriteFile("mesh.yaml", []byte(strings.ReplaceAll(pinnedPolicy, "HOST", host)), 0o644))
	must(t, os.WriteFile("work.yaml", []byte(strings.ReplaceAll(pinnedWork, "HOST", host)), 0o644))

	// Without files a plain workload is asked about, and the lock that the policy names need not be there yet.
	code, _, stderr := command(t, "", "images", "pin", "-p", "mesh.yaml", "--platform", "linux/arm64")
	if want := "policy: mesh.yaml\nimagelock.yaml: 1 image locked\n"; code != 0 || stderr != want {
		t.Fatalf("pin: exit code %d, stderr %q, want %q", code, stderr, want)
	}
	lock, err := os.ReadFile("imagelock.yaml")
	must(t, err)
	for _, want := range []string{"image: " + host + "/istio/proxyv2:1.31.0\n", "digest: " + digest, "- linux/amd64\n    - linux/arm64\n"} {
		if !strings.Contains(string(lock), want) {
			t.Errorf("the lock lacks %q:\n%s", want, lock)
		}
	}
	code, stdout, stderr := command(t, "", "images", "pin", "-p", "mesh.yaml", "--platform", "linux/arm64", "-q", "--to", "-", "work.yaml")
	if code != 0 || stdout != string(lock) || stderr != "" {
		t.Errorf("pin with files: exit code %d, stderr %s\n%s", code, stderr, cmp.Diff(string(lock), stdout))
	}
	if _, _, stderr = command(t, "", "images", "pin", "-p", "mesh.yaml"); !strings.Contains(stderr, "1 image locked, no change") {
		t.Errorf("pin again: %s", stderr)
	}
	code, stdout, _ = command(t, "", "images", "verify")
	if want := "current   " + host + "/istio/proxyv2:1.31.0\n"; code != 0 || stdout != want {
		t.Errorf("verify: exit code %d, %q, want %q", code, stdout, want)
	}

	moved := push(t, host+"/istio/proxyv2:1.31.0", "linux/amd64")
	code, stdout, stderr = command(t, "", "images", "verify")
	if code != 1 || stdout != fmt.Sprintf("moved     %s/istio/proxyv2:1.31.0  %s -> %s\n", host, digest, moved) || !strings.HasPrefix(stderr, "1 of 1 image not as locked") {
		t.Errorf("verify: exit code %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, _ = command(t, "", "images", "verify", "-o", "json", "imagelock.yaml"); code != 1 || !strings.Contains(stdout, `"state": "moved"`) {
		t.Errorf("verify as JSON: exit code %d, %s", code, stdout)
	}
	code, _, stderr = command(t, "", "images", "pin", "-p", "mesh.yaml", "--platform", "linux/arm64", "--attempts", "1")
	if after, _ := os.ReadFile("imagelock.yaml"); code != 2 || !strings.Contains(stderr, "it does not support linux/arm64") || !bytes.Equal(after, lock) {
		t.Errorf("a platform that is missing: exit code %d, %s, lock changed: %v", code, stderr, !bytes.Equal(after, lock))
	}

	server.Close()
	var first string
	for round := range 2 {
		code, stdout, stderr = command(t, "", "inject", "-q", "-p", "mesh.yaml", "work.yaml", "imagelock.yaml")
		if code != 0 {
			t.Fatalf("inject without a registry: exit code %d, %s", code, stderr)
		}
		if round == 0 {
			first = stdout
		}
	}
	if stdout != first {
		t.Errorf("two runs differ:\n%s", cmp.Diff(first, stdout))
	}
	pinned := "image: " + host + "/istio/proxyv2:1.31.0@" + digest
	if n := strings.Count(stdout, pinned); n != 2 || !strings.Contains(stdout, "proxyv2:1.31.0 # the user's own") {
		t.Errorf("%d pinned images, want 2 (istio-init and istio-proxy), and the user's own with its tag:\n%s", n, stdout)
	}
	must(t, os.WriteFile("injected.yaml", []byte(stdout), 0o644))
	if code, again, stderr := command(t, "", "inject", "-q", "-p", "mesh.yaml", "injected.yaml"); code != 0 || again != stdout {
		t.Errorf("injecting again: exit code %d, %s\n%s", code, stderr, cmp.Diff(stdout, again))
	}
	code, _, stderr = command(t, "", "images", "verify", "--attempts", "1")
	if code != 2 || !strings.Contains(stderr, "1 image could not be checked") {
		t.Errorf("verify without a registry: exit code %d, %s", code, stderr)
	}
}

func TestImagesNotLocked(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("mesh.yaml", []byte(strings.ReplaceAll(pinnedPolicy, "HOST", "registry.example")), 0o644))
	must(t, os.WriteFile("work.yaml", []byte(pinnedWork), 0o644))
	must(t, os.WriteFile("imagelock.yaml", []byte("apiVersion: prerig.dev/v1alpha1\nkind: ImageLock\nmetadata: {name: images}\nspec:\n  images: []\n"), 0o644))
	code, stdout, stderr := command(t, "", "inject", "-q", "-p", "mesh.yaml", "work.yaml", "imagelock.yaml")
	if code != 2 || stdout != "" || !strings.Contains(stderr, "image registry.example/istio/proxyv2:1.31.0 of the container istio-proxy is not locked to a digest; run prerig images pin [image-not-locked]") {
		t.Errorf("exit code %d, stdout %q, stderr %s", code, stdout, stderr)
	}
}

// TestBar draws nothing until it is shown, one line after that, and takes it away.
func TestBar(t *testing.T) {
	var out bytes.Buffer
	b := &progressBar{out: &out, what: "resolving", width: func() int { return 50 }}
	b.setImageProgress(images.Progress{Total: 4})
	if out.Len() > 0 {
		t.Errorf("drawn at once: %q", out.String())
	}
	for _, step := range []struct {
		do   func()
		want string
	}{
		{b.drawInitialState, "\r\x1b[Kresolving [                        ] 0/4 "},
		{func() {
			b.drawn = time.Time{} // long ago
			b.setImageProgress(images.Progress{Done: 2, Total: 4, Image: "registry.example/a/long/name:1"})
		}, "\r\x1b[Kresolving [============            ] 2/4 registry"},
		{b.clearLine, "\r\x1b[K"},
		{b.clearLine, ""},
	} {
		out.Reset()
		step.do()
		if out.String() != step.want {
			t.Errorf("drawn %q, want %q", out.String(), step.want)
		}
	}
	if b := newBar(&out, "x"); b != nil {
		t.Error("a bar where there is no terminal")
	}
	(*progressBar)(nil).setImageProgress(images.Progress{})
	(*progressBar)(nil).clearLine()
}
