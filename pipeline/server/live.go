// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/server/access"
)

// Bounds on the cost of open pages. A page is notified that something changed, not what: it then reloads its
// content.
const (
	// maxFollowers is how many pages may follow at once, which is well below the connections of an address.
	maxFollowers = 300
	// maxOfOne is the maximum per person, or per address if no authentication is required.
	maxOfOne = 30
	// hintGap is the minimum time between two hints to one page, to which hintShare is added for each page that
	// follows: as rendering the list of ten thousand pipelines lasts half as long, all pages together take half a
	// processor at most.
	hintGap   = time.Second
	hintShare = 200 * time.Millisecond
	// beat is the interval of keep-alives, so that a closed connection is noticed and proxies keep it open.
	beat = 20 * time.Second
	// hintTimeout is how long a page may take to read a hint.
	hintTimeout = 10 * time.Second
)

// liveHub notifies pages that their content has changed. It is safe for concurrent use.
type liveHub struct {
	views *pipelineViews

	mu        sync.Mutex
	followers map[*follower]struct{}
}

// follower is one open page. However much changes, it holds one mark.
type follower struct {
	whose string
	// concerns reports whether a pipeline is on the page; "" is what is of no single one.
	concerns func(pipeline string) bool
	marked   bool
	wake     chan struct{} // holds one element while marked
}

func newLiveHub(views *pipelineViews) *liveHub {
	return &liveHub{views: views, followers: map[*follower]struct{}{}}
}

// addFollower adds a page, or returns false if the total limit or that of this person is reached.
func (h *liveHub) addFollower(whose string, concerns func(pipeline string) bool) (*follower, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	count := 0
	for f := range h.followers {
		if f.whose == whose {
			count++
		}
	}
	if len(h.followers) >= maxFollowers || count >= maxOfOne {
		return nil, false
	}
	f := &follower{whose: whose, concerns: concerns, wake: make(chan struct{}, 1)}
	h.followers[f] = struct{}{}
	return f, true
}

func (h *liveHub) removeFollower(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.followers, f)
}

// markConcernedPages marks the pages that a pipeline is on.
func (h *liveHub) markConcernedPages(pipeline string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.followers {
		if !f.marked && f.concerns(pipeline) {
			f.marked = true
			f.wake <- struct{}{}
		}
	}
}

// clearPageMark removes the mark of a page, whose wake was received.
func (h *liveHub) clearPageMark(f *follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.marked = false
}

// minimumHintInterval returns how long a page is left alone after a hint.
func (h *liveHub) minimumHintInterval() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	return hintGap + time.Duration(len(h.followers))*hintShare
}

// viewerKey names who looks, for the bound of one.
func viewerKey(r *http.Request) string {
	who := requestPrincipal(r)
	if who.Kind != access.Anonymous {
		return string(who.Kind) + " " + who.Name
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	return host
}

// serveEventStream notifies a page by server-sent events when something changes that it shows: the list, or one
// pipeline.
func (h *liveHub) serveEventStream(w http.ResponseWriter, r *http.Request) {
	who, only := requestPrincipal(r), r.URL.Query().Get("pipeline")
	if _, ok := h.views.visibleEntry(who, only); only != "" && !ok {
		http.Error(w, "there is no such pipeline", http.StatusNotFound)
		return
	}
	f, ok := h.addFollower(viewerKey(r), func(pipeline string) bool {
		switch {
		case pipeline == "":
			return true
		case only != "":
			return pipeline == only
		}
		e, ok := h.views.catalog.Get(pipeline)
		return ok && mayRead(who, e) || !ok && mayReadName(who, pipeline)
	})
	if !ok {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many pages follow already; load the page again to see what is new", http.StatusServiceUnavailable)
		return
	}
	defer h.removeFollower(f)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Accel-Buffering", "no") // proxies are not to keep hints back
	out := &hintWriter{ResponseController: http.NewResponseController(w), w: w}
	_ = out.SetReadDeadline(time.Time{}) // the request has been read; the listener allows it half a minute
	h.sendHints(r, f, out)
}

// sendHints sends hints until the page disconnects, is too slow, or loses read access.
func (h *liveHub) sendHints(r *http.Request, f *follower, out *hintWriter) {
	if out.sendHint("retry: 5000\n: hello\n\n") != nil {
		return
	}
	alive := time.NewTicker(beat)
	defer alive.Stop()
	closing := closingSignal(r.Context())
	for {
		text := ": still here\n\n"
		select {
		case <-r.Context().Done():
			return
		case <-closing:
			return
		case <-alive.C:
		case <-f.wake:
			h.clearPageMark(f) // what changes from here on is another hint
			text = "event: changed\ndata: {}\n\n"
		}
		if !mayStillFollow(r) || out.sendHint(text) != nil {
			return
		}
		if text[0] == ':' {
			continue
		}
		select { // what comes in the meantime is one hint
		case <-r.Context().Done():
			return
		case <-closing:
			return
		case <-time.After(h.minimumHintInterval()):
		}
	}
}

// mayStillFollow reports whether who began to follow may still look: their session or token may have ended, or have
// another role now.
func mayStillFollow(r *http.Request) bool {
	then := requestOf(r)
	now, ok := r.Context().Value(whoKey{}).(func() request)
	if !ok {
		return false
	}
	who := now()
	return who.Kind == then.Kind && who.Name == then.Name && slices.EqualFunc(who.Grants, then.Grants, func(a, b access.Grant) bool {
		return a.Role == b.Role && slices.Equal(a.Namespaces, b.Namespaces)
	})
}

// whoKey is the context key of the function that re-authenticates the requester.
type whoKey struct{}

// hintWriter writes events, each within a time.
type hintWriter struct {
	*http.ResponseController
	w http.ResponseWriter
}

func (h *hintWriter) sendHint(text string) error {
	if err := h.SetWriteDeadline(time.Now().Add(hintTimeout)); err != nil {
		return fmt.Errorf("sending a hint: %w", err)
	}
	if _, err := h.w.Write([]byte(text)); err != nil {
		return err
	}
	if err := h.Flush(); err != nil {
		return err
	}
	return h.SetWriteDeadline(time.Time{}) // by HTTP/2 it would end the stream, written to or not
}

type closingKey struct{}

// withClosingSignal has requests know when the server wants to end.
func withClosingSignal(ctx context.Context, closing <-chan struct{}) context.Context {
	return context.WithValue(ctx, closingKey{}, closing)
}

func closingSignal(ctx context.Context) <-chan struct{} {
	closing, _ := ctx.Value(closingKey{}).(<-chan struct{})
	return closing
}
