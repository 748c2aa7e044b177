// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/server/access"
)

// hints follows a page's events and gives each line that says something; it is closed at the end of the answer.
func hints(t *testing.T, base, path, secret string) (lines <-chan string, code int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusOK {
		response.Body.Close()
		return nil, response.StatusCode
	}
	t.Cleanup(func() { response.Body.Close() })
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		for scanner := bufio.NewScanner(response.Body); scanner.Scan(); {
			if text := scanner.Text(); text != "" && text != ": still here" {
				out <- text
			}
		}
	}()
	for _, want := range []string{"retry: 5000", ": hello"} {
		if got := next(t, out); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	return out, response.StatusCode
}

// next returns the next line, "" at the end.
func next(t *testing.T, lines <-chan string) string {
	t.Helper()
	select {
	case line := <-lines:
		return line
	case <-time.After(3 * time.Minute):
		t.Fatal("nothing came")
		return ""
	}
}

// TestPagesAreToldOfChanges follows lists and pages of pipelines by people who may see different ones. A hint says no name.
func TestPagesAreToldOfChanges(t *testing.T) {
	n := newNeighbours(t)
	shop, _ := hints(t, n.server.URL, "/events", n.secrets["reader"])
	all, _ := hints(t, n.server.URL, "/events", n.secrets["auditor"])
	cart, _ := hints(t, n.server.URL, "/events?pipeline=shop/cart", n.secrets["reader"])
	change := func(name string) {
		t.Helper()
		if err := n.store.SetControl(t.Context(), name, func(c *status.Control) { c.Suspended = !c.Suspended }); err != nil {
			t.Fatal(err)
		}
		if err := n.store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(name string, lines <-chan string) {
		t.Helper()
		if got := next(t, lines) + next(t, lines); got != "event: changeddata: {}" {
			t.Errorf("%s is told %q", name, got)
		}
	}
	change("vault/coin")
	expect("who sees all", all)
	change("shop/web")
	expect("who sees shop", shop)
	expect("who sees all", all)
	change("shop/cart")
	expect("the page of shop/cart", cart)
	expect("who sees shop", shop)
	// Of the others' pipelines nothing came in between.
	for name, lines := range map[string]<-chan string{"shop": shop, "shop/cart": cart} {
		if len(lines) > 0 {
			t.Errorf("%s was told more: %q", name, <-lines)
		}
	}
	if _, code := hints(t, n.server.URL, "/events?pipeline=vault/coin", n.secrets["reader"]); code != http.StatusNotFound {
		t.Errorf("following a pipeline of others: %d", code)
	}
	if _, code := hints(t, n.server.URL, "/events", "wrong"); code != http.StatusUnauthorized {
		t.Errorf("following without a token: %d", code)
	}
}

// TestHintsAreBounded has much change while nobody reads: each page holds one mark, however much that is, and not more pages than a
// number are taken.
func TestHintsAreBounded(t *testing.T) {
	h := newLiveHub(nil)
	f, ok := h.addFollower("last", func(string) bool { return true })
	if !ok {
		t.Fatal("the first page is not taken")
	}
	for range 100_000 {
		h.markConcernedPages("team/web")
	}
	if len(f.wake) != 1 {
		t.Errorf("%d marks", len(f.wake))
	}
	<-f.wake
	h.clearPageMark(f)
	if h.markConcernedPages("team/web"); len(f.wake) != 1 {
		t.Error("what came after the hint is forgotten")
	}
	alone := h.minimumHintInterval()
	for i := 1; i < maxFollowers; i++ {
		if _, ok := h.addFollower(fmt.Sprint(i/maxOfOne), func(string) bool { return false }); !ok {
			t.Fatalf("page %d is not taken", i)
		}
	}
	if _, ok := h.addFollower("last", func(string) bool { return true }); ok {
		t.Error("there is no bound")
	}
	if h.minimumHintInterval() < 10*alone {
		t.Errorf("of many pages each is asked for again after %s, a single one after %s", h.minimumHintInterval(), alone)
	}
	h.removeFollower(f)
	if _, ok := h.addFollower("last", func(string) bool { return true }); !ok {
		t.Error("a page that is left takes the place of another")
	}
}

// TestOnePersonTakesNotAllPlaces opens as many pages as one may have, and one more.
func TestOnePersonTakesNotAllPlaces(t *testing.T) {
	h := newLiveHub(nil)
	for i := range maxOfOne + 1 {
		if _, ok := h.addFollower("ann", func(string) bool { return true }); ok != (i < maxOfOne) {
			t.Errorf("page %d: %v", i, ok)
		}
	}
	if _, ok := h.addFollower("bob", func(string) bool { return true }); !ok {
		t.Error("another one is not taken")
	}
}

// TestTooManyPagesAreTold has one page more than are taken.
func TestTooManyPagesAreTold(t *testing.T) {
	s := fixture(t)
	for i := range maxFollowers {
		s.live.addFollower(fmt.Sprint(i/maxOfOne), func(string) bool { return false })
	}
	response, body := get(t, s.Admin(Access{Loopback: true}), "/events")
	if response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" || !strings.Contains(body, "load the page again") {
		t.Errorf("%s: %s", response.Status, body)
	}
}

