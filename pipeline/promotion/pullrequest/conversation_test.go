// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// talk is a host that keeps comments and statuses in memory and answers in the shape of one kind.
type talk struct {
	t    *testing.T
	kind talkKind
	mu   sync.Mutex
	// comments are texts by their numbers, from 1; "" for one that is gone. authors are who wrote them.
	comments, authors []string
	versions          []int
	statuses          []map[string]any
	writes            int
	// fail answers the next call in place of the host.
	fail func(w http.ResponseWriter) bool
}

// talkKind is how a kind of hosts is asked and answers.
type talkKind struct {
	name, repository, base string
	// pull is the path of the pull request, and what it answers for one of the repository and for one of a fork.
	pull      string
	recording string
	fork      func(pull map[string]any)
	// list and make are the paths of all comments, one that of a comment, status that of a status.
	list, make, one, status string
	update                  string
	show                    func(id int, author, text string, version int) map[string]any
	listed                  func(all []any) any
	states                  [3]string // pending, success, failure
}

var talkKinds = []talkKind{
	{
		name: "GitHub", repository: "https://github.com/org/app.git", base: "/repos/org/app", pull: "/pulls/2", recording: "github",
		fork: func(p map[string]any) { p["head"].(map[string]any)["repo"].(map[string]any)["id"] = 5 },
		list: "/issues/2/comments", make: "/issues/2/comments", one: "/issues/comments/", status: "/statuses/" + headSHA, update: http.MethodPatch,
		show: issueComment, listed: plainList, states: [3]string{"pending", "success", "failure"},
	},
	{
		name: "Gitea", repository: "https://gitea.example/org/app.git", base: "/repos/org/app", pull: "/pulls/2", recording: "github",
		fork: func(p map[string]any) { p["head"].(map[string]any)["repo_id"] = 5 },
		list: "/issues/2/comments", make: "/issues/2/comments", one: "/issues/comments/", status: "/statuses/" + headSHA, update: http.MethodPatch,
		show: issueComment, listed: plainList, states: [3]string{"pending", "success", "failure"},
	},
	{
		name: "GitLab", repository: "https://gitlab.com/org/app.git", base: "/projects/org%2Fapp", pull: "/merge_requests/2", recording: "gitlab",
		fork: func(p map[string]any) { p["source_project_id"] = 5 },
		list: "/merge_requests/2/notes", make: "/merge_requests/2/notes", one: "/merge_requests/2/notes/", status: "/statuses/" + headSHA, update: http.MethodPut,
		show: func(id int, author, text string, _ int) map[string]any {
			return object("id", id, "body", text, "system", false, "author", object("username", author))
		},
		listed: plainList, states: [3]string{"pending", "success", "failed"},
	},
	{
		name: "BitbucketCloud", repository: "https://bitbucket.org/org/app.git", base: "/repositories/org/app", pull: "/pullrequests/2", recording: "bitbucketcloud",
		fork: func(p map[string]any) {
			p["source"].(map[string]any)["repository"] = object("uuid", "{other}", "full_name", "bob/app")
		},
		list: "/pullrequests/2/comments", make: "/pullrequests/2/comments", one: "/pullrequests/2/comments/", update: http.MethodPut,
		status: "/commit/" + headSHA + "/statuses/build",
		show: func(id int, author, text string, _ int) map[string]any {
			return object("id", id, "deleted", false, "content", object("raw", text), "user", object("uuid", author))
		},
		listed: func(all []any) any { return object("values", all, "pagelen", 100) }, states: [3]string{"INPROGRESS", "SUCCESSFUL", "FAILED"},
	},
	{
		name: "BitbucketServer", repository: "https://bitbucket.example/scm/org/app.git", base: "/projects/org/repos/app", pull: "/pull-requests/2", recording: "bitbucketserver",
		fork: func(p map[string]any) {
			p["fromRef"].(map[string]any)["repository"].(map[string]any)["id"] = 5
		},
		list: "/pull-requests/2/activities", make: "/pull-requests/2/comments", one: "/pull-requests/2/comments/", update: http.MethodPut,
		status: "/commits/" + headSHA + "/builds",
		show: func(id int, author, text string, version int) map[string]any {
			return object("id", id, "version", version, "text", text, "author", object("name", author))
		},
		listed: func(all []any) any {
			values := []any{object("id", 900, "action", "OPENED")}
			for i := len(all) - 1; i >= 0; i-- {
				values = append(values, object("id", i, "action", "COMMENTED", "comment", all[i]))
			}
			return object("values", values, "isLastPage", true)
		},
		states: [3]string{"INPROGRESS", "SUCCESSFUL", "FAILED"},
	},
	{
		name: "AzureDevOps", repository: "https://dev.azure.com/org/team/_git/app", base: "/team/_apis/git/repositories/app", pull: "/pullrequests/2", recording: "azure",
		fork: func(p map[string]any) { p["forkSource"] = object("name", "refs/heads/x") },
		list: "/pullrequests/2/threads", make: "/pullrequests/2/threads", one: "/pullrequests/2/threads/", update: http.MethodPatch,
		status: "/pullrequests/2/statuses",
		show: func(id int, author, text string, _ int) map[string]any {
			return object("id", id, "isDeleted", false, "status", "closed",
				"comments", []any{object("id", 1, "content", text, "commentType", "text", "author", object("id", author))})
		},
		listed: func(all []any) any { return object("value", all, "count", len(all)) }, states: [3]string{"pending", "succeeded", "failed"},
	},
}

