// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestReadsPolicies lists MutatingAdmissionPolicies in the version that the cluster has, and misses none in one that has not got them.
func TestReadsPolicies(t *testing.T) {
	for version, c := range map[string]struct {
		status int
		unread bool
	}{"v1": {200, false}, "v1beta1": {200, false}, "v1alpha1": {200, false}, "none": {404, false}, "forbidden": {403, true}} {
		t.Run(version, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				found := path.Base(path.Dir(r.URL.Path)) == version
				switch {
				case r.URL.Path == "/version":
					fmt.Fprint(w, `{"gitVersion":"v1.36.3"}`)
				case !strings.HasSuffix(r.URL.Path, "/mutatingadmissionpolicies"):
					fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[]}`)
				case found:
					fmt.Fprint(w, `{"kind":"List","apiVersion":"v1","metadata":{},"items":[{"metadata":{"name":"p"}}]}`)
				case version == "forbidden":
					http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`, http.StatusForbidden)
				default:
					http.Error(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`, http.StatusNotFound)
				}
			}))
			t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
			out, err := List(t.Context(), &rest.Config{Host: server.URL, QPS: -1}, Resources, nil)
			if err != nil {
				t.Fatal(err)
			}
			policies := 0
			for _, obj := range out.Objects {
				if obj["kind"] == "MutatingAdmissionPolicy" {
					policies++
				}
			}
			want := 0
			if c.status == http.StatusOK {
				want = 1
			}
			if policies != want || slices.Contains(out.Unread, "mutatingadmissionpolicies") != c.unread || len(out.Unread) > 1 {
				t.Errorf("%d policies, unread %v", policies, out.Unread)
			}
		})
	}
}
