// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

func TestRedirectToAnotherHostIsNotFollowed(t *testing.T) {
	other := gittest.New(t)
	secret := other.Repository(t, "secret")
	secret.Commit("first", map[string]string{"a": "one"})
	server := gittest.New(t)
	moved := server.Repository(t, "new")
	commit := moved.Commit("first", map[string]string{"a": "two"})
	var asked atomic.Int64
	other.Intercept(func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false })
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		for from, to := range map[string]string{"/away.git": secret.URL, "/old.git": moved.URL} {
			if rest, ok := strings.CutPrefix(r.URL.Path, from); ok {
				http.Redirect(w, r, to+rest+"?"+r.URL.RawQuery, http.StatusFound)
				return true
			}
		}
		return false
	})
	store := git.NewStore(t.TempDir(), git.DefaultLimits())
	for path, want := range map[string]string{"/away.git": "another host", "/old.git": ""} {
		remote, err := git.NewRemote(server.URL+path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		mirror, err := store.Mirror(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		found, err := mirror.Fetch(t.Context(), remote, git.Ref{})
		switch {
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: got %v", path, err)
		case want == "" && (err != nil || found.Hash.String() != commit):
			t.Errorf("%s: got %v, %v", path, found, err)
		}
	}
	if asked.Load() != 0 {
		t.Errorf("the other host was asked %d times", asked.Load())
	}
}
