// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestEndlessManifestsAreCutShort: and a configuration, which a manifest may say has any size, is not read at all.
func TestEndlessManifestsAreCutShort(t *testing.T) {
	var sent, configurations atomic.Int64
	config := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("config")))
	layer := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("layer")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v2/":
		case strings.HasPrefix(r.URL.Path, "/v2/redirected/manifests/") && r.Method == http.MethodGet:
			http.Redirect(w, r, "/v2/endless/manifests/latest", http.StatusTemporaryRedirect)
		case strings.HasPrefix(r.URL.Path, "/v2/endless/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			for r.Context().Err() == nil && sent.Load() < 1<<30 {
				n, err := w.Write(make([]byte, 64<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		case strings.HasPrefix(r.URL.Path, "/v2/config/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"x","size":9999999999,"digest":%q},`+
				`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":5,"digest":%q}]}`, config, layer)
		case strings.HasSuffix(r.URL.Path, "/blobs/"+config):
			configurations.Add(1)
		default:
			fmt.Fprint(w, "layer")
		}
	}))
	t.Cleanup(server.Close)
	for _, name := range []string{"endless", "redirected", "config"} {
		registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/"+name, nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = registry.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits()); err == nil {
			t.Errorf("%s was pulled", name)
		}
		if name != "config" && !strings.Contains(err.Error(), "a list of tags of more than") {
			t.Errorf("got %v", err)
		}
	}
	// What is on its way counts, too.
	if sent.Load() > 64<<20 || configurations.Load() != 0 {
		t.Errorf("%d bytes of a manifest were sent, and %d configurations asked for", sent.Load(), configurations.Load())
	}
}

// TestALayerEndsWhereItsManifestDeclares: an archive of some bytes is followed by zeros without an end. Reading them
// until the step's time is over would occupy a processor.
func TestALayerEndsWhereItsManifestDeclares(t *testing.T) {
	var archive bytes.Buffer
	zipped := gzip.NewWriter(&archive)
	if err := tar.NewWriter(zipped).Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	digest := fmt.Sprintf("sha256:%x", sha256.Sum256(archive.Bytes()))
	var sent atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"x","size":2,"digest":%q},`+
				`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":%d,"digest":%[1]q}]}`, digest, archive.Len())
		case strings.Contains(r.URL.Path, "/blobs/"):
			_, _ = w.Write(archive.Bytes())
			for strings.Contains(r.URL.Path, "endless") && sent.Load() < 1<<30 {
				n, err := w.Write(make([]byte, 64<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}))
	t.Cleanup(server.Close)
	for name, want := range map[string]string{"whole": "", "endless": "more than the"} {
		registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/"+name, nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = registry.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if sent.Load() > 64<<20 {
		t.Errorf("%d bytes of the layer were sent", sent.Load())
	}
}

// TestManifestsOfManyElementsAreRefused: three bytes of a list of layers become hundreds where it is decoded, and each
// layer has a type that an error could name.
func TestManifestsOfManyElementsAreRefused(t *testing.T) {
	head := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","layers":[`
	odd := `{"mediaType":"\u001b[2J\u202e` + strings.Repeat("x", 1000) + `"}`
	for name, c := range map[string]struct{ manifest, want string }{
		"empty": {head + strings.Repeat("{},", 1<<20) + "{}]}", "more than 10000 elements"},
		"types": {head + strings.Repeat(odd+",", 3000) + odd + "]}", "and 2996 more"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/manifests/") {
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				_, _ = w.Write([]byte(c.manifest))
			}
		}))
		t.Cleanup(server.Close)
		registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/many", nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = registry.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
		text := fmt.Sprint(err)
		if !strings.Contains(text, c.want) || len(text) > 1200 || strings.ContainsFunc(text, foreign.IsHidden) {
			t.Errorf("%s: got %.300v", name, err)
		}
	}
}

// TestRedirectsOfARegistryAreBounded: the library's own rule for redirects replaces that of net/http, which has
// a bound.
func TestRedirectsOfARegistryAreBounded(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		if asked.Add(1) > 1000 {
			http.NotFound(w, r)
			return
		}
		http.Redirect(w, r, r.URL.Path+"x", http.StatusTemporaryRedirect)
	}))
	t.Cleanup(server.Close)
	registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/loop", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = registry.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
	if err == nil || !strings.Contains(err.Error(), "redirects more than 10 times") {
		t.Errorf("got %v", err)
	}
	if n := asked.Load(); n > 100 {
		t.Errorf("the registry was asked %d times", n)
	}
}
