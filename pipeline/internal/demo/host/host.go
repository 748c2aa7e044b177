// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package host is a small Git host for the demo: repositories over HTTP, pull requests with pages to read and merge
// them, commit statuses, and signed webhooks. Prerig uses it as a Gitea server: the API is the part of Gitea's that
// Prerig calls (docs.gitea.com, "API"; read in routers/api/v1/repo of 1.27.3). It is for loopback only, where everyone
// may push and merge.
package host

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// Host serves repositories with their pull requests.
type Host struct {
	// URL of the host, without a slash at its end.
	URL string
	// Token is what the API asks for.
	Token string
	// Moved is called for each branch that a push or merge has moved, if it is not nil. It must not block.
	Moved func(r *Repository, branch, commit string)
	// Home returns what the first page shows above the repositories; nil shows nothing.
	Home func(ctx context.Context) (Overview, error)

	git    http.Handler
	server *http.Server
	ctx    context.Context // of requests to git and of webhooks
	stop   context.CancelFunc

	mu           sync.Mutex
	repositories []*Repository
	hooks, key   string
	delivering   sync.WaitGroup
}

// Start serves repositories below a directory on a free port of this machine.
func Start(ctx context.Context, root string) (*Host, error) {
	git, err := testbed.GitHandler(root)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening a port for the Git host: %w", err)
	}
	h := &Host{URL: "http://" + listener.Addr().String(), Token: testbed.RandomKey(), git: git}
	h.ctx, h.stop = context.WithCancel(ctx)
	// A page of another site must not merge by a form of its own, nor read through a name of its own.
	handler := http.NewCrossOriginProtection().Handler(h.routes())
	h.server = &http.Server{Handler: onlyNamed(listener.Addr().String(), handler), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = h.server.Serve(listener) }()
	return h, nil
}

// onlyNamed rejects requests for other names than the address, and localhost with its port.
func onlyNamed(address string, next http.Handler) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host != address && r.Host != "localhost:"+port {
			http.Error(w, "this address is only for names of this machine", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Close ends the server and waits for webhooks that are under way.
func (h *Host) Close() error {
	err := h.server.Close()
	h.stop()
	h.delivering.Wait()
	return err
}

// Notify sends the events of all repositories to a URL from now on, signed with a key.
func (h *Host) Notify(url, key string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.hooks, h.key = url, key
}

// Repository is one repository with its pull requests.
type Repository struct {
	*testbed.Repository
	// Name is OWNER/NAME.
	Name string

	id   int64
	host *Host
	// pushing serializes pushes and merges, so that each notices what it has moved.
	pushing sync.Mutex

	mu       sync.Mutex
	pulls    []*pull // by number
	labels   []label
	comments []comment
	statuses map[string][]status // by commit
}

// Repository makes an empty repository and a work tree of it, on the branch main, in a directory.
func (h *Host) Repository(ctx context.Context, root, name, work string) (*Repository, error) {
	bare := filepath.Join(root, filepath.FromSlash(name)+".git")
	r := &Repository{Repository: &testbed.Repository{URL: h.URL + "/" + name + ".git", Bare: bare, Work: work},
		Name: name, host: h, statuses: map[string][]status{}}
	if err := os.MkdirAll(filepath.Dir(bare), 0o755); err != nil {
		return nil, fmt.Errorf("making the repository %s: %w", name, err)
	}
	if err := r.Init(ctx); err != nil {
		return nil, err
	}
	// Housekeeping would go on in the background when the directory is removed.
	for _, key := range []string{"gc.auto", "receive.autogc"} {
		if _, err := r.Git(ctx, "config", key, "0"); err != nil {
			return nil, err
		}
	}
	if _, err := r.InWork(ctx, "remote", "set-url", "origin", r.URL); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	r.id = int64(len(h.repositories) + 1)
	h.repositories = append(h.repositories, r)
	return r, nil
}

// all returns the repositories, in the order in which they were made.
func (h *Host) all() []*Repository {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]*Repository(nil), h.repositories...)
}

// find returns the repository of a request, or nil if there is none of that name.
func (h *Host) find(r *http.Request) *Repository {
	name := r.PathValue("owner") + "/" + strings.TrimSuffix(r.PathValue("repository"), ".git")
	for _, one := range h.all() {
		if one.Name == name {
			return one
		}
	}
	return nil
}

