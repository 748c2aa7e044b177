// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// twelve returns an archive of twelve files of a megabyte each, all different, and what is added.
func twelve(t *testing.T, more ...tar.Header) []byte {
	t.Helper()
	var headers []tar.Header
	for i := range 12 {
		headers = append(headers, file(fmt.Sprint("f", i), strings.Repeat(string(rune('a'+i)), 1<<20)))
	}
	return archive(t, append(headers, more...)...)
}

// The image has no directory for temporary files. Where no other one is named, contents stay in memory.
func TestLargeContentsNeedNoTemporaryDirectory(t *testing.T) {
	t.Setenv("TMPDIR", "/dev/null/nothing")
	r, err := oci.Connect("oci://"+serve(t, "")+"/config", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, r, oci.LayerMediaType, twelve(t))
	artifact, err := r.Pull(t.Context(), oci.Ref{Tag: "latest"}, oci.LayerMediaType, oci.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := tree.NewView(artifact.Tree, tree.Limits{}).Read("f11"); err != nil || !bytes.Equal(got, bytes.Repeat([]byte("l"), 1<<20)) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// What was stored of an artifact that is refused must not lie on the disk until somebody collects garbage.
func TestARefusedArtifactLeavesNothingOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("it looks at /proc")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	dir := t.TempDir()
	r, err := oci.Connect("oci://"+serve(t, "")+"/config", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, r, oci.LayerMediaType, twelve(t, file("../outside", "x")))
	limits := oci.DefaultLimits()
	limits.Dir = dir
	for range 3 {
		if _, err := r.Pull(t.Context(), oci.Ref{Tag: "latest"}, oci.LayerMediaType, limits); err == nil {
			t.Fatal("it was not refused")
		}
	}
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s is open", to)
		}
	}
}

// A secret may have several entries for one registry, each for some of its repositories.
func TestCredentialsOfTheRepository(t *testing.T) {
	host := serve(t, "right")
	for _, config := range []string{
		`{"auths": {"HOST/a": {"username": "u", "password": "wrong"}, "HOST/team/shop": {"username": "u", "password": "right"}, "HOST": {"username": "u", "password": "wrong"}, "HOST/team": {"username": "u", "password": "wrong"}}}`,
		`{"auths": {"HOST/team/sho": {"username": "u", "password": "wrong"}, "https://HOST/v2/": {"username": "u", "password": "right"}}}`,
	} {
		for range 20 { // the order of a map is another each time
			r, err := oci.Connect("oci://"+host+"/team/shop", map[string][]byte{oci.KeyDockerConfig: []byte(strings.ReplaceAll(config, "HOST", host))}, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err = r.Resolve(t.Context(), oci.Ref{Tag: "latest"}); err == nil || !strings.Contains(err.Error(), "404 Not Found") {
				t.Fatalf("the registry is to know the user, and not the artifact: %v", err)
			}
		}
	}
	if _, err := oci.Connect("oci://"+host+"/team/shop", map[string][]byte{oci.KeyDockerConfig: []byte(`{"auths": {"` + host + `/other": {}}}`)}, true, nil); err == nil {
		t.Error("credentials for another repository were used")
	}
}
