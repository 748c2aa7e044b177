// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// shelf is a Store.
type shelf struct {
	watched bool
	err     error
	seen    map[string]int
}

func (s *shelf) Watches([]Change) bool { return s.watched }

func (s *shelf) Put(_ context.Context, e Event) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	s.seen[e.ID]++
	return s.seen[e.ID] > 1, nil
}

func TestHandler(t *testing.T) {
	push := deliveries["github push"]
	ping := deliveries["github ping"]
	for name, tc := range map[string]struct {
		method, path, body string
		kind               string
		signed             bool
		store              *shelf
		status             int
		outcome            string
		stored             int
	}{
		"stored":           {"POST", "/hook/hub", push.body, "push", true, &shelf{watched: true}, 202, "stored", 1},
		"nobody watches":   {"POST", "/hook/hub", push.body, "push", true, &shelf{}, 200, "unwatched", 0},
		"nothing to do":    {"POST", "/hook/hub", ping.body, "ping", true, &shelf{watched: true}, 200, "ignored", 0},
		"not signed":       {"POST", "/hook/hub", push.body, "push", false, &shelf{watched: true}, 401, "refused", 0},
		"unknown receiver": {"POST", "/hook/other", push.body, "push", true, &shelf{watched: true}, 404, "unknown", 0},
		"not a POST":       {"GET", "/hook/hub", "", "push", true, &shelf{watched: true}, 405, "malformed", 0},
		"not JSON":         {"POST", "/hook/hub", "{", "push", true, &shelf{watched: true}, 400, "malformed", 0},
		"too large":        {"POST", "/hook/hub", strings.Repeat("x", MaxBody+1), "push", true, &shelf{watched: true}, 413, "large", 0},
		"cannot be stored": {"POST", "/hook/hub", push.body, "push", true, &shelf{watched: true, err: errors.New("disk full")}, 503, "failed", 0},
	} {
		t.Run(name, func(t *testing.T) {
			tc.store.seen = map[string]int{}
			var outcome string
			h, err := NewHandler([]Receiver{{Name: "hub", Provider: GitHub, Secret: []byte(key)}}, tc.store, WithObserver(func(_, o string) { outcome = o }))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(tc.method, tc.path, strings.NewReader(tc.body))
			r.Header.Set("X-GitHub-Event", tc.kind)
			r.Header.Set("X-GitHub-Delivery", "d1")
			if tc.signed {
				push.sign(r.Header, key, tc.body)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.status || outcome != tc.outcome || len(tc.store.seen) != tc.stored {
				t.Errorf("got %d %s, %d stored: %s", w.Code, outcome, len(tc.store.seen), w.Body)
			}
			if strings.Contains(w.Body.String(), key) || strings.Contains(w.Body.String(), "disk") {
				t.Errorf("the answer tells too much: %s", w.Body)
			}
		})
	}
}

func TestReplayedDeliveryHasNoEffect(t *testing.T) {
	store := &shelf{watched: true, seen: map[string]int{}}
	h, err := NewHandler([]Receiver{{Name: "hub", Provider: GitHub, Secret: []byte(key)}}, store)
	if err != nil {
		t.Fatal(err)
	}
	push := deliveries["github push"]
	for _, want := range []int{http.StatusAccepted, http.StatusOK} {
		r := httptest.NewRequest(http.MethodPost, "/hook/hub", strings.NewReader(push.body))
		r.Header = headers(push.headers)
		push.sign(r.Header, key, push.body)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("got %d, want %d", w.Code, want)
		}
	}
}

// TestBranchThatMovesBackAndForth has senders, or something before the daemon, leave out the header that names a delivery.
func TestBranchThatMovesBackAndForth(t *testing.T) {
	store := &shelf{watched: true, seen: map[string]int{}}
	h, err := NewHandler([]Receiver{{Name: "hub", Provider: GitHub, Insecure: true}, {Name: "tea", Provider: Gitea, Insecure: true}}, store)
	if err != nil {
		t.Fatal(err)
	}
	there, back, other := pushOf("refs/heads/main", a40, b40), pushOf("refs/heads/main", b40, a40), pushOf("refs/heads/other", b40, a40)
	for name, header := range map[string]string{"hub": "X-GitHub-Event", "tea": "X-Gitea-Event"} {
		for i, step := range []struct {
			body string
			want int
		}{
			{there, http.StatusAccepted}, {there, http.StatusOK}, {other, http.StatusAccepted}, {there, http.StatusOK}, {back, http.StatusAccepted},
			{there, http.StatusAccepted}, {there, http.StatusOK}, {back, http.StatusAccepted}, {there, http.StatusAccepted}, {other, http.StatusOK},
		} {
			r := httptest.NewRequest(http.MethodPost, "/hook/"+name, strings.NewReader(step.body))
			r.Header.Set(header, "push")
			w := httptest.NewRecorder()
			if h.ServeHTTP(w, r); w.Code != step.want {
				t.Errorf("%s, delivery %d: got %d, want %d", name, i, w.Code, step.want)
			}
		}
	}
}

func TestReceiversNeedDistinctNames(t *testing.T) {
	r := Receiver{Name: "hub", Provider: GitHub, Insecure: true}
	if _, err := NewHandler([]Receiver{r, r}, &shelf{}); err == nil {
		t.Error("two receivers of one name were accepted")
	}
}
