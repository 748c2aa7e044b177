// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package gittest serves Git repositories on loopback for tests: over HTTP with git's own http-backend, and over ssh
// with git's own upload-pack and receive-pack. It needs the git command and is not part of the product.
package gittest

import (
	"bufio"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// Server serves every repository below Root.
type Server struct {
	// Root holds the bare repositories.
	Root string
	// URL of the server, without a slash at its end.
	URL string
	// Requests counts what was asked.
	Requests atomic.Int64
	// Intercept may answer a request itself and then gives true.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
	// Lose may say that a request is served, but its answer lost on the way.
	Lose func(r *http.Request) bool
	// Username and Password are asked for where they are set.
	Username, Password string

	backend atomic.Value // of handler
}

type gitHandler struct{ http.Handler }

// Wrap puts a handler around git's own.
func (s *Server) Wrap(around func(http.Handler) http.Handler) {
	now, _ := s.backend.Load().(gitHandler)
	s.backend.Store(gitHandler{around(now)})
}

// New starts a server.
func New(t testing.TB) *Server {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("the git command is not installed")
	}
	s := &Server{Root: t.TempDir()}
	backend := &cgi.Handler{
		Path: git, Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + s.Root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent"},
	}
	s.backend.Store(gitHandler{backend})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if s.Password != "" {
			user, password, _ := r.BasicAuth()
			if user != s.Username || password != s.Password {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you", http.StatusUnauthorized)
				return
			}
		}
		if s.Intercept != nil && s.Intercept(w, r) {
			return
		}
		if s.Lose != nil && s.Lose(r) {
			backend.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		around, _ := s.backend.Load().(gitHandler)
		around.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Repository is one bare repository with a work tree to commit from.
type Repository struct {
	t testing.TB
	// Bare is the directory that is served, Work a clone of it.
	Bare, Work string
	// URL of the repository.
	URL string
}

// Repository makes an empty repository whose default branch is main.
func (s *Server) Repository(t testing.TB, name string) *Repository {
	t.Helper()
	r := &Repository{t: t, Bare: filepath.Join(s.Root, name+".git"), Work: filepath.Join(t.TempDir(), "work"), URL: s.URL + "/" + name + ".git"}
	r.runGit("", "init", "-q", "--bare", "-b", "main", r.Bare)
	for _, setting := range []string{"http.receivepack=true", "uploadpack.allowFilter=true", "uploadpack.allowReachableSHA1InWant=true"} {
		key, value, _ := strings.Cut(setting, "=")
		r.Git("config", key, value)
	}
	r.runGit("", "init", "-q", "-b", "main", r.Work)
	r.runGit(r.Work, "remote", "add", "origin", r.Bare)
	return r
}

// Git runs git in the bare repository and gives its output.
func (r *Repository) Git(args ...string) string { return r.runGit(r.Bare, args...) }

// InWork runs git in the work tree.
func (r *Repository) InWork(args ...string) string { return r.runGit(r.Work, args...) }

func (r *Repository) runGit(dir string, args ...string) string {
	r.t.Helper()
	command := exec.Command("git", args...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := command.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit writes files (an empty content removes), commits and pushes the current branch, and gives the commit.
func (r *Repository) Commit(subject string, files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		full := filepath.Join(r.Work, name)
		if content == "" {
			if err := os.Remove(full); err != nil {
				r.t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.InWork("add", "-A")
	r.InWork("commit", "-q", "--allow-empty", "-m", subject)
	r.InWork("push", "-q", "origin", "HEAD")
	return r.InWork("rev-parse", "HEAD")
}

// Import commits many files to main at once, each given by its name and the number of zero bytes in it. It is for
// repositories that are too large for a work tree.
func (r *Repository) Import(subject string, files int, file func(i int) (name string, size int)) {
	r.t.Helper()
	command := exec.Command("git", "fast-import", "--quiet")
	command.Dir = r.Bare
	in, err := command.StdinPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		r.t.Fatal(err)
	}
	w := bufio.NewWriterSize(in, 1<<20)
	fmt.Fprintf(w, "commit refs/heads/main\ncommitter Ann <ann@example.com> 1700000000 +0000\ndata %d\n%s\n", len(subject), subject)
	zeros := make([]byte, 1<<20)
	for i := range files {
		name, size := file(i)
		fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n", name, size)
		for ; size > 0; size -= len(zeros) {
			_, _ = w.Write(zeros[:min(size, len(zeros))])
		}
		fmt.Fprintln(w)
	}
	if err := errors.Join(w.Flush(), in.Close(), command.Wait()); err != nil {
		r.t.Fatal(err)
	}
}
