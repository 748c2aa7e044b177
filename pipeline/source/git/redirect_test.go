// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
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

// TestRedirectToAnotherRepository: of the same host, as for one that was renamed. It is followed where what may be
// read says so.
func TestRedirectToAnotherRepository(t *testing.T) {
	server := gittest.New(t)
	moved := server.Repository(t, "new")
	moved.Commit("first", map[string]string{"a": "one"})
	server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		rest, ok := strings.CutPrefix(r.URL.Path, "/old.git")
		if ok {
			http.Redirect(w, r, moved.URL+rest+"?"+r.URL.RawQuery, http.StatusFound)
		}
		return ok
	})
	pattern := func(path string) giturl.Pattern {
		t.Helper()
		p, err := giturl.ParsePattern(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	isFor := func(paths ...string) func(context.Context, string) error {
		return func(_ context.Context, url string) error {
			for _, path := range paths {
				if url == server.URL+path {
					return nil
				}
			}
			return errors.New("not for it")
		}
	}
	for name, test := range map[string]struct {
		allowed []giturl.Pattern
		isFor   func(context.Context, string) error
		want    string
	}{
		"no bounds":                    {},
		"within reach":                 {allowed: []giturl.Pattern{pattern("/old"), pattern("/new")}},
		"out of reach":                 {allowed: []giturl.Pattern{pattern("/old")}, want: "may not read this URL"},
		"credentials for both":         {isFor: isFor("/old.git", "/new.git")},
		"credentials for the old only": {isFor: isFor("/old.git"), want: "which the credentials are not for"},
	} {
		t.Run(name, func(t *testing.T) {
			remote, err := git.NewRemote(server.URL+"/old.git", nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if test.isFor != nil {
				remote.BindCredentials(test.isFor)
			}
			ctx := egress.WithReach(t.Context(), egress.Reach{Allowed: test.allowed, Whose: "pipelines", Setting: "sources"})
			_, err = remote.List(ctx)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}
