// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

func serve(t *testing.T, password string) string {
	t.Helper()
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, given, _ := r.BasicAuth(); password != "" && given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, r *oci.Registry, mediaType string, content []byte) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), oci.ConfigMediaType),
		static.NewLayer(content, types.MediaType(mediaType)))
	if err != nil {
		t.Fatal(err)
	}
	annotated := mutate.Annotations(image, map[string]string{oci.AnnotationRevision: "main@sha1:abc", oci.AnnotationCreated: "2026-01-02T03:04:05Z"}).(v1.Image)
	if err := remote.Write(r.Repository.Tag("latest"), annotated, r.Options()...); err != nil {
		t.Fatal(err)
	}
	return annotated
}

func archive(t *testing.T, headers ...tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, header := range headers {
		content := header.PAXRecords["test"]
		header.PAXRecords = nil
		if header.Typeflag == 0 {
			header.Typeflag = tar.TypeReg
		}
		if header.Size == 0 {
			header.Size = int64(len(content))
		}
		if header.Typeflag != tar.TypeReg {
			header.Size = 0
		}
		header.Mode = 0o644
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if content == "" && header.Size > 0 {
			content = strings.Repeat("\x00", int(header.Size))
		}
		if _, err := w.Write([]byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	zipped.Close()
	return out.Bytes()
}

func file(name, content string) tar.Header {
	return tar.Header{Name: name, PAXRecords: map[string]string{"test": content}}
}

func TestPull(t *testing.T) {
	host := serve(t, "s3cret")
	secret := map[string][]byte{".dockerconfigjson": []byte(`{"auths":{"` + host + `":{"auth":"dTpzM2NyZXQ="}}}`)}
	r, err := oci.Connect("oci://"+host+"/config/shop", secret, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	image := push(t, r, oci.LayerMediaType, archive(t, file("./a/b.yaml", "x: 1"), file("c", "c"),
		tar.Header{Name: "link", Typeflag: tar.TypeSymlink, Linkname: "a/b.yaml"}))
	artifact, err := r.Pull(context.Background(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	digest, _ := image.Digest()
	if artifact.String() != "latest@"+digest.String() || artifact.Revision != "main@sha1:abc" || artifact.Created.Year() != 2026 {
		t.Errorf("got %+v", artifact)
	}
	if content, err := tree.NewView(artifact.Tree, tree.Limits{}).Read("link"); err != nil || string(content) != "x: 1" {
		t.Errorf("got %q, %v", content, err)
	}
	resolved, err := r.Resolve(context.Background(), oci.Ref{Tag: "latest"})
	if err != nil || resolved.Digest != artifact.Digest {
		t.Errorf("got %+v, %v", resolved, err)
	}
	if _, err := r.Pull(context.Background(), oci.Ref{Digest: artifact.Digest}, "application/other", oci.DefaultLimits()); err == nil || !strings.Contains(err.Error(), "application/other") {
		t.Errorf("got %v", err)
	}
	wrong, err := oci.Connect("oci://"+host+"/config/shop", map[string][]byte{"username": []byte("u"), "password": []byte("other")}, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = wrong.Resolve(context.Background(), oci.Ref{Tag: "latest"}); err == nil || strings.Contains(err.Error(), "other") {
		t.Errorf("got %v", err)
	}
	if _, err := oci.Connect("oci://elsewhere.example.com/x", secret, false, nil); err == nil || !strings.Contains(err.Error(), "no entry for") {
		t.Errorf("got %v", err)
	}
}

func TestHostileArchives(t *testing.T) {
	host := serve(t, "")
	r, err := oci.Connect("oci://"+host+"/x", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	limits := oci.Limits{LayerBytes: 1 << 20, Tree: tree.Limits{Entries: 10, FileBytes: 1000, TotalBytes: 5000}}
	many := make([]tar.Header, 11)
	for i := range many {
		many[i] = file(strings.Repeat("f", i+1), "x")
	}
	var sum []tar.Header
	for i := range 9 {
		sum = append(sum, file(strings.Repeat("s", i+1), strings.Repeat("x", 900)))
	}
	cases := map[string]struct {
		content []byte
		want    string
	}{
		"absolute path":    {archive(t, file("/etc/passwd", "x")), "leads out"},
		"parent":           {archive(t, file("../x", "x")), "leads out"},
		"parent inside":    {archive(t, file("a/../../x", "x")), "leads out"},
		"device":           {archive(t, tar.Header{Name: "d", Typeflag: tar.TypeChar}), "neither a file"},
		"hard link":        {archive(t, tar.Header{Name: "d", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), "neither a file"},
		"large file":       {archive(t, tar.Header{Name: "zeros", Size: 100_000}), "size of zeros"},
		"many directories": {archive(t, file(strings.Repeat("d/", 20)+"f", "x")), "number of files and directories"},
		"long path":        {archive(t, file(strings.Repeat("d/", 200_000)+"f", "x")), "length of the path"},
		"many files":       {archive(t, many...), "number of files"},
		"large sum":        {archive(t, sum...), "sum of the sizes"},
		"not compressed":   {[]byte("hello"), "unpacking"},
		"file and folder":  {archive(t, file("a", "x"), file("a/b", "x")), "a file and a directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			push(t, r, oci.LayerMediaType, tc.content)
			_, err := r.Pull(context.Background(), oci.Ref{Tag: "latest"}, "", limits)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// A registry must not get away with other content than the digest says.
func TestContentIsNotWhatTheDigestSays(t *testing.T) {
	genuine, other := archive(t, file("a", "genuine")), archive(t, file("a", "swapped"))
	// Bytes after the archive, which nobody who only unpacks it would read.
	genuine = append(genuine, bytes.Repeat([]byte("x"), 1<<20)...)
	other = append(other, bytes.Repeat([]byte("x"), len(genuine)-len(other))...)
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	swap := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if swap && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/") {
			_, _ = w.Write(other)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/x", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, r, oci.LayerMediaType, genuine)
	swap = true
	if _, err := r.Pull(context.Background(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits()); err == nil || !strings.Contains(err.Error(), "not what the registry calls it") {
		t.Errorf("got %v", err)
	}
}