func issueComment(id int, author, text string, _ int) map[string]any {
	return object("id", id, "body", text, "user", object("login", author))
}

func plainList(all []any) any { return all }

func (h *talk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil && h.fail(w) {
		return
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), h.kind.base)
	in := map[string]any{}
	if data, _ := io.ReadAll(r.Body); len(data) > 0 {
		if err := json.Unmarshal(data, &in); err != nil {
			h.t.Error(err)
		}
	}
	answer := func(v any) {
		if m, ok := v.(map[string]any); ok {
			m["a_field_of_next_year"] = []any{object("deep", nil)}
		}
		if err := json.NewEncoder(w).Encode(v); err != nil {
			h.t.Error(err)
		}
	}
	switch {
	case r.Method == http.MethodGet && path == h.kind.list:
		all := []any{}
		for i, text := range h.comments {
			if text != "" {
				all = append(all, h.kind.show(i+1, h.authors[i], text, h.versions[i]))
			}
		}
		if r.URL.Query().Get("page") > "1" {
			all = []any{}
		}
		answer(h.kind.listed(all))
	case r.Method == http.MethodPost && path == h.kind.make:
		h.add("prerig", textOf(in))
		answer(h.kind.show(len(h.comments), "prerig", textOf(in), 0))
	case r.Method == http.MethodPost && path == h.kind.status:
		h.statuses = append(h.statuses, in)
		answer(object("id", 1))
	case strings.HasPrefix(path, h.kind.one):
		h.serveOne(w, r.Method, strings.TrimSuffix(strings.TrimPrefix(path, h.kind.one), "/comments/1"), in, answer)
	default:
		h.t.Errorf("asked %s %s", r.Method, r.URL)
		http.Error(w, "{}", http.StatusTeapot)
	}
}

func (h *talk) serveOne(w http.ResponseWriter, method, id string, in map[string]any, answer func(any)) {
	var n int
	if _, err := fmt.Sscan(id, &n); err != nil || n < 1 || n > len(h.comments) || h.comments[n-1] == "" {
		http.Error(w, `{"message": "not there"}`, http.StatusNotFound)
		return
	}
	if method == h.kind.update {
		if version, ok := in["version"].(float64); ok && int(version) != h.versions[n-1] {
			http.Error(w, `{"errors": [{"message": "it is out of date"}]}`, http.StatusConflict)
			return
		}
		h.comments[n-1] = textOf(in)
		h.versions[n-1]++
		h.writes++
	}
	shown := h.kind.show(n, h.authors[n-1], h.comments[n-1], h.versions[n-1])
	if list, ok := shown["comments"].([]any); ok {
		shown = list[0].(map[string]any) // of a thread
	}
	answer(shown)
}

