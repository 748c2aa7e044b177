// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// quick are options for a registry in this process.
func quick() Options {
	return Options{Keychain: authn.NewMultiKeychain(), Timeout: 2 * time.Second, Retry: Retry{Attempts: 12, First: time.Millisecond, Max: 4 * time.Millisecond}}
}

// serve runs a handler on loopback and gives its host.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// inProcess is a registry without a log.
func inProcess(t *testing.T) string {
	t.Helper()
	return serve(t, registry.New(registry.Logger(quiet())))
}

// pushIndex pushes an index for the platforms and gives its digest.
func pushIndex(t *testing.T, image string, seed int64, platforms ...string) string {
	t.Helper()
	var index v1.ImageIndex = empty.Index
	for i, p := range platforms {
		img, err := random.Image(256, 1, random.WithSource(seededSource(seed+int64(i))))
		if err != nil {
			t.Fatal(err)
		}
		platform, err := v1.ParsePlatform(p)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platform}})
	}
	if err := remote.WriteIndex(reference(t, image), index, remote.WithAuth(login(t))); err != nil {
		t.Fatal(err)
	}
	return digestOf(t, index)
}

// pushImage pushes a single image for a platform and gives its digest.
func pushImage(t *testing.T, image string, seed int64, platform string) string {
	t.Helper()
	img, err := random.Image(256, 1, random.WithSource(seededSource(seed)))
	if err != nil {
		t.Fatal(err)
	}
	p, err := v1.ParsePlatform(platform)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Variant = p.OS, p.Architecture, p.Variant
	if img, err = mutate.ConfigFile(img, config); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference(t, image), img, remote.WithAuth(login(t))); err != nil {
		t.Fatal(err)
	}
	return digestOf(t, img)
}

func reference(t *testing.T, image string) name.Reference {
	t.Helper()
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func digestOf(t *testing.T, d interface{ Digest() (v1.Hash, error) }) string {
	t.Helper()
	h, err := d.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return h.String()
}

func TestPin(t *testing.T) {
	host := inProcess(t)
	proxy, tool := host+"/istio/proxyv2:1.31.0", host+"/tool:2"
	proxyDigest := pushIndex(t, proxy, 1, "linux/arm64", "linux/amd64", "unknown/unknown")
	toolDigest := pushImage(t, tool, 10, "linux/amd64")

	var seen []Progress
	o := quick()
	o.Progress = func(p Progress) { seen = append(seen, p) }
	lock, err := Pin(t.Context(), "mesh", []string{tool, proxy, proxy, "", tool + "@" + toolDigest}, o)
	if err != nil {
		t.Fatal(err)
	}
	want := v1alpha1.NewImageLock("mesh", []v1alpha1.LockedImage{
		{Image: proxy, Digest: proxyDigest, Platforms: []string{"linux/amd64", "linux/arm64"}},
		{Image: tool, Digest: toolDigest},
	})
	if diff := cmp.Diff(want, lock); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(seen) != 4 || seen[3].Done != 3 || seen[3].Total != 3 || seen[0].Done != 0 || seen[0].Total != 3 {
		t.Errorf("progress %+v", seen)
	}
	one, _ := v1alpha1.MarshalImageLock(lock)
	for range 5 {
		again, err := Pin(t.Context(), "mesh", []string{proxy, tool}, quick())
		if err != nil {
			t.Fatal(err)
		}
		if two, _ := v1alpha1.MarshalImageLock(again); string(one) != string(two) {
			t.Fatalf("another run writes other bytes:\n%s", cmp.Diff(string(one), string(two)))
		}
	}
}

func TestPinPlatforms(t *testing.T) {
	host := inProcess(t)
	both, single, arm := host+"/both:1", host+"/single:1", host+"/arm:1"
	pushIndex(t, both, 1, "linux/amd64", "linux/arm64", "linux/arm/v7")
	pushImage(t, single, 10, "linux/amd64")
	armDigest := pushImage(t, arm, 20, "linux/arm/v7")
	for _, c := range []struct {
		image     string
		platforms []string
		want      string
	}{
		{both, []string{"linux/amd64", "linux/arm64"}, ""},
		{both, []string{"linux/arm"}, ""},
		{both, []string{"linux/arm/v6"}, "it does not support linux/arm/v6, only linux/amd64, linux/arm/v7, linux/arm64"},
		{both, []string{"linux/s390x", "windows/amd64"}, "it does not support linux/s390x, windows/amd64, only"},
		{single, []string{"linux/amd64"}, ""},
		{single, []string{"linux/amd64", "linux/arm64"}, "it does not support linux/arm64, only linux/amd64"},
		{arm, []string{"linux/arm/v7"}, ""},
		{arm + "@" + armDigest, []string{"linux/amd64"}, "it does not support linux/amd64, only linux/arm/v7"},
		{both, []string{"amd64"}, `reading the platform "amd64": it must be OS/ARCHITECTURE`},
	} {
		o := quick()
		o.Platforms = c.platforms
		lock, err := Pin(t.Context(), "mesh", []string{c.image}, o)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || lock != nil) {
			t.Errorf("%s %v: error %v, want %q", c.image, c.platforms, err, c.want)
		}
	}
}

