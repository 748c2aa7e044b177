// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// A mirrored commit is given to nobody whom the server would refuse, also when its hash is known.
func TestMirroredCommitNeedsItsOwnCredentials(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "private")
	commit := repository.Commit("first", map[string]string{"a": "1"})
	server.Username, server.Password = "ann", "s3cr3t"
	secret := map[string][]byte{git.KeyUsername: []byte("ann"), git.KeyPassword: []byte("s3cr3t")}
	m, reader := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, secret)
	exact := git.Ref{Commit: plumbing.NewHash(commit)}
	if _, err := m.Fetch(ctx, reader, git.Ref{Name: "refs/heads/main"}); err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]map[string][]byte{
		"none":  nil,
		"wrong": {git.KeyUsername: []byte("ann"), git.KeyPassword: []byte("guessed")},
	} {
		if _, err := m.Fetch(ctx, remote(t, repository.URL, secret), exact); err == nil || !strings.Contains(err.Error(), "credentials") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	asked := server.Requests.Load()
	if _, err := m.Fetch(ctx, reader, exact); err != nil || server.Requests.Load() != asked {
		t.Errorf("the reader asked again or was refused: %v", err)
	}
}

// A key that was revoked reads what is kept for AccessBound at most.
func TestRevokedCredentialsEnd(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "private")
	commit := repository.Commit("first", map[string]string{"a": "1"})
	server.Username, server.Password = "ann", "s3cr3t"
	secret := map[string][]byte{git.KeyUsername: []byte("ann"), git.KeyPassword: []byte("s3cr3t")}
	m, reader := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, secret)
	exact := git.Ref{Commit: plumbing.NewHash(commit)}
	if _, err := m.Fetch(ctx, reader, exact); err != nil {
		t.Fatal(err)
	}
	server.Password = "another"
	reader.AgeAccess()
	if _, err := m.Fetch(ctx, reader, exact); err == nil || !strings.Contains(err.Error(), "refuses the credentials of the secret") {
		t.Errorf("got %v", err)
	}
	server.Password = "s3cr3t"
	if _, err := m.Fetch(ctx, reader, exact); err != nil {
		t.Errorf("let in again: %v", err)
	}
}
