// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// An empty answer says nothing of what became of a push. It is not taken for a yes.
func TestAPushWithoutAReport(t *testing.T) {
	for _, served := range []bool{false, true} {
		server := gittest.New(t)
		repository := server.Repository(t, "config")
		server.Wrap(func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") {
					next.ServeHTTP(w, r)
				} else if served {
					next.ServeHTTP(httptest.NewRecorder(), r)
				}
			})
		})
		m, err := NewStore(t.TempDir(), DefaultLimits()).Mirror(repository.URL)
		if err != nil {
			t.Fatal(err)
		}
		remote, err := NewRemote(repository.URL, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		push, err := remote.BeginPush(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		draft := m.NewDraft()
		root, err := draft.Edit(Hash{}, map[string][]byte{"a": []byte("2")})
		if err != nil {
			t.Fatal(err)
		}
		commit, err := draft.Commit(CommitData{Tree: root, Author: "Ann", Email: "ann@example.com"})
		if err != nil {
			t.Fatal(err)
		}
		var pack bytes.Buffer
		if err := draft.Pack(&pack); err != nil {
			t.Fatal(err)
		}
		err = push.Send(t.Context(), []Update{{Name: "refs/heads/new", New: commit}}, &pack)
		push.Close()
		if there := strings.Contains(repository.Git("for-each-ref"), commit.String()); there != served || there != (err == nil) {
			t.Errorf("served %v: the branch is written: %v, and the error is %v", served, there, err)
		}
	}
}
