// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestCredentialsInAnswersAreNotQuoted has hosts, and what is in between, answer with the credential of the request: as
// it was sent, and decoded.
func TestCredentialsInAnswersAreNotQuoted(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	app := &pullrequest.App{
		ID: "1", Installation: 77,
		Key: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}),
	}
	for name, c := range map[string]struct {
		provider    string
		credentials pullrequest.Credentials
	}{
		"an App":              {"GitHub", pullrequest.Credentials{App: app}},
		"a token":             {"GitLab", pullrequest.Credentials{Token: "s3cret-text"}},
		"a password":          {"Gitea", pullrequest.Credentials{Username: "shop", Password: "s3cret-text"}},
		"a user and password": {"BitbucketCloud", pullrequest.Credentials{Token: "shop:s3cret-text"}},
	} {
		for _, answer := range []string{`{"message": "no: %s"}`, `{"errors": [{"message": "no", "field": "%s"}]}`, `[{"created_at": "%s"}]`} {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/access_tokens") {
					fmt.Fprint(w, `{"token": "s3cret-text"}`)
					return
				}
				sent := r.Header.Get("Authorization")
				if user, password, ok := r.BasicAuth(); ok {
					sent += " " + user + " " + password
				}
				if strings.HasPrefix(answer, "{") {
					w.WriteHeader(http.StatusUnprocessableEntity)
				}
				fmt.Fprintf(w, answer, sent)
			}))
			t.Cleanup(server.Close)
			h := open(t, pullrequest.Options{
				Provider: c.provider, Repository: server.URL + "/shop/app.git", API: server.URL + "/api", Credentials: c.credentials,
			})
			_, err := h.Create(t.Context(), "prerig/shop", "main", pullrequest.Content{Title: "t"})
			text := fmt.Sprint(err)
			if err == nil || strings.Contains(text, "s3cret-text") || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte("shop:s3cret-text"))) {
				t.Errorf("%s, %s: got %v", name, answer, err)
			}
		}
	}
}