// stuckWriter is a browser that reads nothing: writing to it ends with the time that there is for it.
type stuckWriter struct {
	*httptest.ResponseRecorder
	deadlines []time.Time
}

func (w *stuckWriter) Write([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }
func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

// TestSlowReadersAreDropped writes to a browser that reads nothing.
func TestSlowReadersAreDropped(t *testing.T) {
	s := fixture(t)
	w := &stuckWriter{ResponseRecorder: httptest.NewRecorder()}
	r := httptest.NewRequest(http.MethodGet, "/events", nil)
	r.Host = "localhost"
	s.Admin(Access{Loopback: true}).ServeHTTP(w, r) // it returns
	if len(w.deadlines) != 1 || w.deadlines[0].IsZero() {
		t.Errorf("there is no bound: %v", w.deadlines)
	}
	if len(s.live.followers) != 0 {
		t.Error("it is still followed")
	}
}

// TestFollowingEnds: with the role of who follows, and with the server.
func TestFollowingEnds(t *testing.T) {
	s := fixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	inner := s.Admin(Access{})
	served := make(chan error, 1)
	go func() { served <- Serve(ctx, l, nil, inner, slog.New(slog.DiscardHandler)) }()
	base := "http://" + l.Addr().String()
	lines, _ := hints(t, base, "/events", token)
	stop()
	if got := next(t, lines); got != "" {
		t.Errorf("at the end of the server: %q", got)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	// Who may not look any more is told nothing more.
	r := httptest.NewRequest(http.MethodGet, "/events", nil)
	then := request{Principal: access.Principal{Kind: access.ByToken, Name: "ada", Grants: access.Everything()}}
	for name, now := range map[string]access.Principal{
		"the same": then.Principal, "with no token": {}, "with less": {Kind: access.ByToken, Name: "ada", Grants: []access.Grant{{Role: access.Read, Namespaces: []string{"shop"}}}},
	} {
		ctx := context.WithValue(context.WithValue(r.Context(), requestKey{}, then), whoKey{}, func() request { return request{Principal: now} })
		if got := mayStillFollow(r.WithContext(ctx)); got != (name == "the same") {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestHintsOutliveTheTimesOfAnAddress follows for longer than an address gives other answers, which a test makes short.
func TestHintsOutliveTheTimesOfAnAddress(t *testing.T) {
	s := fixture(t)
	ts := httptest.NewUnstartedServer(s.Admin(Access{}))
	ts.Config.ReadTimeout, ts.Config.WriteTimeout = time.Second, time.Second
	ts.Start()
	t.Cleanup(ts.Close)
	lines, _ := hints(t, ts.URL, "/events", token)
	time.Sleep(1500 * time.Millisecond) // past both times
	if err := s.Store.SetControl(t.Context(), "team/web", func(c *status.Control) { c.Suspended = true }); err != nil {
		t.Fatal(err)
	}
	if got := next(t, lines); got != "event: changed" {
		t.Errorf("after the times of the address: %q", got)
	}
}