// TestPinAllOrNothing gives an error for each image that does not resolve, and no lock.
func TestPinAllOrNothing(t *testing.T) {
	host := inProcess(t)
	good := host + "/good:1"
	pushImage(t, good, 1, "linux/amd64")
	lock, err := Pin(t.Context(), "mesh", []string{good, host + "/good:9", host + "/Wrong Name"}, quick())
	if lock != nil || err == nil {
		t.Fatalf("lock %v, error %v", lock, err)
	}
	for _, want := range []string{"resolving " + host + "/good:9: " + host + " has no 9: ", "resolving " + host + "/Wrong Name: reading the image"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if strings.Contains(err.Error(), good+":") {
		t.Errorf("the good image is in the error: %v", err)
	}
}

// TestJobs keeps to the bound on what is asked at once.
func TestJobs(t *testing.T) {
	behind := inProcess(t)
	var now, most atomic.Int64
	host := proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n := now.Add(1)
			defer now.Add(-1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			time.Sleep(2 * time.Millisecond)
			next.ServeHTTP(w, r)
		})
	})
	var images []string
	for i := range 30 {
		repo := fmt.Sprintf("/app%d:1", i)
		pushImage(t, behind+repo, int64(i+1), "linux/amd64")
		images = append(images, host+repo)
	}
	o := quick()
	o.Jobs = 3
	if _, err := Pin(t.Context(), "mesh", images, o); err != nil {
		t.Fatal(err)
	}
	if got := most.Load(); got > 3 || got < 2 {
		t.Errorf("%d requests at once, want at most 3", got)
	}
}

func TestVerify(t *testing.T) {
	host := inProcess(t)
	var locked []v1alpha1.LockedImage
	for i, repo := range []string{"current", "moved", "gone", "lost"} {
		image := host + "/" + repo + ":1"
		locked = append(locked, v1alpha1.LockedImage{Image: image, Digest: pushImage(t, image, int64(i+1), "linux/amd64")})
	}
	locked = append(locked, v1alpha1.LockedImage{Image: "127.0.0.1:1/down:1", Digest: locked[0].Digest})
	lock := v1alpha1.NewImageLock("mesh", locked)
	digests := map[string]string{}
	for _, l := range lock.Spec.Images {
		digests[strings.TrimSuffix(l.Image[strings.LastIndex(l.Image, "/")+1:], ":1")] = l.Digest
	}
	moved := pushImage(t, host+"/moved:1", 50, "linux/amd64")
	remove(t, host+"/gone:1")
	remove(t, host+"/lost:1")
	remove(t, host+"/lost@"+digests["lost"])

	o := quick()
	o.Retry.Attempts = 2
	var seen []Progress
	o.Progress = func(p Progress) { seen = append(seen, p) }
	got, err := Verify(t.Context(), lock, o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range got {
		if got[i].State == Unknown {
			if !strings.Contains(got[i].Message, "connection refused") {
				t.Errorf("message %q", got[i].Message)
			}
			got[i].Message = ""
		}
		got[i].Image = strings.TrimSuffix(got[i].Image[strings.LastIndex(got[i].Image, "/")+1:], ":1")
	}
	slices.SortFunc(got, func(a, b Status) int { return strings.Compare(a.Image, b.Image) })
	want := []Status{
		{Image: "current", Locked: digests["current"], Now: digests["current"], State: Current},
		{Image: "down", Locked: digests["current"], State: Unknown},
		{Image: "gone", Locked: digests["gone"], State: Deleted},
		{Image: "lost", Locked: digests["lost"], State: Lost},
		{Image: "moved", Locked: digests["moved"], Now: moved, State: Moved},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if len(seen) != 6 || seen[5].Done != 5 {
		t.Errorf("progress %+v", seen)
	}
}

func remove(t *testing.T, image string) {
	t.Helper()
	if err := remote.Delete(reference(t, image), remote.WithAuth(login(t))); err != nil {
		t.Fatal(err)
	}
}
