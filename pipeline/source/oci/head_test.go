// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// withoutHeader leaves out a header of an answer.
type withoutHeader struct {
	http.ResponseWriter
	name string
}

func (w withoutHeader) WriteHeader(status int) {
	w.Header()[w.name] = nil
	w.ResponseWriter.WriteHeader(status)
}

// Some registries, and what stands in front of them, do not know HEAD or say less then.
func TestResolveWithoutHead(t *testing.T) {
	for name, test := range map[string]struct {
		status int
		header string
		asked  bool
		fails  bool
	}{
		"not allowed":       {status: http.StatusMethodNotAllowed, asked: true},
		"forbidden":         {status: http.StatusForbidden, asked: true},
		"without a digest":  {header: "Docker-Content-Digest", asked: true},
		"without a length":  {header: "Content-Length", asked: true},
		"without a type":    {header: "Content-Type", asked: true},
		"with all":          {},
		"other credentials": {status: http.StatusUnauthorized, fails: true},
		"not there":         {status: http.StatusNotFound, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
			var pushed, asked atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				manifest := pushed.Load() && strings.Contains(r.URL.Path, "/manifests/")
				if manifest && r.Method == http.MethodGet {
					asked.Store(true)
				}
				switch {
				case manifest && r.Method == http.MethodHead && test.status != 0:
					w.WriteHeader(test.status)
				case manifest && r.Method == http.MethodHead && test.header != "":
					handler.ServeHTTP(withoutHeader{w, test.header}, r)
				default:
					handler.ServeHTTP(w, r)
				}
			}))
			defer server.Close()
			r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/x", nil, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			digest, err := push(t, r, oci.LayerMediaType, archive(t, file("a", "b"))).Digest()
			if err != nil {
				t.Fatal(err)
			}
			pushed.Store(true)
			for _, ref := range []oci.Ref{{Tag: "latest"}, {Digest: digest.String()}} {
				artifact, err := r.Resolve(t.Context(), ref)
				if test.fails != (err != nil) || err == nil && artifact.Digest != digest.String() {
					t.Errorf("%+v: got %+v, %v", ref, artifact, err)
				}
			}
			if got := asked.Load(); got != test.asked {
				t.Errorf("asked by GET: %t", got)
			}
		})
	}
}
