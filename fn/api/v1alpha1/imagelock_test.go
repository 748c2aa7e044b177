// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

var (
	digestA = "sha256:" + strings.Repeat("a", 64)
	digestB = "sha256:" + strings.Repeat("b", 64)
)

func TestImageLockRoundTrip(t *testing.T) {
	lock := v1alpha1.NewImageLock("mesh", []v1alpha1.LockedImage{
		{Image: "docker.io/istio/proxyv2:1.31.0", Digest: digestB, Platforms: []string{"linux/amd64", "linux/arm64"}},
		{Image: "cr.fluentbit.io/fluent/fluent-bit:4.0", Digest: digestA},
	})
	data, err := v1alpha1.MarshalImageLock(lock)
	if err != nil {
		t.Fatal(err)
	}
	want := `apiVersion: prerig.dev/v1alpha1
kind: ImageLock
metadata:
  name: mesh
  annotations:
    config.kubernetes.io/local-config: "true"
spec:
  images:
  - image: cr.fluentbit.io/fluent/fluent-bit:4.0
    digest: ` + digestA + `
  - image: docker.io/istio/proxyv2:1.31.0
    digest: ` + digestB + `
    platforms:
    - linux/amd64
    - linux/arm64
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := v1alpha1.ParseImageLock(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(lock, back); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
	empty, err := v1alpha1.MarshalImageLock(v1alpha1.NewImageLock("none", nil))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v1alpha1.ParseImageLock(empty); err != nil || !strings.Contains(string(empty), "images: []") {
		t.Errorf("a lock of nothing: %v\n%s", err, empty)
	}
}

func TestImageLockErrors(t *testing.T) {
	head := "apiVersion: prerig.dev/v1alpha1\nkind: ImageLock\nmetadata:\n  name: mesh\nspec:\n"
	for name, c := range map[string]struct{ text, want string }{
		"kind":      {"apiVersion: prerig.dev/v1alpha1\nkind: ImageLocks\n", `line 2: kind: "ImageLocks" is not supported; it must be ImageLock`},
		"version":   {"apiVersion: prerig.dev/v2\nkind: ImageLock\n", `line 1: apiVersion: "prerig.dev/v2" is not supported`},
		"typo":      {head + "  image:\n  - image: a:1\n", "line 6: spec.image"},
		"digest":    {head + "  images:\n  - image: a:1\n    digest: sha256:12\n", `line 8: spec.images[0].digest: "sha256:12" is not a digest`},
		"no tag":    {head + "  images:\n  - image: a@" + digestA + "\n    digest: " + digestA + "\n", "line 7: spec.images[0].image:"},
		"twice":     {head + "  images:\n  - {image: a:1, digest: " + digestA + "}\n  - {image: a:1, digest: " + digestB + "}\n", "spec.images[1].image: a:1 is locked by spec.images[0] already"},
		"duplicate": {head + "  images: []\n  images: []\n", "line 7"},
		"not YAML":  {"a: [", "reading ImageLock"},
	} {
		_, err := v1alpha1.ParseImageLock([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
	}
}

func TestIsImageLock(t *testing.T) {
	if !v1alpha1.IsImageLock("prerig.dev/v1beta1", "ImageLock") || v1alpha1.IsImageLock("example.com/v1", "ImageLock") || v1alpha1.IsImageLock("prerig.dev/v1alpha1", "InjectionPolicy") {
		t.Error("wrong kind of object")
	}
}
