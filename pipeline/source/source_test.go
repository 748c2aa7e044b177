// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

var ctx = context.Background()

func read(t *testing.T, s *source.Snapshot, name string) string {
	t.Helper()
	content, err := tree.NewView(s.Tree, tree.Limits{}).Read(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestFetchGit(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	first := repository.Commit("first", map[string]string{"a": "one"})
	second := repository.Commit("second", map[string]string{"a": "two"})
	f := source.New(source.Options{StateDir: t.TempDir()})
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL, Ref: v1alpha1.GitRef{Branch: "main"}}}
	snapshot, err := f.Fetch(ctx, source.Scope{}, src, "")
	if err != nil || snapshot.Revision != "main@sha1:"+second || snapshot.Digest != second || read(t, snapshot, "a") != "two" {
		t.Fatalf("%+v, %v", snapshot, err)
	}
	for _, revision := range []string{first, "main@sha1:" + first} {
		snapshot, err = f.Fetch(ctx, source.Scope{}, src, revision)
		if err != nil || snapshot.Revision != "main@sha1:"+first || read(t, snapshot, "a") != "one" {
			t.Fatalf("%+v, %v", snapshot, err)
		}
	}
}

func TestSubmodules(t *testing.T) {
	server := gittest.New(t)
	library := server.Repository(t, "library")
	library.Commit("library", map[string]string{"base.yaml": "base"})
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "one"})
	repository.InWork("-c", "protocol.file.allow=always", "submodule", "add", "-q", library.Bare, "vendor/library")
	repository.InWork("config", "-f", ".gitmodules", "submodule.vendor/library.url", "../library.git")
	repository.Commit("with a submodule", nil)
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL}}
	f := source.New(source.Options{StateDir: t.TempDir()})
	snapshot, err := f.Fetch(ctx, source.Scope{}, src, "")
	if err != nil || read(t, snapshot, "a") != "one" {
		t.Fatal(err)
	}
	view := tree.NewView(snapshot.Tree, tree.Limits{})
	for name, err := range map[string]error{"read": second(view.Read("vendor/library/base.yaml")), "list": second(view.List("vendor/library"))} {
		if !errors.Is(err, tree.ErrSubmodule) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	src.Git.Submodules = true
	if snapshot, err = f.Fetch(ctx, source.Scope{}, src, ""); err != nil || read(t, snapshot, "vendor/library/base.yaml") != "base" {
		t.Fatal(err)
	}
}

func second[T any](_ T, err error) error { return err }

// A source is read with the secrets of its pipeline's namespace, and over plain http only where the secret names the server so.
func TestSecretsOfASource(t *testing.T) {
	server := gittest.New(t)
	dir := t.TempDir()
	for name, content := range map[string]string{
		"apps/git/password": "pw\n", "apps/git/username": "u", "apps/git/.hosts": "# of tests\n" + server.URL + "\n",
		"apps/unbound/password": "pw", "apps/unbound/username": "u",
		"apps/elsewhere/password": "pw", "apps/elsewhere/username": "u", "apps/elsewhere/.hosts": "git.example.com",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755), os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	secrets := secret.Dir{Path: dir}
	server.Username, server.Password = "u", "pw"
	asked := false
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		asked = asked || r.Header.Get("Authorization") != ""
		return false
	})
	repository := server.Repository(t, "config")
	repository.Commit("first", map[string]string{"a": "one"})
	f := source.New(source.Options{StateDir: t.TempDir(), Secrets: secrets})
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL, SecretRef: &meta.LocalObjectReference{Name: "git"}}}
	if _, err := f.Fetch(ctx, source.Scope{Namespace: "apps"}, src, ""); err != nil {
		t.Error(err)
	}
	if _, err := f.Fetch(ctx, source.Scope{Namespace: "other"}, src, ""); err == nil || !strings.Contains(err.Error(), "secret git") {
		t.Errorf("got %v", err)
	}
	asked = false
	for name, want := range map[string]string{"unbound": "over plain http; if that is meant, write " + server.URL, "elsewhere": "does not name that server"} {
		src.Git.SecretRef.Name = name
		if _, err := f.Fetch(ctx, source.Scope{Namespace: "apps"}, src, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if asked {
		t.Error("credentials were sent")
	}
}

func TestDirNeedsPermission(t *testing.T) {
	base := t.TempDir()
	if err := os.WriteFile(filepath.Join(base, "a"), []byte("one"), 0o600); err != nil {
		t.Fatal(err)
	}
	src := v1alpha1.Source{Dir: &v1alpha1.DirSource{Path: "."}}
	if _, err := source.New(source.Options{BaseDir: base}).Fetch(ctx, source.Scope{}, src, ""); err == nil {
		t.Error("a local directory was read without permission")
	}
	snapshot, err := source.New(source.Options{BaseDir: base, AllowDir: true}).Fetch(ctx, source.Scope{}, src, "")
	if err != nil || read(t, snapshot, "a") != "one" || !strings.HasPrefix(snapshot.Revision, "dir@sha256:") {
		t.Errorf("%+v, %v", snapshot, err)
	}
}

// The hash of a commit stands in every rendered commit, so knowing it proves nothing.
func TestPinnedCommitNeedsItsOwnCredentials(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "apps")
	commit := repository.Commit("first", map[string]string{"a": "private"})
	server.Username, server.Password = "reader", "s3cr3t"
	fetcher := source.New(source.Options{StateDir: t.TempDir(), Secrets: secrets(t, server.URL)})
	own := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL, SecretRef: &meta.LocalObjectReference{Name: "git"}}}
	if _, err := fetcher.Fetch(ctx, source.Scope{}, own, ""); err != nil {
		t.Fatal(err)
	}
	foreign := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL, Ref: v1alpha1.GitRef{Commit: commit}}}
	if _, err := fetcher.Fetch(ctx, source.Scope{Namespace: "other"}, foreign, ""); err == nil || !strings.Contains(err.Error(), "asks for credentials") {
		t.Errorf("got %v", err)
	}
}
