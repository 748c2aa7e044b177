// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestARegistryLearnsNothingOfOtherServers has a registry redirect a manifest and a layer to a server inside. The error
// has neither the content there nor its digest or length, by which it could be told from others.
func TestARegistryLearnsNothingOfOtherServers(t *testing.T) {
	for name, content := range map[string]string{"text": "INTERNAL-4711", "JSON": `{"layers": "INTERNAL-4711"}`, "a gzip stream": "\x1f\x8b\x08INTERNAL-4711"} {
		inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }))
		defer inside.Close()
		other := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("other")))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.Contains(r.URL.Path, "/inside/manifests/"), strings.Contains(r.URL.Path, "/blobs/"):
				http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
			case strings.Contains(r.URL.Path, "/manifests/"):
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"x","size":2,"digest":%q},`+
					`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":1000,"digest":%[1]q}]}`, other)
			}
		}))
		defer server.Close()
		for _, repository := range []string{"inside", "layer"} {
			r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/"+repository, nil, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, ref := range []oci.Ref{{Tag: "latest"}, {Digest: other}} {
				_, err = r.Pull(t.Context(), ref, "", oci.DefaultLimits())
				if err == nil {
					t.Fatalf("%s, %s was pulled", name, repository)
				}
				digest := fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
				for _, hidden := range []string{"INTERNAL", "4711", digest, fmt.Sprintf(" %d bytes", len(content)), "'I'"} {
					if strings.Contains(err.Error(), hidden) {
						t.Errorf("%s, %s %+v: %v", name, repository, ref, err)
					}
				}
				if _, err := r.Resolve(t.Context(), ref); err != nil && strings.Contains(err.Error(), digest) {
					t.Errorf("%s, %s %+v: %v", name, repository, ref, err)
				}
			}
		}
	}
}