// textOf is the text of a comment that is written.
func textOf(in map[string]any) string {
	for _, key := range []string{"body", "text"} {
		if text, ok := in[key].(string); ok {
			return text
		}
	}
	if content, ok := in["content"].(map[string]any); ok {
		return content["raw"].(string)
	}
	if list, ok := in["comments"].([]any); ok {
		in = list[0].(map[string]any)
	}
	text, _ := in["content"].(string)
	return text
}

func (h *talk) add(author, text string) {
	h.comments, h.authors, h.versions = append(h.comments, text), append(h.authors, author), append(h.versions, 0)
	h.writes++
}

func newTalk(t *testing.T, kind talkKind) (*talk, func(token string) pullrequest.Conversation) {
	t.Helper()
	h := &talk{t: t, kind: kind}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, func(token string) pullrequest.Conversation {
		c, err := pullrequest.OpenConversation(pullrequest.Options{
			Provider: kind.name, Repository: kind.repository, API: server.URL, Credentials: pullrequest.Credentials{Token: token},
		})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
}

// TestKeep has a comment kept in place at each kind of host, while people copy, change and remove it, and what was known is lost.
func TestKeep(t *testing.T) {
	for _, kind := range talkKinds {
		t.Run(kind.name, func(t *testing.T) {
			h, open := newTalk(t, kind)
			c, ctx := open("s3cret"), context.Background()
			h.add("ann", "[prerig-preview]: # (0123456789abcdef 0123456789abcdef0123456789abcdef)")
			keep := func(name, text string, known pullrequest.Written) pullrequest.Written {
				t.Helper()
				w, err := c.Keep(ctx, 2, pullrequest.KeptComment{Name: name, Text: text, Known: known})
				if err != nil {
					t.Fatal(err)
				}
				return w
			}
			says := func(want ...string) {
				t.Helper()
				var got []string
				for _, text := range h.comments[1:] {
					text, _, _ = strings.Cut(text, "\n\n[prerig-preview]")
					got = append(got, text)
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("the comments are %q, want %q", got, want)
				}
			}
			none, err := c.Keep(ctx, 2, pullrequest.KeptComment{Name: "a", Text: "x", NoNew: true})
			if err != nil || none.ID != "" {
				t.Errorf("got %+v, %v", none, err)
			}
			one := keep("a", "one", pullrequest.Written{})
			says("one")
			h.add("ann", h.comments[1]) // a copy
			other := keep("b", "beside", pullrequest.Written{})
			before := h.writes
			if again := keep("a", "one", one); again != one || h.writes != before {
				t.Errorf("%+v was written again as %+v", one, again)
			}
			lost := keep("a", "two", pullrequest.Written{})
			if says("two", "one", "beside"); lost.ID != one.ID {
				t.Errorf("it was %+v and is %+v", one, lost)
			}
			c = open("another credential")
			two := keep("a", "three", lost)
			says("three", "one", "beside")
			h.comments[1] = "of a person"
			three := keep("a", "four", two)
			if says("of a person", "one", "beside", "four"); three.ID == two.ID {
				t.Errorf("it is %+v", three)
			}
			h.comments[4] = "" // removed
			keep("a", "five", three)
			says("of a person", "one", "beside", "", "five")
			c = open("s3cret")
			for range 2 {
				if err := c.Finish(ctx, 2, pullrequest.KeptComment{Name: "b", Text: "over", Known: other}); err != nil {
					t.Fatal(err)
				}
			}
			says("of a person", "one", "over\n\nbeside", "", "five")
		})
	}
}

func TestSetStatus(t *testing.T) {
	for _, kind := range talkKinds {
		h, open := newTalk(t, kind)
		in := &pullrequest.Incoming{Number: 2, HeadCommit: headSHA, URL: "https://example.com/pull/2"}
		for i, state := range []pullrequest.CommitState{pullrequest.CommitPending, pullrequest.CommitSuccess, pullrequest.CommitFailure} {
			s := pullrequest.CommitStatus{State: state, Context: "prerig/preview/team/main", Description: strings.Repeat("ä", 200)}
			if err := open("s3cret").SetStatus(context.Background(), in, s); err != nil {
				t.Fatal(err)
			}
			got := h.statuses[i]
			if text, _ := got["description"].(string); got["state"] != kind.states[i] || len([]rune(text)) != 140 {
				t.Errorf("%s: %s is %v", kind.name, state, got)
			}
			if !strings.Contains(fmt.Sprint(got), "preview/team") {
				t.Errorf("%s: the status has no name: %v", kind.name, got)
			}
		}
	}
}

// TestConversationRefused has hosts refuse every call: what may pass is told apart from what does not.
func TestConversationRefused(t *testing.T) {
	for _, kind := range talkKinds {
		h, open := newTalk(t, kind)
		c, ctx := open("s3cret"), context.Background()
		for status, want := range map[int]bool{404: false, 409: false, 422: false, 429: true, 401: false, 403: false, 500: true, 503: true} {
			h.fail = func(w http.ResponseWriter) bool {
				if status == http.StatusTooManyRequests {
					w.Header().Set("Retry-After", "7")
				}
				http.Error(w, `{"message": "s3cret is refused"}`, status)
				return true
			}
			_, incoming := c.Incoming(ctx, 2)
			_, keep := c.Keep(ctx, 2, pullrequest.KeptComment{Name: "a", Text: "x"})
			for what, err := range map[string]error{
				"Incoming": incoming, "Keep": keep, "Finish": c.Finish(ctx, 2, pullrequest.KeptComment{Name: "a", Text: "x"}),
				"SetStatus": c.SetStatus(ctx, &pullrequest.Incoming{Number: 2, HeadCommit: headSHA}, pullrequest.CommitStatus{}),
			} {
				wait, again := pullrequest.Retry(err)
				if err == nil || again != want || strings.Contains(err.Error(), "s3cret") || status == 429 && wait != 7*time.Second {
					t.Errorf("%s: %s answered with %d: %v, again %v after %s", kind.name, what, status, err, again, wait)
				}
			}
		}
	}
}

// TestIncoming reads recorded pull requests from the repository itself and from forks.
func TestIncoming(t *testing.T) {
	for _, kind := range talkKinds {
		for _, fork := range []bool{false, true} {
			h, open := newTalk(t, kind)
			h.fail = func(w http.ResponseWriter) bool {
				answer := recorded(t, kind.recording, nil)
				if kind.name == "Gitea" {
					for _, side := range []string{"head", "base"} {
						b := answer[side].(map[string]any)
						b["label"], b["repo_id"] = b["ref"], 3
					}
				}
				if fork {
					kind.fork(answer)
				}
				answer["hash"] = headSHA // for Bitbucket Cloud's commit
				_ = json.NewEncoder(w).Encode(answer)
				return true
			}
			in, err := open("s3cret").Incoming(context.Background(), 2)
			if err != nil {
				t.Errorf("%s: %v", kind.name, err)
				continue
			}
			if in.Number != 2 || in.State != pullrequest.StateOpen || in.Base != "main" || in.Head != head || in.HeadCommit != headSHA || in.Fork != fork {
				t.Errorf("%s, fork %v: %+v", kind.name, fork, in)
			}
			if want := "https://bitbucket.org/bob/app.git"; fork && kind.name == "BitbucketCloud" && in.ForkURL != want {
				t.Errorf("the fork is read at %q", in.ForkURL)
			}
		}
	}
}

// TestIncomingWithoutBranch: Gitea says of what was pushed to refs/for/ (AGit), which whoever may read can do, that it is of the repository.
func TestIncomingWithoutBranch(t *testing.T) {
	for _, kind := range talkKinds[1:2] { // Gitea
		for name, change := range map[string]func(side map[string]any, answer map[string]any){
			"with its flow":  func(_, answer map[string]any) { answer["flow"] = 1 },
			"without a name": func(side, _ map[string]any) { side["label"] = "" },
		} {
			h, open := newTalk(t, kind)
			h.fail = func(w http.ResponseWriter) bool {
				answer := recorded(t, kind.recording, nil)
				for _, side := range []string{"base", "head"} {
					b := answer[side].(map[string]any)
					b["label"], b["repo_id"] = b["ref"], 3
				}
				change(answer["head"].(map[string]any), answer)
				_ = json.NewEncoder(w).Encode(answer)
				return true
			}
			if in, err := open("s3cret").Incoming(context.Background(), 2); err != nil || !in.Fork {
				t.Errorf("%s: %+v, %v", name, in, err)
			}
		}
	}
}
