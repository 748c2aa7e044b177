// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// The library takes plain http for registries of private addresses and of this machine, without being told to.
func TestPlainHTTPNeedsInsecure(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s %s, with the header Authorization %q", r.Method, r.URL, r.Header.Get("Authorization"))
		w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	secret := map[string][]byte{oci.KeyUsername: []byte("u"), oci.KeyPassword: []byte("s3cret")}
	for _, host := range []string{at.Host, "localhost:" + at.Port()} {
		r, err := oci.Connect("oci://"+host+"/shop/web", secret, false, nil)
		if err != nil {
			t.Fatal(err)
		}
		for question, ask := range questions {
			if err := ask(r, t); err == nil || !strings.Contains(err.Error(), host+" would be asked over plain http; if that is meant, set insecure: true") {
				t.Errorf("%s, %s: got %v", host, question, err)
			}
		}
		if err := r.CheckPush(t.Context()); err == nil || !strings.Contains(err.Error(), "set insecure: true") {
			t.Errorf("%s: got %v", host, err)
		}
	}
}

// A registry of such an address is used over https, and may redirect to a store that speaks plain http and gets no credentials.
func TestPlainHTTPOfAStore(t *testing.T) {
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	redirected := false
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if given := r.Header.Get("Authorization"); given != "" {
			t.Errorf("the store got %q", given)
		}
		redirected = true
		handler.ServeHTTP(w, r)
	}))
	defer store.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/blobs/sha256:") {
			http.Redirect(w, r, store.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "https://")+"/shop/web", map[string][]byte{oci.KeyCA: ca}, false, nil)
	if err != nil {
		t.Fatal(err)
	}
	push(t, r, oci.LayerMediaType, archive(t, file("a", "b")))
	if _, err := r.Pull(t.Context(), oci.Ref{Tag: "latest"}, "", oci.DefaultLimits()); err != nil || !redirected {
		t.Errorf("got %v, redirected %t", err, redirected)
	}
}
