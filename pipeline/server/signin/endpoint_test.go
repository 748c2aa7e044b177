// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestADescriptionWithoutUsableEndpointsIsNotKept has a provider whose first descriptions lack an endpoint, or name one that browsers
// must not be sent to. The description is read once, so that nobody could sign in until the daemon was started again.
func TestADescriptionWithoutUsableEndpointsIsNotKept(t *testing.T) {
	authorization, token := "", ""
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]string{
			"issuer": server.URL, "authorization_endpoint": authorization, "token_endpoint": token, "jwks_uri": server.URL + "/keys",
		})
	}))
	defer server.Close()
	p, err := New(Options{Issuer: server.URL, ClientID: "prerig", ExternalURL: "http://127.0.0.1:8081", Session: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	good := server.URL + "/go"
	for _, bad := range []string{"", "javascript:alert(1)", "/relative", "data:text/html,x", "//host/path", "https:no-host"} {
		for _, authorization = range []string{bad, good} {
			token = good
			if authorization == good {
				token = bad
			}
			if address, _, err := p.Begin(t.Context(), "/"); err == nil {
				t.Errorf("authorization at %q, tokens at %q: browsers are sent to %s", authorization, token, address)
			}
		}
	}
	authorization, token = good, good
	if _, _, err := p.Begin(t.Context(), "/"); err != nil {
		t.Errorf("a good description after bad ones: %v", err)
	}
}
