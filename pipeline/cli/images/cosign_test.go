// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// recordedRepositories returns what a registry had of each repository after cosign had signed in it, by the end of the path in the
// distribution API; testdata/cosign/README.md says how it was made.
func recordedRepositories(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "cosign", "repositories.json"))
	check(t, err)
	var out map[string]map[string]string
	check(t, json.Unmarshal(text, &out))
	return out
}

// serveRecorded answers as a registry without the API for referrers, as many are; there, cosign stores a list under a tag.
func serveRecorded(repositories map[string]map[string]string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repository, end, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/team/"), "/")
		text, ok := repositories[repository][end]
		if !ok && r.URL.Path != "/v2/" {
			http.NotFound(w, r)
			return
		}
		var manifest struct {
			MediaType string `json:"mediaType"`
		}
		if strings.HasPrefix(end, "manifests/") && json.Unmarshal([]byte(text), &manifest) == nil {
			w.Header().Set("Content-Type", manifest.MediaType)
		}
		w.Header().Set("Docker-Content-Digest", fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(text))))
		w.Header().Set("Content-Length", fmt.Sprint(len(text)))
		_, _ = w.Write([]byte(text))
	})
}

// TestSignaturesByCosign verifies what cosign 3.0.2 itself has signed, as a bundle and in the form before version 3.
func TestSignaturesByCosign(t *testing.T) {
	t.Parallel()
	repositories := recordedRepositories(t)
	host := serve(t, serveRecorded(repositories))
	for _, tc := range []struct{ repository, key, want string }{
		{"signed", "cosign.pub", ""},
		{"oldform", "cosign.pub", ""},
		{"other", "other.pub", ""},
		{"other", "cosign.pub", "no signature of "},
		{"signed", "other.pub", "no signature of "},
	} {
		t.Run(tc.repository+" with "+tc.key, func(t *testing.T) {
			t.Parallel()
			key, err := os.ReadFile(filepath.Join("testdata", "cosign", tc.key))
			check(t, err)
			o := quick()
			o.Verify = []v1alpha1.ImageVerification{{Images: host + "/team/*", Keys: []string{string(key)}}}
			digest := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(repositories[tc.repository]["manifests/1"])))
			checkVerified(t, o, v1alpha1.LockedImage{Image: host + "/team/" + tc.repository + ":1", Digest: digest}, tc.want)
		})
	}
}
