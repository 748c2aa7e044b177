// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/server/signin"
)

// Options of a Server.
type Options struct {
	Catalog *catalog.Catalog
	Store   *status.Store
	Queue   *queue.Queue
	Planner *plan.Planner
	// Keeper tracks deleted pipelines; nil tracks none.
	Keeper *prune.Keeper
	// Promoter merges, holds and rolls back; nil does none of it.
	Promoter  *promotion.Promoter
	Receivers []event.Receiver
	// Delivery counts webhook deliveries.
	Delivery func(receiver, outcome string)
	// Problem returns why storing or rendering is currently impossible, or nil if it is possible. It must be quick,
	// and name no pipeline: it is public.
	Problem func() error
	// IsWaiting reports whether a pipeline has a job that no worker accepts. It may be nil.
	IsWaiting func(pipeline string) bool
	// Metrics serves the metrics.
	Metrics http.Handler
	// Tokens are the accepted tokens; nil accepts none.
	Tokens *access.Tokens
	// SignIn lets people sign in at a provider; nil disables it.
	SignIn *signin.Provider
	// Session is how long a user stays signed in after signing in with a token; the default is 8 hours.
	Session time.Duration
	// ExternalURL is the URL by which people reach the page; "" is not known.
	ExternalURL string
	// Audit records who changes something; nil records nothing.
	Audit *access.Audit
	// Version of Prerig, for the page.
	Version string
	Log     *slog.Logger
}

// Server answers.
type Server struct {
	Options
	hooks *event.Handler
	pages *pageTemplates
	forms *formKey
	live  *liveHub

	// api is what the admin address serves, for pages that show or do what a route of it does.
	api atomic.Pointer[http.ServeMux]

	people   *signin.TokenSessions
	peopleOf sync.Once
}

// New returns a Server.
func New(o Options) (*Server, error) {
	s := &Server{Options: o}
	var err error
	s.hooks, err = event.NewHandler(o.Receivers, s, event.WithLogger(o.Log), event.WithObserver(o.Delivery))
	if err != nil {
		return nil, err
	}
	if s.forms, err = newFormKey(); err != nil {
		return nil, err
	}
	s.live = newLiveHub()
	if s.Store != nil {
		s.Store.OnChange(s.live.markConcernedPages)
	}
	if s.Catalog != nil {
		s.Catalog.OnChange(func(changed []string) {
			for _, pipeline := range changed {
				s.live.markConcernedPages(pipeline)
			}
		})
	}
	s.pages, err = newPages()
	return s, err
}

// defaultSession is how long a user stays signed in with a token.
const defaultSession = 8 * time.Hour

// tokenSessions returns the sessions of those who have signed in with a token, nil where no token is taken.
func (s *Server) tokenSessions() *signin.TokenSessions {
	s.peopleOf.Do(func() {
		if s.Tokens != nil {
			s.people = signin.NewTokenSessions(s.Tokens, cmp.Or(s.Session, defaultSession))
		}
	})
	return s.people
}

// Watches implements event.Store.
func (s *Server) Watches(changes []event.Change) bool { return s.Catalog.Watches(changes) }

// putTimeout bounds the storing of an event. Senders wait ten seconds for an answer, and a cluster may need most of them to
// find another leader.
const putTimeout = 9 * time.Second

// Put implements event.Store.
func (s *Server) Put(ctx context.Context, e event.Event) (bool, error) {
	// A sender that hangs up has still sent the event.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	// Unwatched changes are dropped, so that a delivery of many thousand changes fits.
	e.Changes = slices.DeleteFunc(slices.Clone(e.Changes), func(c event.Change) bool { return !s.Catalog.Watches([]event.Change{c}) })
	return s.Queue.Put(ctx, e)
}

// Hooks serves webhooks and health checks.
func (s *Server) Hooks() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/hook/", s.hooks)
	s.routeHealth(mux)
	return mux
}

// Health serves health checks alone.
func (s *Server) Health() http.Handler {
	mux := http.NewServeMux()
	s.routeHealth(mux)
	return mux
}

func (s *Server) routeHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.readinessProblem(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// readinessProblem returns why storing or rendering is currently impossible, or nil if it is possible.
func (s *Server) readinessProblem() error {
	if s.Problem != nil {
		return s.Problem()
	}
	return s.Queue.Ready()
}

// Admin serves the web page, the metrics and the API.
func (s *Server) Admin(at Access) http.Handler {
	mux := http.NewServeMux()
	s.routeHealth(mux)
	if s.Metrics != nil {
		mux.Handle("GET /metrics", s.requireSomeRole(access.Metrics, s.Metrics.ServeHTTP))
	}
	s.routeAPI(mux)
	s.routeWeb(mux)
	s.routeSignIn(mux)
	s.routeLive(mux)
	s.api.Store(mux)
	return s.identifyPrincipal(at, mux)
}

// maxConnections bounds the connections of one address. More wait until others end; idle ones time out.
const maxConnections = 1000

// Serve answers on a listener until ctx is done, by TLS unless over is nil.
func Serve(ctx context.Context, l net.Listener, over *tls.Config, h http.Handler, log *slog.Logger) error {
	server := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 256 << 10, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		// Requests are answered to their end when ctx is done, but those that would not end by themselves.
		BaseContext: func(net.Listener) context.Context { return withClosingSignal(context.WithoutCancel(ctx), ctx.Done()) },
	}
	stop := context.AfterFunc(ctx, func() {
		closing, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(closing)
	})
	defer stop()
	limited := netutil.LimitListener(l, maxConnections)
	if over != nil {
		limited = tls.NewListener(limited, over)
	}
	if err := server.Serve(limited); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serving on %s: %w", l.Addr(), err)
	}
	return nil
}
