// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package feature

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/prerig/prerig/fn/istio/release"
)

var (
	typesInGoMod = regexp.MustCompile(`(?m)^\tk8s\.io/api v0\.(\d+)\.`)
	istioInGoMod = regexp.MustCompile(`(?m)^\tistio\.io/api => istio\.io/api v1\.(\d+)\.`)
)

// TestKubernetesTypes compares with the modules that Istio's own injectors are built from.
func TestKubernetesTypes(t *testing.T) {
	upstream := filepath.Join("..", "..", "internal", "upstream", "istio")
	files := map[string]string{strconv.Itoa(release.NewestMinor): filepath.Join(upstream, "go.mod")}
	older, err := filepath.Glob(filepath.Join(upstream, "versions", "1.*", "go.mod"))
	if err != nil || len(older) == 0 {
		t.Fatalf("there are no older versions: %v", err)
	}
	for _, file := range older {
		files[filepath.Base(filepath.Dir(file))[len("1."):]] = file
	}
	for version, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if m := istioInGoMod.FindSubmatch(text); filepath.Dir(file) == upstream && (m == nil || string(m[1]) != version) {
			t.Errorf("%s is not of Istio 1.%s, the newest that is known: %q", file, version, m)
		}
		m := typesInGoMod.FindSubmatch(text)
		if m == nil {
			t.Fatalf("%s requires no k8s.io/api", file)
		}
		of := release.Between("1."+version, "1."+version)[0].To
		if got := strconv.Itoa(KubernetesTypes(of)); got != string(m[1]) {
			t.Errorf("1.%s: the table says %s, its go.mod %s", version, got, m[1])
		}
	}
	for _, spot := range []struct {
		release release.Release
		want    int
	}{
		{release.Release{Minor: 13, Patch: 8}, 23}, {release.Release{Minor: 13, Patch: 9}, 24}, {release.Release{Minor: 14, Patch: 0}, 23},
		{release.Release{Minor: 15, Patch: 0}, 24}, {release.Release{Minor: 26, Patch: 3}, 32}, {release.Release{Minor: 26, Patch: 4}, 33},
		{release.Release{Minor: 9, Patch: 0}, 20},
	} {
		if got := KubernetesTypes(spot.release); got != spot.want {
			t.Errorf("%s: got %d, want %d", spot.release, got, spot.want)
		}
	}
}
