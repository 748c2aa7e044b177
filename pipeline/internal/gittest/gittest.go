// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package gittest is the Git server of testbed for tests: failures on the way can be injected, errors end the test,
// and ssh is served too, with git's own upload-pack and receive-pack. It needs the git command and is not part of
// the product.
package gittest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// Server serves every repository below Root.
type Server struct {
	// Root holds the bare repositories.
	Root string
	// URL of the server, without a slash at its end.
	URL string
	// Requests counts what was asked.
	Requests atomic.Int64
	// Lose reports whether the answer to a request is lost on the way, although the request is served.
	Lose func(r *http.Request) bool
	// AnswerSSH may answer a command sent over ssh itself, in which case it returns true. service is
	// git-upload-pack or git-receive-pack.
	AnswerSSH func(service, repository string, channel io.ReadWriter) bool
	// Username and Password are asked for where they are set.
	Username, Password string

	backend   atomic.Value // of handler
	intercept atomic.Pointer[func(w http.ResponseWriter, r *http.Request) bool]
}

// Intercept calls a function for all requests from now on. The function may answer a request itself, in which case
// it returns true. nil removes it.
func (s *Server) Intercept(intercept func(w http.ResponseWriter, r *http.Request) bool) {
	s.intercept.Store(&intercept)
}

type gitHandler struct{ http.Handler }

// Wrap puts a handler around git's own.
func (s *Server) Wrap(around func(http.Handler) http.Handler) {
	now, _ := s.backend.Load().(gitHandler)
	s.backend.Store(gitHandler{around(now)})
}

// New starts a server on a free port of this machine.
func New(t testing.TB) *Server {
	t.Helper()
	return NewAt(t, "127.0.0.1:0")
}

// NewAt starts a server at an address. It waits while another test has that.
func NewAt(t testing.TB, address string) *Server {
	t.Helper()
	s := &Server{Root: t.TempDir()}
	backend, err := testbed.GitHandler(s.Root)
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("the git command is not installed")
	}
	if err != nil {
		t.Fatal(err)
	}
	listener := listen(t, address)
	s.backend.Store(gitHandler{backend})
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Requests.Add(1)
		if s.Password != "" {
			user, password, _ := r.BasicAuth()
			if user != s.Username || password != s.Password {
				w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
				http.Error(w, "who are you", http.StatusUnauthorized)
				return
			}
		}
		if intercept := s.intercept.Load(); intercept != nil && *intercept != nil && (*intercept)(w, r) {
			return
		}
		if s.Lose != nil && s.Lose(r) {
			backend.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		}
		around, _ := s.backend.Load().(gitHandler)
		around.ServeHTTP(w, r)
	}))
	server.Listener.Close() // its own
	server.Listener = listener
	server.Start()
	// Not Server.Close, which waits until all requests are answered.
	t.Cleanup(func() { server.CloseClientConnections(); _ = server.Config.Close() })
	s.URL = server.URL
	return s
}

func listen(t testing.TB, address string) net.Listener {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); ; time.Sleep(100 * time.Millisecond) {
		listener, err := net.Listen("tcp", address)
		if err == nil {
			return listener
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// Repository is a repository whose errors end the test.
type Repository struct {
	*testbed.Repository
	t testing.TB
}

// Repository makes an empty repository whose default branch is main.
func (s *Server) Repository(t testing.TB, name string) *Repository {
	t.Helper()
	r := &Repository{t: t, Repository: &testbed.Repository{
		Bare: filepath.Join(s.Root, name+".git"), Work: filepath.Join(t.TempDir(), "work"), URL: s.URL + "/" + name + ".git",
	}}
	if err := r.Init(context.Background()); err != nil {
		t.Fatal(err)
	}
	return r
}

// Existing returns an existing repository, with a new work tree.
func (s *Server) Existing(t testing.TB, name string) *Repository {
	t.Helper()
	r := &Repository{t: t, Repository: &testbed.Repository{
		Bare: filepath.Join(s.Root, name+".git"), Work: filepath.Join(t.TempDir(), "work"), URL: s.URL + "/" + name + ".git",
	}}
	r.Git("clone", "-q", "--branch", "main", r.Bare, r.Work)
	return r
}

// Git runs git in the bare repository and returns its output. It may be called when the test ends.
func (r *Repository) Git(args ...string) string {
	r.t.Helper()
	return r.mustSucceed(r.Repository.Git(context.Background(), args...))
}

// InWork runs git in the work tree.
func (r *Repository) InWork(args ...string) string {
	r.t.Helper()
	return r.mustSucceed(r.Repository.InWork(context.Background(), args...))
}

// Commit is testbed's.
func (r *Repository) Commit(subject string, files map[string]string) string {
	r.t.Helper()
	return r.mustSucceed(r.Repository.Commit(context.Background(), subject, files))
}

func (r *Repository) mustSucceed(out string, err error) string {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	return out
}

// Import commits many files to main at once, each specified by its name and the number of zero bytes in it. It is
// for repositories that are too large for a work tree.
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
