// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// TestFetchAfterManyOthers has a reference move after the mirror was told of many others, whose files are different ones.
func TestFetchAfterManyOthers(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	large := rand.Text() // which no compression makes small
	for len(large) < 100_000 {
		large += rand.Text()
	}
	repository.Commit("first", map[string]string{"large": large})
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	fetch := func(reference string) *git.Commit {
		t.Helper()
		commit, err := m.Fetch(ctx, r, git.Ref{Name: reference})
		if err != nil {
			t.Fatal(err)
		}
		return commit
	}
	fetch("refs/heads/main")
	for i := range 20 {
		name := fmt.Sprint("other-", i)
		repository.InWork("checkout", "-q", "--orphan", name)
		repository.InWork("rm", "-rfq", ".")
		repository.Commit(name, map[string]string{"of-" + name: name})
		fetch("refs/heads/" + name)
	}
	repository.InWork("checkout", "-q", "main")
	repository.Commit("second", map[string]string{"more/of": "it"})
	var came atomic.Int64
	server.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(&countingWriter{w, &came}, r) })
	})
	commit := fetch("refs/heads/main")
	if read(t, m, commit, "large") != large || read(t, m, commit, "more/of") != "it" {
		t.Error("the new commit is not whole")
	}
	if got := came.Load(); got > int64(len(large))/2 {
		t.Errorf("%d bytes came, so what is here already came again", got)
	}
}

// countingWriter counts the bytes of a response.
type countingWriter struct {
	http.ResponseWriter
	written *atomic.Int64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	w.written.Add(int64(len(p)))
	return w.ResponseWriter.Write(p)
}
