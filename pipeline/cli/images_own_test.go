// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// ownWork has images of the user's own in every place that a pod has for them.
const ownWork = `apiVersion: v1
kind: List
items:
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web, namespace: shop}
  spec:
    template:
      spec:
        initContainers: [{name: migrate, image: "HOST/migrate:1"}]
        containers:
        - name: app
          image: HOST/app:1   # ours
- apiVersion: v1
  kind: Pod
  metadata: {name: debugged, namespace: shop}
  spec:
    containers: [{name: app, image: "HOST/app:1"}]
    ephemeralContainers: [{name: debug, image: "HOST/debug:1"}]
`

// arrangeOwn makes work.yaml, and a registry with its images.
func arrangeOwn(t *testing.T) (host string, digests map[string]string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	digests = map[string]string{}
	for _, name := range []string{"app:1", "migrate:1", "debug:1", "istio/proxyv2:1.31.0"} {
		digests[name] = push(t, host+"/"+name, "linux/amd64")
	}
	t.Chdir(t.TempDir())
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	must(t, os.WriteFile("work.yaml", []byte(strings.ReplaceAll(ownWork, "HOST", host)), 0o644))
	return host, digests
}

// withDigests is the text with the images' digests.
func withDigests(text, host string, digests map[string]string) string {
	for name, digest := range digests {
		text = strings.ReplaceAll(text, host+"/"+name, host+"/"+name+"@"+digest)
	}
	return text
}

