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
	"time"

	"golang.org/x/net/netutil"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/event"
	"github.com/prerig/prerig/pipeline/daemon/plan"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
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
	// Clusters returns the clusters that are compared with what is committed; it may be nil.
	Clusters func() []VerifiedCluster
	// Delivery counts webhook deliveries.
	Delivery func(receiver, outcome string)
	// Problem returns why storing or rendering is currently impossible, or nil if it is possible. It must be quick,
	// and name no pipeline: it is public. Nil is that of the queue.
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
	// Audit records who changes something; nil discards all records.
	Audit *access.Audit
	// Version of Prerig, for the page.
	Version string
	Log     *slog.Logger
}

// Server answers. What the admin address serves is in handlers by topic, which receive of the Options what they need.
type Server struct {
	Options
	hooks    *event.Handler
	pages    *pageWriter
	live     *liveHub
	sessions *signin.TokenSessions // nil where no token is taken
}

// New returns a Server.
func New(o Options) (*Server, error) {
	if o.Problem == nil {
		o.Problem = func() error { return o.Queue.Ready() }
	}
	s := &Server{Options: o}
	s.live = newLiveHub(s.pipelineViews())
	var err error
	s.hooks, err = event.NewHandler(o.Receivers, watchedEvents{o.Catalog, o.Queue}, event.WithLogger(o.Log), event.WithObserver(o.Delivery))
	if err != nil {
		return nil, err
	}
	if o.Tokens != nil {
		s.sessions = signin.NewTokenSessions(o.Tokens, cmp.Or(o.Session, defaultSession))
	}
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
	s.pages, err = newPageWriter(o)
	return s, err
}

// defaultSession is how long a user stays signed in with a token.
const defaultSession = 8 * time.Hour

// watchedEvents stores the events that pipelines watch.
type watchedEvents struct {
	catalog *catalog.Catalog
	queue   *queue.Queue
}

// Watches implements event.Store.
func (e watchedEvents) Watches(changes []event.Change) bool { return e.catalog.Watches(changes) }

// putTimeout bounds the storing of an event. Senders wait ten seconds for an answer, and a cluster may need most of them to
// find another leader.
const putTimeout = 9 * time.Second

// Put implements event.Store.
func (e watchedEvents) Put(ctx context.Context, delivered event.Event) (bool, error) {
	// A sender that hangs up has still sent the event.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), putTimeout)
	defer cancel()
	// Unwatched changes are dropped, so that a delivery of many thousand changes fits.
	delivered.Changes = slices.DeleteFunc(slices.Clone(delivered.Changes), func(c event.Change) bool {
		return !e.Watches([]event.Change{c})
	})
	return e.queue.Put(ctx, delivered)
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
		if err := s.Problem(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
}

// Admin serves the web page, the metrics and the API.
func (s *Server) Admin(at Access) http.Handler {
	mux := http.NewServeMux()
	guard := s.newGuard()
	s.routeAdmin(mux, guard, mux)
	return guard.identifyPrincipal(at, mux)
}

func (s *Server) newGuard() *guard {
	return &guard{
		pages: s.pages, tokens: s.Tokens, sessions: s.sessions, provider: s.SignIn, externalURL: s.ExternalURL,
		audit: s.Audit,
	}
}

func (s *Server) pipelineViews() *pipelineViews {
	return &pipelineViews{catalog: s.Catalog, store: s.Store, isWaiting: s.IsWaiting}
}

// targets returns what reads what is published, nil for a process that does not.
func (s *Server) targets() *publish.Targets {
	if s.Promoter == nil {
		return nil
	}
	return s.Promoter.Targets
}

// routeAdmin adds what the admin address serves. The buttons of pages use api for what the API does.
func (s *Server) routeAdmin(mux *http.ServeMux, guard *guard, api http.Handler) {
	s.routeHealth(mux)
	guard.addSignIn(mux)
	mux.HandleFunc("GET /style.css", serveFile("text/css; charset=utf-8", "style.css"))
	mux.HandleFunc("GET /page.js", serveFile("text/javascript; charset=utf-8", "page.js"))
	if s.Metrics != nil {
		mux.Handle("GET /metrics", guard.requireSomeRole(access.Metrics, s.Metrics.ServeHTTP))
	}
	views := s.pipelineViews()
	runs := &runControl{store: s.Store, queue: s.Queue, planner: s.Planner}
	catalogs := &catalogHandler{views: views, keeper: s.Keeper, problem: s.Problem, audit: s.Audit, log: s.Log}
	changes := &changeHandler{views: views, runs: runs, promoter: s.Promoter, audit: s.Audit, log: s.Log}
	promotions := &promotionHandler{promoter: s.Promoter, views: views, runs: runs, audit: s.Audit, log: s.Log}
	pages := &pageHandler{
		pages: s.pages, views: views, catalogs: catalogs, promotions: promotions, manifests: newManifestReader(s.targets()), clusters: s.Clusters, log: s.Log,
	}
	actions := &actionHandler{
		pages: s.pages, views: views, runs: runs, catalogs: catalogs, promoter: s.Promoter, api: api, audit: s.Audit, log: s.Log,
	}
	for _, route := range []struct {
		pattern string
		role    access.Role
		handle  http.HandlerFunc
	}{
		{"GET /api/v1/pipelines", access.Read, views.withCurrentState(views.listPipelines)},
		{"GET /api/v1/diff", access.Read, views.showDiff},
		{"GET /api/v1/snapshot", access.Read, views.withCurrentState(views.showSnapshot)},
		{"GET /api/v1/previews", access.Read, views.withCurrentState(views.listPreviews)},
		{"GET /api/v1/catalog", access.Read, views.withCurrentState(catalogs.showCatalog)},
		{"POST /api/v1/remove", access.Administer, catalogs.removePipelines},
		{"POST /api/v1/reconcile", access.Operate, changes.reconcilePipelines},
		{"POST /api/v1/suspend", access.Operate, changes.suspendPipelines},
		{"GET /api/v1/promotions", access.Read, views.withCurrentState(promotions.listPromotions)},
		{"POST /api/v1/promote", access.Operate, promotions.promotePipelines},
		{"POST /api/v1/hold", access.Operate, promotions.holdPipelines},
		{"POST /api/v1/rollback", access.Operate, promotions.rollBackPipelines},
		{"GET /events", access.Read, s.live.serveEventStream},
		{"GET /{$}", access.Read, pages.listPage},
		{"GET /mesh", access.Read, pages.meshPage},
		{"GET /workloads", access.Read, pages.workloadsPage},
		{"GET /workload", access.Read, pages.workloadPage},
		{"GET /pipeline", access.Read, pages.pipelinePage},
		{"GET /file", access.Read, pages.filePage},
		{"GET /drift", access.Read, pages.driftPage},
		{"GET /pull-requests", access.Read, pages.pullsPage},
		{"GET /runs", access.Read, pages.runPage},
		{"GET /", access.Read, s.pages.missingPage},
		{"POST /actions", access.Operate, actions.performPageAction},
	} {
		mux.Handle(route.pattern, guard.requireSomeRole(route.role, route.handle))
	}
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
