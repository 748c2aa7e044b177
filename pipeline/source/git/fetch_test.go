// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/tree"
)

var ctx = context.Background()

func remote(t *testing.T, url string, secret map[string][]byte) *git.Remote {
	t.Helper()
	r, err := git.NewRemote(url, secret, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func mirror(t *testing.T, dir, url string, limits git.Limits) *git.Mirror {
	t.Helper()
	m, err := git.NewStore(dir, limits).Mirror(url)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func read(t *testing.T, m *git.Mirror, c *git.Commit, name string) string {
	t.Helper()
	content, err := tree.NewView(m.Tree(c), tree.Limits{}).Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestFetchFollowsABranch(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	first := repository.Commit("first\n\nwith a body", map[string]string{"a/b.txt": "one", "c.txt": "c"})
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)

	commit, err := m.Fetch(ctx, r, git.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	if commit.Revision() != "main@sha1:"+first || commit.Subject != "first" || commit.Body != "with a body" || commit.Author != "Ann" {
		t.Errorf("got %+v", commit)
	}
	if got := read(t, m, commit, "a/b.txt"); got != "one" {
		t.Errorf("got %q", got)
	}
	for i := range 5 {
		content := fmt.Sprintf("version %d", i)
		hash := repository.Commit(content, map[string]string{"a/b.txt": content})
		commit, err := m.Fetch(ctx, r, git.Ref{Name: "refs/heads/main"})
		if err != nil {
			t.Fatal(err)
		}
		if commit.Hash.String() != hash || read(t, m, commit, "a/b.txt") != content || read(t, m, commit, "c.txt") != "c" {
			t.Errorf("%d: got %+v", i, commit)
		}
	}
	// The same commit again is one question and no pack; an exact commit that is there is no question at all.
	before := server.Requests.Load()
	if _, err := m.Fetch(ctx, r, git.Ref{Name: "refs/heads/main"}); err != nil || server.Requests.Load() != before+1 {
		t.Errorf("%d requests, %v", server.Requests.Load()-before, err)
	}
	before = server.Requests.Load()
	if _, err := m.Fetch(ctx, r, git.Ref{Commit: plumbing.NewHash(first)}); err != nil || server.Requests.Load() != before {
		t.Errorf("%d requests, %v", server.Requests.Load()-before, err)
	}
	if _, err := m.Fetch(ctx, r, git.Ref{Name: "refs/heads/none"}); !errors.Is(err, git.ErrNoRef) {
		t.Errorf("got %v", err)
	}
}

func TestFetchExactCommitAndTags(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	first := repository.Commit("first", map[string]string{"a": "one"})
	repository.InWork("tag", "-m", "annotated", "v1")
	repository.InWork("push", "-q", "origin", "v1")
	repository.Commit("second", map[string]string{"a": "two"})
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	commit, err := m.Fetch(ctx, r, git.Ref{Commit: plumbing.NewHash(first)})
	if err != nil || read(t, m, commit, "a") != "one" {
		t.Fatalf("%+v, %v", commit, err)
	}
	commit, err = m.Fetch(ctx, r, git.Ref{Name: "refs/tags/v1"})
	if err != nil || commit.Revision() != "v1@sha1:"+first {
		t.Errorf("%+v, %v", commit, err)
	}
	repository.Git("config", "uploadpack.allowReachableSHA1InWant", "false")
	_, err = m.Fetch(ctx, r, git.Ref{Commit: plumbing.NewHash(strings.Repeat("12", 20))})
	if err == nil {
		t.Error("a commit that does not exist was fetched")
	}
}

func TestFetchIncrementally(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	files := map[string]string{}
	for i := range 300 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = strings.Repeat(fmt.Sprint(i), 100)
	}
	repository.Commit("first", files)
	dir := t.TempDir()
	m, r := mirror(t, dir, repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	if _, err := m.Fetch(ctx, r, git.Ref{}); err != nil {
		t.Fatal(err)
	}
	packs := func() int {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*.pack"))
		return len(found)
	}
	loose := func() int {
		found, _ := filepath.Glob(filepath.Join(dir, "*", "objects", "[0-9a-f][0-9a-f]", "*"))
		return len(found)
	}
	if packs() != 1 || loose() != 0 {
		t.Errorf("%d packs, %d loose objects", packs(), loose())
	}
	repository.Commit("second", map[string]string{"d1/f1": "changed"})
	if _, err := m.Fetch(ctx, r, git.Ref{}); err != nil {
		t.Fatal(err)
	}
	// A blob, two directories and the commit: nothing else came.
	if packs() != 1 || loose() != 4 {
		t.Errorf("%d packs, %d loose objects", packs(), loose())
	}
	// Many changed files come as a thin pack, which is completed.
	for name := range files {
		files[name] += "and a little more"
	}
	repository.Commit("third", files)
	if commit, err := m.Fetch(ctx, r, git.Ref{}); err != nil || !strings.HasSuffix(read(t, m, commit, "d1/f11"), "more") || packs() != 2 {
		t.Errorf("%d packs, %v", packs(), err)
	}
	repository.Commit("fourth", map[string]string{"d1/f1": "changed"})
	// A second process with the same directory sees it all.
	other := mirror(t, dir, repository.URL, git.DefaultLimits())
	commit, err := other.Fetch(ctx, r, git.Ref{})
	if err != nil || read(t, other, commit, "d1/f1") != "changed" || read(t, other, commit, "d2/f2") == "" {
		t.Errorf("%+v, %v", commit, err)
	}
}

func TestCredentials(t *testing.T) {
	server := gittest.New(t)
	server.Username, server.Password = "robot", "s3cr3t-value"
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "a"})
	dir := t.TempDir()
	m := mirror(t, dir, repository.URL, git.DefaultLimits())
	for name, secret := range map[string]map[string][]byte{
		"none": nil, "wrong": {"username": []byte("robot"), "password": []byte("other-value")},
	} {
		_, err := m.Fetch(ctx, remote(t, repository.URL, secret), git.Ref{})
		if err == nil || !strings.Contains(err.Error(), "credentials") || strings.Contains(err.Error(), "other-value") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	good := map[string][]byte{"username": []byte("robot"), "password": []byte("s3cr3t-value")}
	if _, err := m.Fetch(ctx, remote(t, repository.URL, good), git.Ref{}); err != nil {
		t.Error(err)
	}
	// Nothing of it is stored.
	err := filepath.Walk(dir, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		content, err := os.ReadFile(name)
		if bytes.Contains(content, []byte("s3cr3t")) {
			t.Errorf("%s holds the password", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	if _, err := git.NewRemote("https://u:hidden@example.com/x.git", nil, nil); err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v", err)
	}
}

func TestSSH(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	hash := repository.Commit("first", map[string]string{"a": "a"})
	sshd := server.NewSSH(t)
	url := "ssh://git@" + sshd.Address + "/config.git"
	secret := map[string][]byte{"identity": sshd.Identity, "known_hosts": sshd.KnownHosts}
	m := mirror(t, t.TempDir(), url, git.DefaultLimits())
	for range 2 {
		commit, err := m.Fetch(ctx, remote(t, url, secret), git.Ref{})
		if err != nil || commit.Hash.String() != hash {
			t.Fatalf("%+v, %v", commit, err)
		}
		hash = repository.Commit("second", map[string]string{"a": "b"})
	}
	write(t, m, remote(t, url, secret), "refs/heads/out", map[string][]byte{"x": []byte("x")})
	if got := repository.Git("show", "out:x"); got != "x" {
		t.Errorf("got %q", got)
	}
	other := server.NewSSH(t)
	cases := map[string]struct {
		secret map[string][]byte
		want   string
	}{
		"no key":      {map[string][]byte{"known_hosts": sshd.KnownHosts}, "identity"},
		"no hosts":    {map[string][]byte{"identity": sshd.Identity}, "known_hosts"},
		"other hosts": {map[string][]byte{"identity": sshd.Identity, "known_hosts": other.KnownHosts}, "no key of"},
		"wrong key of the host": {map[string][]byte{"identity": sshd.Identity,
			"known_hosts": bytes.Replace(other.KnownHosts, []byte(other.Address[strings.Index(other.Address, ":")+1:]), []byte(sshd.Address[strings.Index(sshd.Address, ":")+1:]), 1)}, "mismatch"},
		"wrong key of the user": {map[string][]byte{"identity": other.Identity, "known_hosts": sshd.KnownHosts}, "unable to authenticate"},
	}
	for name, tc := range cases {
		r, err := git.NewRemote(url, tc.secret, nil)
		if err == nil {
			_, err = r.List(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// write commits files on top of a branch.
func write(t *testing.T, m *git.Mirror, r *git.Remote, branch string, files map[string][]byte) git.Hash {
	t.Helper()
	hash, err := tryWrite(m, r, branch, files, nil)
	if err != nil {
		t.Fatal(err)
	}
	return hash
}

func tryWrite(m *git.Mirror, r *git.Remote, branch string, files map[string][]byte, before func()) (git.Hash, error) {
	push, err := r.BeginPush(ctx)
	if err != nil {
		return git.Hash{}, err
	}
	defer push.Close()
	old := push.Refs().ByName[branch]
	data := git.CommitData{Author: "P", Email: "p@example.com", Date: time.Unix(1_700_000_000, 0), Message: "write\n"}
	var root git.Hash
	if !old.IsZero() {
		commit, err := m.Fetch(ctx, r, git.Ref{Commit: old})
		if err != nil {
			return old, err
		}
		root, data.Parents = commit.Tree, []git.Hash{old}
	}
	draft := m.NewDraft()
	if data.Tree, err = draft.Edit(root, files); err != nil {
		return old, err
	}
	hash, err := draft.Commit(data)
	if err != nil {
		return old, err
	}
	var pack bytes.Buffer
	if err := draft.Pack(&pack); err != nil {
		return old, err
	}
	if before != nil {
		before()
	}
	if err := push.Send(ctx, []git.Update{{Name: branch, Old: old, New: hash}}, &pack); err != nil {
		return old, err
	}
	return hash, draft.Keep(ctx, hash)
}

func TestPush(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"keep/a": "a", "dir/gone": "x", "z": "z"})
	m, r := mirror(t, t.TempDir(), repository.URL, git.DefaultLimits()), remote(t, repository.URL, nil)
	write(t, m, r, "refs/heads/main", map[string][]byte{"new/deep/file": []byte("n"), "dir/gone": nil, "z": []byte("zz"), "new.txt": []byte("t")})
	if got := repository.Git("ls-tree", "-r", "--name-only", "main"); got != "keep/a\nnew.txt\nnew/deep/file\nz" {
		t.Errorf("got %s", got)
	}
	write(t, m, r, "refs/heads/fresh", map[string][]byte{"a": []byte("a")})
	repository.Git("fsck", "--strict", "--no-dangling")

	// Somebody else pushes between our look and our push.
	_, err := tryWrite(m, r, "refs/heads/main", map[string][]byte{"q": []byte("q")}, func() {
		write(t, m, r, "refs/heads/main", map[string][]byte{"other": []byte("o")})
	})
	if !errors.Is(err, git.ErrMoved) {
		t.Errorf("got %v", err)
	}
	if _, err := tryWrite(m, r, "refs/heads/main", map[string][]byte{"keep": []byte("file over directory")}, nil); err == nil {
		t.Error("a file replaced a directory")
	}
}

func TestConcurrentUse(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "a", "d/b": "b"})
	store := git.NewStore(t.TempDir(), git.DefaultLimits())
	r := remote(t, repository.URL, nil)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			m, err := store.Mirror(repository.URL)
			if err != nil {
				t.Error(err)
				return
			}
			commit, err := m.Fetch(ctx, r, git.Ref{})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := tree.NewView(m.Tree(commit), tree.Limits{}).Read("d/b"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	m, _ := store.Mirror(repository.URL)
	if _, err := m.Fetch(cancelled, r, git.Ref{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