// TestImagesApply pins files that no policy is for, checks them, and follows a tag that has moved.
func TestImagesApply(t *testing.T) {
	host, digests := arrangeOwn(t)
	original := readFile(t, "work.yaml")
	_, stderr := ok(t, "", "images", "pin", "--own", "work.yaml")
	wants(t, stderr, "imagelock.yaml: 3 images locked")
	if strings.Contains(readFile(t, "imagelock.yaml"), "istio") {
		t.Errorf("an injected image is in the lock:\n%s", readFile(t, "imagelock.yaml"))
	}
	if code, _, stderr := command(t, "", "images", "apply", "--check", "work.yaml"); code != ExitFindings || !strings.Contains(stderr, "work.yaml:4: Deployment shop/web: does not match the lock") {
		t.Errorf("--check: exit code %d\n%s", code, stderr)
	}
	want := withDigests(original, host, digests)
	if got, _ := ok(t, original, "images", "apply", "-q"); got != want {
		t.Errorf("standard input gives\n%s", got)
	}
	_, stderr = ok(t, "", "images", "apply", "-i", "work.yaml")
	wants(t, stderr, "2 pinned; 1 of 1 file changed")
	if got := readFile(t, "work.yaml"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	ok(t, "", "images", "apply", "--check", "work.yaml")

	// The tag moves: what is pinned is resolved anew only by its tag, and applying follows.
	digests["app:1"] = push(t, host+"/app:1", "linux/arm64")
	ok(t, "", "images", "pin", "--own", "work.yaml", "--to", "moved.yaml")
	ok(t, "", "images", "apply", "-l", "moved.yaml", "-i", "work.yaml")
	if got, want := readFile(t, "work.yaml"), withDigests(original, host, digests); got != want {
		t.Errorf("after the tag moved: got\n%s\nwant\n%s", got, want)
	}
}

// TestImagesApplyGoesOnAndStops is about broken files and images that are not locked.
func TestImagesApplyGoesOnAndStops(t *testing.T) {
	arrangeOwn(t)
	original := readFile(t, "work.yaml")
	must(t, os.WriteFile("lock.yaml", []byte(lockText("images", lockedDigest, "other:1")), 0o644))
	code, _, stderr := command(t, "", "images", "apply", "-l", "lock.yaml", "--on-missing", "fail", "-i", "work.yaml")
	if code != ExitError || readFile(t, "work.yaml") != original {
		t.Errorf("exit code %d", code)
	}
	wants(t, stderr, "Deployment shop/web spec.template.spec.initContainers[0].image", "of the container migrate is not locked to a digest", "Pod shop/debugged spec.ephemeralContainers[0].image", "nothing was written")

	must(t, os.Mkdir("k8s", 0o755))
	must(t, os.Rename("work.yaml", "k8s/work.yaml"))
	must(t, os.WriteFile("k8s/bad.yaml", []byte(brokenFiles["k8s/twice.yaml"]), 0o644))
	code, stdout, stderr := command(t, "", "images", "apply", "-l", "lock.yaml", "k8s")
	if code != ExitError || stdout != original {
		t.Errorf("exit code %d, and on standard output\n%s", code, stdout)
	}
	wants(t, stderr, `decoding k8s/bad.yaml:10: found the key "image" twice`, "omitted from the output: k8s/bad.yaml")
	before := tree(t, "k8s")
	code, _, stderr = command(t, "", "images", "apply", "-l", "lock.yaml", "-i", "k8s")
	if after := tree(t, "k8s"); code != ExitError || after["work.yaml"] != before["work.yaml"] {
		t.Errorf("-i: exit code %d", code)
	}
	wants(t, stderr, "nothing was written")
}

// TestScopeAll resolves and pins injected and own images by one policy.
func TestScopeAll(t *testing.T) {
	host, digests := arrangeOwn(t)
	must(t, os.WriteFile("prerig.yaml", []byte(strings.Replace(strings.ReplaceAll(pinnedPolicy, "HOST", host), "lock: images", "scope: All\n    lock: images", 1)), 0o644))
	original := readFile(t, "work.yaml")
	_, stderr := ok(t, "", "images", "pin", "-q", "work.yaml")
	if n := strings.Count(readFile(t, "imagelock.yaml"), "digest:"); n != 4 {
		t.Errorf("%d images are locked\n%s%s", n, readFile(t, "imagelock.yaml"), stderr)
	}
	got, _ := ok(t, "", "inject", "-q", "work.yaml")
	for name, digest := range digests {
		wants(t, got, host+"/"+name+"@"+digest)
	}
	ok(t, "", "inject", "-q", "-i", "work.yaml")
	ok(t, "", "inject", "-q", "--check", "work.yaml")
	ok(t, "", "inject", "-q", "-i", "--remove", "work.yaml")
	if back := readFile(t, "work.yaml"); back != original {
		t.Errorf("removing gives\n%s", back)
	}
}

// TestPinVerifiesSignatures asks for signatures by a policy and by a flag, of images that have none.
func TestPinVerifiesSignatures(t *testing.T) {
	host, _ := arrangeOwn(t)
	der, err := x509.MarshalPKIXPublicKey(&newECDSAKey(t).PublicKey)
	must(t, err)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	must(t, os.WriteFile("cosign.pub", []byte(key), 0o644))
	code, _, stderr := command(t, "", "images", "pin", "--own", "--key", "cosign.pub", "work.yaml")
	if _, err := os.Stat("imagelock.yaml"); code != ExitError || err == nil {
		t.Errorf("--key: exit code %d, and a lock: %v", code, err == nil)
	}
	wants(t, stderr, "verifying "+host+"/app:1: sha256:", "is not signed")

	rule := "lock: images\n    verify:\n    - images: PATTERN\n      keys:\n      - |\n        " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n        ")
	policy := strings.Replace(strings.ReplaceAll(pinnedPolicy, "HOST", host), "lock: images", rule, 1)
	must(t, os.WriteFile("mesh.yaml", []byte(strings.Replace(policy, "PATTERN", "'"+host+"/istio/*'", 1)), 0o644))
	code, _, stderr = command(t, "", "images", "pin", "-p", "mesh.yaml")
	if code != ExitError {
		t.Errorf("images.verify: exit code %d", code)
	}
	wants(t, stderr, "verifying "+host+"/istio/proxyv2:1.31.0: sha256:", "images.verify requires a signature of "+host+"/istio/*")
	must(t, os.WriteFile("mesh.yaml", []byte(strings.Replace(policy, "PATTERN", "quay.io/istio/*", 1)), 0o644))
	_, stderr = ok(t, "", "images", "pin", "-p", "mesh.yaml")
	wants(t, stderr, "warning: images.verify: no image matches quay.io/istio/*")
}

// TestVerifyAsksForSignatures by the nearest policy, a named one, and a flag, of images that have none.
func TestVerifyAsksForSignatures(t *testing.T) {
	host, _ := arrangeOwn(t)
	der, err := x509.MarshalPKIXPublicKey(&newECDSAKey(t).PublicKey)
	must(t, err)
	key := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	must(t, os.WriteFile("cosign.pub", []byte(key), 0o644))
	rule := "lock: images\n    verify:\n    - images: '" + host + "/istio/*'\n      keys:\n      - |\n        " + strings.ReplaceAll(strings.TrimSpace(key), "\n", "\n        ")
	must(t, os.WriteFile("mesh.yaml", []byte(strings.ReplaceAll(pinnedPolicy, "HOST", host)), 0o644))
	ok(t, "", "images", "pin", "-p", "mesh.yaml")
	ok(t, "", "images", "verify", "-p", "mesh.yaml")

	must(t, os.WriteFile("mesh.yaml", []byte(strings.Replace(strings.ReplaceAll(pinnedPolicy, "HOST", host), "lock: images", rule, 1)), 0o644))
	must(t, os.MkdirAll("near/k8s", 0o755))
	for from, to := range map[string]string{"mesh.yaml": "near/prerig.yaml", "imagelock.yaml": "near/k8s/imagelock.yaml"} {
		must(t, os.WriteFile(to, []byte(readFile(t, from)), 0o644))
	}
	for _, args := range [][]string{{"-p", "mesh.yaml"}, {"--key", "cosign.pub"}, {"near/k8s/imagelock.yaml"}} {
		code, stdout, stderr := command(t, "", append([]string{"images", "verify"}, args...)...)
		if code != ExitFindings {
			t.Errorf("%v: exit code %d\n%s", args, code, stderr)
		}
		wants(t, stdout, "unsigned  "+host+"/istio/proxyv2:1.31.0  sha256:", "is not signed")
	}
}

func newECDSAKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}
