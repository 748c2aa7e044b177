// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"strings"
	"testing"
)

const (
	lockedDigest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	newerDigest  = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

// lockText is an ImageLock of images with one digest.
func lockText(name, digest string, images ...string) string {
	text := "apiVersion: prerig.dev/v1alpha1\nkind: ImageLock\nmetadata: {name: " + name + "}\nspec:\n  images:\n"
	for _, image := range images {
		text += "  - {image: \"" + image + "\", digest: \"" + digest + "\"}\n"
	}
	return text
}

// arrangeLocked makes policy/mesh.yaml, which names a lock, and k8s/work.yaml.
func arrangeLocked(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	must(t, os.Mkdir("policy", 0o755))
	must(t, os.Mkdir("k8s", 0o755))
	must(t, os.WriteFile("policy/mesh.yaml", []byte(strings.ReplaceAll(pinnedPolicy, "HOST", "registry.example")), 0o644))
	must(t, os.WriteFile("k8s/work.yaml", []byte(strings.ReplaceAll(pinnedWork, "HOST", "registry.example")), 0o644))
}

// TestTheLockIsFoundWhereThePolicyIs injects a directory that the lock is not in, and finds it under any name beside the policy.
func TestTheLockIsFoundWhereThePolicyIs(t *testing.T) {
	arrangeLocked(t)
	lock := lockText("images", lockedDigest, "registry.example/istio/proxyv2:1.31.0")
	code, _, stderr := command(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "k8s")
	if code != ExitError {
		t.Errorf("without a lock: exit code %d", code)
	}
	wants(t, stderr, "finding the ImageLock images", "beside the policy")
	must(t, os.WriteFile("policy/images.lock.yaml", []byte(lock), 0o644))
	beside, _ := ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "k8s")
	wants(t, beside, "proxyv2:1.31.0@"+lockedDigest)
	if strings.Contains(beside, "ImageLock") {
		t.Errorf("the lock is among the manifests:\n%s", beside)
	}
	must(t, os.WriteFile("policy/second.yaml", []byte(lock), 0o644))
	if code, _, stderr = command(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "k8s"); code != ExitError {
		t.Errorf("two locks: exit code %d", code)
	}
	wants(t, stderr, "it is in policy/images.lock.yaml and in policy/second.yaml; remove one of them")
}

// TestTheLockIsNotPrinted has the lock among the files, as a file of its own and in one with a workload.
func TestTheLockIsNotPrinted(t *testing.T) {
	arrangeLocked(t)
	lock := lockText("images", lockedDigest, "registry.example/istio/proxyv2:1.31.0")
	must(t, os.WriteFile("k8s/lock.yaml", []byte(lock), 0o644))
	// One beside the policy with other digests does not count: that among the files is the one that is meant.
	must(t, os.WriteFile("policy/lock.yaml", []byte(strings.ReplaceAll(lock, lockedDigest, newerDigest)), 0o644))
	apart, _ := ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "k8s")
	wants(t, apart, "proxyv2:1.31.0@"+lockedDigest)
	if strings.Contains(apart, "ImageLock") || strings.Contains(apart, newerDigest) {
		t.Errorf("got\n%s", apart)
	}
	ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "--to", "out/", "k8s")
	if got := tree(t, "out"); len(got) != 1 || got["work.yaml"] != apart {
		t.Errorf("-o out/ gives %v", got)
	}
	must(t, os.WriteFile("k8s/work.yaml", []byte(readFile(t, "k8s/work.yaml")+"---\n"+lock), 0o644))
	must(t, os.Remove("k8s/lock.yaml"))
	if got, _ := ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "k8s"); got != apart {
		t.Errorf("in one file it gives\n%s", got)
	}
	ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "-i", "k8s")
	wants(t, readFile(t, "k8s/work.yaml"), "proxyv2:1.31.0@"+lockedDigest, "kind: ImageLock")
}

// TestRemovingNeedsNoLock takes an injection out after the lock is gone.
func TestRemovingNeedsNoLock(t *testing.T) {
	arrangeLocked(t)
	original := readFile(t, "k8s/work.yaml")
	must(t, os.WriteFile("policy/lock.yaml", []byte(lockText("images", lockedDigest, "registry.example/istio/proxyv2:1.31.0")), 0o644))
	ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "-i", "k8s")
	must(t, os.Remove("policy/lock.yaml"))
	ok(t, "", "inject", "-q", "-p", "policy/mesh.yaml", "-i", "--remove", "k8s")
	if got := readFile(t, "k8s/work.yaml"); got != original {
		t.Errorf("got\n%s", got)
	}
}
