// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestHostileRegistries has registries that name odd token services, redirect with credentials, recurse, flood and lie. None gets
// credentials that are not for it, and each pull ends with an error in some requests.
func TestHostileRegistries(t *testing.T) {
	const image = "application/vnd.oci.image.manifest.v1+json"
	const index = "application/vnd.oci.image.index.v1+json"
	var strayed, calls, sent atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" || strings.Contains(r.URL.RawQuery, "secret") {
			strayed.Add(1)
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(elsewhere.Close)
	challenge := func(header string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Add("WWW-Authenticate", header)
			w.WriteHeader(http.StatusUnauthorized)
		}
	}
	manifest := func(kind, text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				w.Header().Set("Content-Type", kind)
				fmt.Fprint(w, text)
			}
		}
	}
	layer := func(size int64, digest string) string {
		return fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"config":{"mediaType":"x","size":2,"digest":"sha256:%064d"},"layers":[`+
			`{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":%d,"digest":%q}]}`, image, 0, size, digest)
	}
	self := fmt.Sprintf(`{"schemaVersion":2,"mediaType":%q,"manifests":[{"mediaType":%[1]q,"size":5,"digest":"sha256:%064d"}]}`, index, 0)
	zeros := fmt.Sprintf("sha256:%064d", 0)
	for name, answer := range map[string]http.HandlerFunc{
		"a token service at a metadata address": challenge(`Bearer realm="http://169.254.169.254/token",service="x"`),
		"a token service without a scheme":      challenge(`Bearer realm="169.254.169.254/token"`),
		"a token service of a file":             challenge(`Bearer realm="file:///etc/passwd"`),
		"a token service that is no URL":        challenge(`Bearer realm="http://%zz"`),
		"no realm":                              challenge(`Bearer service="x"`),
		"an unknown scheme":                     challenge(`Evil realm="x"`),
		"a realm of 200 KB":                     challenge(`Bearer realm="http://127.0.0.1:1/` + strings.Repeat("x", 200<<10) + `"`),
		"a challenge again and again":           challenge(`Basic realm="x"`),
		"an index of itself":                    manifest(index, self),
		"an index in the place of a manifest":   manifest(image, self),
		"a layer of negative size":              manifest(image, layer(-1, zeros)),
		"a layer of any size":                   manifest(image, layer(1<<62, zeros)),
		"a digest that is none":                 manifest(image, layer(5, "sha256:../../x")),
		"a digest of another algorithm":         manifest(image, layer(5, "md5:d41d8cd98f00b204e9800998ecf8427e")),
		"another content than the digest":       manifest(image, layer(5, zeros)),
		"no layers":                             manifest(image, `{"schemaVersion":2,"layers":[]}`),
		"a manifest that is a list":             manifest(image, `[]`),
		"a manifest nested deeply":              manifest(image, strings.Repeat(`{"a":`, 100_000)),
		"a type of 3 MB":                        manifest(strings.Repeat("x", 200<<10), `{}`),
		"a manifest that redirects elsewhere": func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v2/" {
				http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
			}
		},
		"a registry that redirects elsewhere": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"a blob that redirects elsewhere": func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.Path, "/blobs/") {
				http.Redirect(w, r, elsewhere.URL+r.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			manifest(image, layer(5, zeros))(w, r)
		},
		"a blob without an end": func(w http.ResponseWriter, r *http.Request) {
			if !strings.Contains(r.URL.Path, "/blobs/") {
				manifest(image, layer(1<<20, zeros))(w, r)
				return
			}
			for sent.Load() < 1<<30 {
				n, err := w.Write(make([]byte, 64<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		},
		"too many requests for ever": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999")
			w.WriteHeader(http.StatusTooManyRequests)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			answer(w, r)
		}))
		secret := map[string][]byte{oci.KeyUsername: []byte("robot"), oci.KeyPassword: []byte("secret-password")}
		registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/shop/app", secret, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = registry.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits())
		if err == nil {
			t.Errorf("%s: it was pulled", name)
		} else if strings.Contains(err.Error(), "secret-password") || len(err.Error()) > 3000 {
			t.Errorf("%s: it tells %d bytes: %.300v", name, len(err.Error()), err)
		}
		if strayed.Load() > 0 || calls.Load() > 40 || sent.Load() > 64<<20 || time.Since(began) > 40*time.Second {
			t.Errorf("%s: %d requests with credentials elsewhere, %d calls, %d MiB, %s", name, strayed.Swap(0), calls.Load(), sent.Load()>>20, time.Since(began))
		}
		calls.Store(0)
		sent.Store(0)
		server.CloseClientConnections()
		server.Close()
	}
}