// on returns a handler for requests about a repository.
func (h *Host) on(do func(repository *Repository, w http.ResponseWriter, r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repository := h.find(r)
		if repository == nil {
			http.NotFound(w, r)
			return
		}
		do(repository, w, r)
	})
}

// authorized lets only requests with the token through.
func (h *Host) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		given, ok := strings.CutPrefix(r.Header.Get("Authorization"), "token ")
		if !ok || subtle.ConstantTimeCompare([]byte(given), []byte(h.Token)) != 1 {
			writeProblem(w, http.StatusUnauthorized, errors.New("the token is missing or wrong"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *Host) routes() http.Handler {
	mux := http.NewServeMux()
	for pattern, do := range map[string]func(*Repository, http.ResponseWriter, *http.Request){
		"GET /{owner}/{repository}/info/refs":         (*Repository).serveGit,
		"POST /{owner}/{repository}/git-upload-pack":  (*Repository).serveGit,
		"POST /{owner}/{repository}/git-receive-pack": (*Repository).receive,
		"GET /{owner}/{repository}":                   showHistory,
		"GET /{owner}/{repository}/pulls":             showPulls,
		"GET /{owner}/{repository}/pulls/{number}":    showPull,
		"GET /{owner}/{repository}/commit/{commit}":   showCommit,
		"POST /{owner}/{repository}/pulls/{number}":   decide,
	} {
		mux.Handle(pattern, h.on(do))
	}
	for pattern, do := range apiRoutes {
		method, below, _ := strings.Cut(pattern, " ")
		mux.Handle(method+" /api/v1/repos/{owner}/{repository}"+below, h.authorized(h.on(do)))
	}
	mux.HandleFunc("GET /{$}", h.showHome)
	return mux
}

func (r *Repository) serveGit(w http.ResponseWriter, request *http.Request) {
	r.host.git.ServeHTTP(w, request)
}

// receive takes a push, and announces the branches that it has moved.
func (r *Repository) receive(w http.ResponseWriter, request *http.Request) {
	r.pushing.Lock()
	defer r.pushing.Unlock()
	before := branches(r.host.ctx, r.Repository)
	r.host.git.ServeHTTP(w, request)
	after := branches(r.host.ctx, r.Repository)
	for name, commit := range after {
		if before[name] != commit {
			r.announcePush(name, before[name], commit)
		}
	}
	for name, commit := range before {
		if after[name] == "" {
			r.announcePush(name, commit, "")
		}
	}
}

// branches returns the commits of all branches by their names.
func branches(ctx context.Context, r *testbed.Repository) map[string]string {
	out := map[string]string{}
	text, err := r.Git(ctx, "for-each-ref", "--format=%(refname:lstrip=2) %(objectname)", "refs/heads")
	if err != nil {
		return out
	}
	for line := range strings.Lines(text) {
		if name, commit, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			out[name] = commit
		}
	}
	return out
}

// head returns the commit of a branch, or "" if the branch does not exist.
func (r *Repository) head(branch string) string {
	commit, err := r.Git(r.host.ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", "refs/heads/"+branch)
	if err != nil {
		return ""
	}
	return commit
}

const noCommit = "0000000000000000000000000000000000000000"

// announcePush delivers a push event; a commit is "" if the branch does not exist.
func (r *Repository) announcePush(branch, before, after string) {
	if r.host.Moved != nil && after != "" {
		r.host.Moved(r, branch, after)
	}
	r.host.deliver("push", map[string]any{
		"ref": "refs/heads/" + branch, "before": orNoCommit(before), "after": orNoCommit(after),
		"repository": r.described(),
	})
}

func orNoCommit(commit string) string {
	if commit == "" {
		return noCommit
	}
	return commit
}

// described is the repository as events name it.
func (r *Repository) described() map[string]any {
	return map[string]any{"id": r.id, "full_name": r.Name, "clone_url": r.URL,
		"html_url": strings.TrimSuffix(r.URL, ".git")}
}

// deliver sends an event in the background, signed as Gitea does.
func (h *Host) deliver(kind string, payload map[string]any) {
	h.mu.Lock()
	url, key := h.hooks, h.key
	h.mu.Unlock()
	if url == "" {
		return
	}
	body := encode(payload)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write(body)
	signature := hex.EncodeToString(mac.Sum(nil))
	h.delivering.Go(func() {
		for try := range 5 {
			if h.deliverOnce(url, kind, signature, body) || h.ctx.Err() != nil {
				return
			}
			time.Sleep(time.Duration(try+1) * 200 * time.Millisecond)
		}
	})
}
