// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestAnUploadIsNotSentInTheClear has a registry name places for uploads and a token service: on another server over
// plain http, and of an address that is never connected to. Neither content nor credentials go there.
func TestAnUploadIsNotSentInTheClear(t *testing.T) {
	var arrived []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		arrived = append(arrived, r.Method+" "+r.URL.Path+" "+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusCreated)
	}))
	defer elsewhere.Close()
	for name, c := range map[string]struct{ location, realm string }{
		"an upload in the clear":             {location: elsewhere.URL + "/up"},
		"an upload to a link-local address":  {location: "https://169.254.169.254/up"},
		"a token service in the clear":       {realm: elsewhere.URL + "/token"},
		"a token service at such an address": {realm: "https://169.254.169.254/token"},
	} {
		t.Run(name, func(t *testing.T) {
			arrived = nil
			registry := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch {
				case c.realm != "":
					w.Header().Set("WWW-Authenticate", `Bearer realm="`+c.realm+`",service="x"`)
					w.WriteHeader(http.StatusUnauthorized)
				case r.Method == http.MethodPost:
					w.Header().Set("Location", c.location)
					w.WriteHeader(http.StatusAccepted)
				case r.URL.Path != "/v2/":
					w.WriteHeader(http.StatusNotFound)
				}
			}))
			defer registry.Close()
			keys := map[string][]byte{
				oci.KeyUsername: []byte("u"), oci.KeyPassword: []byte("s3cret"),
				oci.KeyCA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: registry.Certificate().Raw}),
			}
			r, err := oci.Connect("oci://"+strings.TrimPrefix(registry.URL, "https://")+"/shop/web", keys, false, nil)
			if err != nil {
				t.Fatal(err)
			}
			layer := static.NewLayer([]byte("rendered"), types.OCILayer)
			err = remote.WriteLayer(r.Repository, layer, r.Options(remote.WithContext(t.Context()))...)
			if err == nil || len(arrived) > 0 {
				t.Errorf("arrived: %v, error %v", arrived, err)
			}
			t.Log(err)
		})
	}
}
