// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package charttest serves chart repositories on loopback, for tests.
package charttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Package returns the archive of a chart, as helm package lays it out. Without a file Chart.yaml it gets one.
func Package(t testing.TB, chart, version string, files map[string]string) []byte {
	t.Helper()
	all := map[string]string{"Chart.yaml": fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", chart, version)}
	maps.Copy(all, files)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, file := range slices.Sorted(maps.Keys(all)) {
		head := &tar.Header{Name: chart + "/" + file, Mode: 0o644, Size: int64(len(all[file])), Typeflag: tar.TypeReg}
		if err := w.WriteHeader(head); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, all[file]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Digest returns the digest of an archive as locks have it.
func Digest(archive []byte) string {
	sum := sha256.Sum256(archive)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Repository is a chart repository over HTTP.
type Repository struct {
	// URL of the repository.
	URL string
	// Intercept answers a request in the place of the repository, where it reports true.
	Intercept func(http.ResponseWriter, *http.Request) bool

	mu       sync.Mutex
	entries  map[string][]entry
	archives map[string][]byte
	asked    []string
}

type entry struct{ version, url, digest string }

// New serves an empty repository until the test ends.
func New(t testing.TB) *Repository {
	r := &Repository{entries: map[string][]entry{}, archives: map[string][]byte{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Add adds an archive to the repository, replacing an existing one.
func (r *Repository) Add(chart, version string, archive []byte) {
	r.AddAt(chart, version, "charts/"+chart+"-"+version+".tgz", Digest(archive))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.archives["/charts/"+chart+"-"+version+".tgz"] = archive
}

// AddAt puts an entry into the index.
func (r *Repository) AddAt(chart, version, url, digest string) {
	r.Remove(chart, version)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[chart] = append(r.entries[chart], entry{version, url, digest})
}

// Remove removes an entry from the index.
func (r *Repository) Remove(chart, version string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[chart] = slices.DeleteFunc(r.entries[chart], func(e entry) bool { return e.version == version })
}

// Asked returns the paths of all requests so far.
func (r *Repository) Asked() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.asked)
}

// ServeHTTP implements http.Handler.
func (r *Repository) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if r.Intercept != nil && r.Intercept(w, request) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = append(r.asked, request.URL.Path)
	if archive, ok := r.archives[request.URL.Path]; ok {
		_, _ = w.Write(archive)
		return
	}
	if request.URL.Path != "/index.yaml" {
		http.NotFound(w, request)
		return
	}
	var index strings.Builder
	index.WriteString("apiVersion: v1\nentries:\n")
	for _, chart := range slices.Sorted(maps.Keys(r.entries)) {
		fmt.Fprintf(&index, "  %s:\n", chart)
		for _, e := range r.entries[chart] {
			fmt.Fprintf(&index, "  - apiVersion: v2\n    name: %s\n    version: %q\n    digest: %s\n    urls:\n    - %s\n", chart, e.version, strings.TrimPrefix(e.digest, "sha256:"), e.url)
		}
	}
	_, _ = io.WriteString(w, index.String())
}

// Registry serves an empty registry until the test ends, and returns HOST:PORT. Intercept, which may be nil, answers requests
// in its place where it reports true.
func Registry(t testing.TB, intercept func(http.ResponseWriter, *http.Request) bool) string {
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if intercept == nil || !intercept(w, request) {
			handler.ServeHTTP(w, request)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// Push puts an archive into a registry, as helm push does.
func Push(t testing.TB, registry, path, chart, version string, archive []byte) {
	t.Helper()
	image, err := mutate.AppendLayers(
		mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), "application/vnd.cncf.helm.config.v1+json"),
		static.NewLayer(archive, "application/vnd.cncf.helm.chart.content.v1.tar+gzip"))
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag(registry+"/"+path+"/"+chart+":"+strings.ReplaceAll(version, "+", "_"), name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(tag, image); err != nil {
		t.Fatal(err)
	}
}
