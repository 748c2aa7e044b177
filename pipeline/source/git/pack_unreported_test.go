// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
)

// An answer that is empty or lost says nothing of what became of a push. It is taken neither for a yes nor for a no.
func TestAPushWithoutAReport(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, report []byte){
		"empty":     func(http.ResponseWriter, []byte) {},
		"cut short": func(w http.ResponseWriter, report []byte) { _, _ = w.Write(report[:len(report)/2]) },
		"broken":    func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusInternalServerError) },
		// It is sent again, which the server refuses, as its branch is not where it is expected to be.
		"dropped": func(http.ResponseWriter, []byte) { panic(http.ErrAbortHandler) },
		"away":    func(w http.ResponseWriter, _ []byte) { w.WriteHeader(http.StatusBadGateway) },
	} {
		for _, served := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, served %v", name, served), func(t *testing.T) {
				server := gittest.New(t)
				repository := server.Repository(t, "config")
				lost := false
				server.Wrap(func(next http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						if r.Method == http.MethodGet || !strings.HasSuffix(r.URL.Path, "/git-receive-pack") || served && lost {
							next.ServeHTTP(w, r)
							return
						}
						lost = true
						answered := httptest.NewRecorder()
						answered.WriteString("000eunpack ok\n")
						if served {
							answered = httptest.NewRecorder()
							next.ServeHTTP(answered, r)
						}
						answer(w, answered.Body.Bytes())
					})
				})
				commit, err := pushOne(t, repository)
				if there := strings.Contains(repository.Git("for-each-ref"), commit.String()); there != served || there != (err == nil) {
					t.Errorf("the branch is written: %v, and the error is %v", there, err)
				}
			})
		}
	}
}

// pushOne pushes a commit to a new branch.
func pushOne(t *testing.T, repository *gittest.Repository) (Hash, error) {
	t.Helper()
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
	defer push.Close()
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
	return commit, push.Send(t.Context(), []Update{{Name: "refs/heads/new", New: commit}}, &pack)
}
