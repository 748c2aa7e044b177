// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// exchange is one call that is expected, and its answer.
type exchange struct {
	// ask is METHOD PATH?QUERY, body the JSON that is sent with it, "" for none.
	ask, body string
	// status of the answer, 200 where it is 0.
	status int
	header map[string]string
	// answer is written as it is where it is a string, and as JSON otherwise.
	answer any
}

// script is a host that expects these calls in this order, with this Authorization.
type script struct {
	t             *testing.T
	url           string
	authorization string
	mu            sync.Mutex
	left          []exchange
	failed        exchange // the last, where it was one that is asked for again: it fails each time that the script has nothing else
}

func newScript(t *testing.T, authorization string, exchanges ...exchange) *script {
	t.Helper()
	s := &script{t: t, authorization: authorization, left: exchanges}
	server := httptest.NewServer(s)
	s.url = server.URL
	t.Cleanup(func() {
		server.Close()
		for _, e := range s.left {
			t.Errorf("was not asked: %s", e.ask)
		}
	})
	return s
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	ask := r.Method + " " + r.URL.RequestURI()
	if s.failed.ask == ask && (len(s.left) == 0 || s.left[0].ask != ask) {
		s.left = append([]exchange{s.failed}, s.left...)
	}
	if len(s.left) == 0 || s.left[0].ask != ask {
		want := "nothing"
		if len(s.left) > 0 {
			want = s.left[0].ask
		}
		s.t.Errorf("asked %s\nwant  %s", ask, want)
		http.Error(w, `{"message": "not in the script"}`, http.StatusTeapot)
		return
	}
	e := s.left[0]
	s.left, s.failed = s.left[1:], exchange{}
	if r.Method == http.MethodGet && (e.status >= http.StatusInternalServerError || e.status == http.StatusTooManyRequests) {
		s.failed = e
	}
	if got := r.Header.Get("Authorization"); got != s.authorization {
		s.t.Errorf("%s: Authorization is %q", ask, got)
	}
	if !sameJSON(s.t, sent, e.body) {
		s.t.Errorf("%s:\nsent %s\nwant %s", ask, sent, e.body)
	}
	for key, value := range e.header {
		w.Header().Set(key, strings.ReplaceAll(value, "HOST", "http://"+r.Host))
	}
	if e.status == 0 {
		e.status = http.StatusOK
	}
	w.WriteHeader(e.status)
	text, ok := e.answer.(string)
	if !ok {
		data, err := json.Marshal(e.answer)
		if err != nil {
			s.t.Error(err)
		}
		text = string(data)
	}
	_, _ = io.WriteString(w, text)
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	if want == "" || len(got) == 0 {
		return want == string(got)
	}
	var a, b any
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Error(err)
	}
	return json.Unmarshal(got, &a) == nil && reflect.DeepEqual(a, b)
}

// recorded returns a pull request as a host answers it, with its unknown fields, and with some values changed. A nil takes a key away.
func recorded(t *testing.T, file string, changes map[string]any) map[string]any {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(data, &out); err != nil {
		t.Fatal(err)
	}
	maps.Copy(out, changes)
	out["a_field_of_next_year"] = map[string]any{"state": []any{1, nil}}
	return out
}

func open(t *testing.T, o pullrequest.Options) pullrequest.Host {
	t.Helper()
	if o.Credentials.Token == "" && o.Credentials.Password == "" && o.Credentials.App == nil {
		o.Credentials.Token = "s3cret"
	}
	h, err := pullrequest.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

const (
	head     = "prerig/shop"
	headSHA  = "1f0c2a7e5b9d4c3a8e6f7b1029384756afbecd01"
	mergeSHA = "2b7d9c4e6a1f3058b6c7d8e9f0a1b2c3d4e5f607"
	title    = "shop: 2 objects"
	body     = "what a person must know"
)

var content = pullrequest.Content{Title: title, Body: body, Labels: []string{"prerig"}}

// checkOpen compares with what every recorded pull request says.
func checkOpen(t *testing.T, r *pullrequest.Request, url, author string) {
	t.Helper()
	if r == nil {
		t.Fatal("there is none")
	}
	if r.Number != 2 || r.State != pullrequest.StateOpen || r.Head != head || r.Base != "main" || r.HeadCommit != headSHA || r.MergeCommit != "" ||
		r.Title != title || r.Body != body || r.Draft || r.URL != url || r.Author != author ||
		r.CreatedAt.UTC().Format("2006-01-02 15:04:05") != "2026-05-15 15:20:33" || r.UpdatedAt.Before(r.CreatedAt) || !r.ClosedAt.IsZero() {
		t.Errorf("got %+v", r)
	}
}
