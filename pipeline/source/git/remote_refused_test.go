// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/prerig/prerig/pipeline/source/git"
)

// TestAServerRefuses has what to do stand in the error, by what the server has answered and whether it was given anything.
func TestAServerRefuses(t *testing.T) {
	secret := map[string][]byte{git.KeyUsername: []byte("u"), git.KeyPassword: []byte("s3cr3t-word")}
	for name, c := range map[string]struct {
		status int
		said   string
		secret map[string][]byte
		want   string
	}{
		"nothing given":           {http.StatusUnauthorized, "", nil, "the server asks for credentials; give them with secretRef: authentication required"},
		"wrong password":          {http.StatusUnauthorized, "", secret, "the server refuses the credentials of the secret: authentication required"},
		"wrong password, said":    {http.StatusUnauthorized, "token expired", secret, "the server refuses the credentials of the secret: authentication required"},
		"forbidden":               {http.StatusForbidden, "", secret, "the server does not allow it with the credentials of the secret: authorization failed"},
		"forbidden without any":   {http.StatusForbidden, "", nil, "the server does not allow it without credentials; give them with secretRef: authorization failed"},
		"no such repository":      {http.StatusNotFound, "", nil, "/r.git: repository not found"},
		"no such repository, too": {http.StatusNotFound, "", secret, "/r.git: repository not found"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.said))
			}))
			defer server.Close()
			remote, err := git.NewRemote(server.URL+"/r.git", c.secret, nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = remote.List(t.Context())
			if err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("got  %v\nwant …%s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t-word") {
				t.Errorf("the password is told: %v", err)
			}
			if c.status == http.StatusNotFound && !strings.Contains(err.Error(), transport.ErrRepositoryNotFound.Error()) {
				t.Errorf("the cause is gone: %v", err)
			}
		})
	}
}
