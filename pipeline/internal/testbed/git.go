// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package testbed runs what the demo and the benchmark need around Prerig on loopback: a Git server with git's own
// http-backend, repositories, and prerig serve in a process of its own. It needs the git command and writes only
// below the directory passed to it.
package testbed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Git serves every repository of a directory over HTTP, to read and to write.
type Git struct {
	root, url string
	server    *http.Server
}

// ServeGit starts a server for the directory, on a free port of this machine.
func ServeGit(root string) (*Git, error) {
	handler, err := GitHandler(root)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port for the Git server: %w", err)
	}
	g := &Git{root: root, url: "http://" + listener.Addr().String(), server: &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = g.server.Serve(listener) }()
	return g, nil
}

// GitHandler serves the repositories below a directory, which it creates if necessary, with git's own http-backend,
// for reading and writing. The standard error of git is appended to http-backend.log in that directory.
func GitHandler(root string) (http.Handler, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, fmt.Errorf("looking for git: %w", err)
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of repositories: %w", err)
	}
	// Not our own standard error: readers of ours would wait for a git that still runs after we have ended.
	said, err := os.OpenFile(filepath.Join(root, "http-backend.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("making the log of the Git server: %w", err)
	}
	return wholeRequests{&cgi.Handler{Path: git, Args: []string{"http-backend"}, Stderr: said, Env: []string{
		"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=demo", "GIT_CONFIG_NOSYSTEM=1", "HOME=/nonexistent",
	}}}, nil
}

// wholeRequests forwards only requests that have arrived completely. git's http-backend (2.39, http-backend.c,
// pipe_fixed_length) reads for ever, and keeps a processor busy, if a body is shorter than its Content-Length, such
// as that of a client killed during a push.
type wholeRequests struct{ next http.Handler }

// ServeHTTP implements http.Handler.
func (h wholeRequests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, "the request ends early", http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h.next.ServeHTTP(w, r)
}

// Close ends the server.
func (g *Git) Close() error { return g.server.Close() }

// Repository is one bare repository with a work tree to commit from.
type Repository struct {
	// URL of the repository.
	URL string
	// Bare is the directory that is served, Work a work tree, on the branch main.
	Bare, Work string
}

// Repository makes an empty repository, with its work tree beside it.
func (g *Git) Repository(ctx context.Context, name string) (*Repository, error) {
	r := &Repository{URL: g.url + "/" + name + ".git", Bare: filepath.Join(g.root, name+".git"), Work: filepath.Join(g.root, name)}
	return r, r.Init(ctx)
}

// Init makes the repository and the work tree in their directories, both empty.
func (r *Repository) Init(ctx context.Context) error {
	_, err1 := runGit(ctx, "", "init", "-q", "--template=", "--bare", "-b", "main", r.Bare)
	_, err2 := runGit(ctx, "", "init", "-q", "--template=", "-b", "main", r.Work)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for _, setting := range [][]string{{"http.receivepack", "true"}, {"uploadpack.allowFilter", "true"}, {"uploadpack.allowReachableSHA1InWant", "true"}} {
		if _, err := r.Git(ctx, append([]string{"config"}, setting...)...); err != nil {
			return err
		}
	}
	_, err := r.InWork(ctx, "remote", "add", "origin", r.Bare)
	return err
}

// Git runs git in the bare repository and returns its output.
func (r *Repository) Git(ctx context.Context, args ...string) (string, error) {
	return runGit(ctx, r.Bare, args...)
}

// InWork runs git in the work tree and returns its output.
func (r *Repository) InWork(ctx context.Context, args ...string) (string, error) {
	return runGit(ctx, r.Work, args...)
}

// Head returns the commit of a branch, or "" if the branch does not exist. It is cheap enough for polling.
func (r *Repository) Head(branch string) string {
	text, err := os.ReadFile(filepath.Join(r.Bare, "refs", "heads", filepath.FromSlash(branch)))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Commit writes files (an empty content removes), commits and pushes the current branch, and returns the commit.
func (r *Repository) Commit(ctx context.Context, subject string, files map[string]string) (string, error) {
	written := map[string]string{}
	for name, text := range files {
		written[name] = text
		if text != "" {
			continue
		}
		delete(written, name)
		if err := os.Remove(filepath.Join(r.Work, filepath.FromSlash(name))); err != nil {
			return "", fmt.Errorf("removing %s: %w", name, err)
		}
	}
	if err := Write(r.Work, written); err != nil {
		return "", err
	}
	for _, args := range [][]string{{"add", "-A"}, {"commit", "-q", "--allow-empty", "-m", subject}, {"push", "-q", "origin", "HEAD"}} {
		if _, err := r.InWork(ctx, args...); err != nil {
			return "", err
		}
	}
	return r.InWork(ctx, "rev-parse", "HEAD")
}

// Write writes files below a directory.
func Write(dir string, files map[string]string) error {
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing %s: %w", name, err)
		}
	}
	return nil
}

// Environment is that of git without the user's settings.
func Environment() []string {
	return append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
}

func runGit(ctx context.Context, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "git", args...)
	command.Dir, command.Env = dir, Environment()
	var stderr strings.Builder
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("running git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
