// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// TestARedirectedCallStaysInTheAPI has a host redirect a call to other servers, to other applications of itself, and to
// other repositories of its API. The token reaches none that it is not for.
func TestARedirectedCallStaysInTheAPI(t *testing.T) {
	var asked []string
	record := func(r *http.Request) {
		asked = append(asked, r.URL.Path)
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { record(r) }))
	defer elsewhere.Close()
	for name, c := range map[string]struct {
		to   string
		want bool
	}{
		"a renamed repository":      {to: "/api/v1/repos/shop/new/pulls", want: true},
		"another team's repository": {to: "/api/v1/repos/pay/app/pulls"},
		"another application":       {to: "/evil/api/v1/repos/shop/app/pulls"},
		"dots":                      {to: "/api/v1/../../evil"},
		"encoded dots":              {to: "/api/v1/repos/shop/%2e%2e/%2e%2e/%2e%2e/%2e%2e/evil"},
		"another server":            {to: elsewhere.URL + "/api/v1/repos/shop/app/pulls"},
		"a link-local address":      {to: "http://169.254.169.254/api/v1/repos/shop/app/pulls"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = nil
			host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/api/v1/repos/shop/app/") {
					w.Header().Set("Location", c.to)
					w.WriteHeader(http.StatusTemporaryRedirect)
					return
				}
				if r.Header.Get("Authorization") != "" {
					record(r)
				}
				_, _ = w.Write([]byte("[]"))
			}))
			defer host.Close()
			h, err := pullrequest.Open(pullrequest.Options{
				Provider: "Gitea", Repository: host.URL + "/shop/app.git", API: host.URL + "/api/v1", Credentials: pullrequest.Credentials{Token: "secret"},
				IsFor: func(_ context.Context, url string) error {
					if strings.HasPrefix(url, host.URL+"/api/v1/repos/shop/") {
						return nil
					}
					return errors.New("it is not for that")
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			_, err = h.Find(t.Context(), "head", "main")
			if (len(asked) > 0) != c.want || !c.want && err == nil {
				t.Errorf("asked with the token: %v, error %v", asked, err)
			}
			if wait, again := pullrequest.Retry(err); again && !c.want {
				t.Errorf("it is tried again after %s: %v", wait, err)
			}
		})
	}
}
