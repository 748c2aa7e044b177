// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestConfigurationsOfSignaturesAreNotReadWithoutEnd has a registry answer with signatures whose configuration has no
// end, or is of any size that their manifest declares.
func TestConfigurationsOfSignaturesAreNotReadWithoutEnd(t *testing.T) {
	secret, _ := cosignKey(t)
	config := "sha256:" + strings.Repeat("c", 64)
	for _, size := range []string{"-1", "99999999999"} {
		var sent atomic.Int64
		handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, ".sig"):
				w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
				fmt.Fprintf(w, `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json",`+
					`"config":{"mediaType":"application/vnd.oci.image.config.v1+json","size":%s,"digest":%q},"layers":[]}`, size, config)
			case strings.HasSuffix(r.URL.Path, "/blobs/"+config):
				for r.Context().Err() == nil && sent.Load() < 256<<20 {
					n, err := w.Write(make([]byte, 64<<10))
					if sent.Add(int64(n)); err != nil {
						return
					}
				}
			default:
				handler.ServeHTTP(w, r)
			}
		}))
		t.Cleanup(server.Close)
		r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/shop", nil, true, nil)
		if err != nil {
			t.Fatal(err)
		}
		a := &publish.Artifact{Registry: r, Tags: []string{"latest"}, Signer: signer(t, secret)}
		_, err = a.Publish(t.Context(), change(t, "apps/shop", "shop", configMap("a", "1")))
		if err == nil || !strings.Contains(err.Error(), "its configuration is not one of at most") || sent.Load() != 0 {
			t.Errorf("%s: %d bytes were sent, %v", size, sent.Load(), err)
		}
	}
}
