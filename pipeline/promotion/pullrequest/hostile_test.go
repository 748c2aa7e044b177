// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// hostileHost opens a repository at a server that answers each call alike.
func hostileHost(t *testing.T, provider string, answer http.HandlerFunc) (pullrequest.Host, pullrequest.Conversation) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	options := pullrequest.Options{
		Provider: provider, Repository: server.URL + "/shop/app.git", API: server.URL + "/api",
		Credentials: pullrequest.Credentials{Token: "secret-token"},
	}
	switch provider {
	case "BitbucketServer":
		options.Repository = server.URL + "/scm/shop/app.git"
	case "AzureDevOps":
		options.Repository = server.URL + "/shop/team/_git/app"
	}
	h, err := pullrequest.Open(options)
	if err != nil {
		t.Fatal(provider, err)
	}
	c, err := pullrequest.OpenConversation(options)
	if err != nil {
		t.Fatal(provider, err)
	}
	return h, c
}

// asksOfHosts are calls that read, and calls that write.
var asksOfHosts = map[string]func(ctx context.Context, h pullrequest.Host, c pullrequest.Conversation) error{
	"find": func(ctx context.Context, h pullrequest.Host, _ pullrequest.Conversation) error {
		_, err := h.Find(ctx, "prerig/shop", "main")
		return err
	},
	"create": func(ctx context.Context, h pullrequest.Host, _ pullrequest.Conversation) error {
		_, err := h.Create(ctx, "prerig/shop", "main", pullrequest.Content{Title: "t", Body: "b"})
		return err
	},
	"incoming": func(ctx context.Context, _ pullrequest.Host, c pullrequest.Conversation) error {
		_, err := c.Incoming(ctx, 1)
		return err
	},
	"comment": func(ctx context.Context, _ pullrequest.Host, c pullrequest.Conversation) error {
		_, err := c.Keep(ctx, 1, pullrequest.KeptComment{Name: "preview", Text: "text"})
		return err
	},
	"checks": func(ctx context.Context, h pullrequest.Host, _ pullrequest.Conversation) error {
		_, err := h.(pullrequest.Merger).Checks(ctx, strings.Repeat("a", 40))
		return err
	},
}

// TestAnswersOfHostsAreQuotedInPart has hosts put long texts, escape sequences and line breaks where errors about
// answers quote them: in messages, in numbers and times that are none, and in the names of keys.
func TestAnswersOfHostsAreQuotedInPart(t *testing.T) {
	long := strings.Repeat("x", 1<<16)
	for _, status := range []int{http.StatusOK, http.StatusUnprocessableEntity, http.StatusForbidden} {
		for name, body := range map[string]string{
			"a number":          `{"number":%[1]s,"id":%[1]s,"values":%[1]s}`,
			"numbers in a list": `[{"number":1%[1]s.5,"id":1%[1]s.5}]`,
			"a time":            `[{"number":1,"id":1,"created_at":"%[2]s","closed_at":"%[2]s","updated_at":"%[2]s","created_on":"%[2]s"}]`,
			"a message":         `{"message":"%[2]s","errors":[{"message":"%[2]s","field":"%[2]s"}]}`,
			"many messages":     `{"errors":[` + strings.Repeat(`{"message":"%[2]s"},`, 3) + `"x"]}`,
			"a key":             `{"%[2]s":{"%[2]s":1}}`,
			"no JSON":           `%[2]s`,
		} {
			body = fmt.Sprintf(body, strings.Repeat("1", 1<<16), `\u001b[2J\u202e\nlevel=ERROR secret-token`+long)
			for _, provider := range []string{"GitHub", "GitLab", "Gitea", "BitbucketServer"} {
				h, c := hostileHost(t, provider, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(status)
					_, _ = w.Write([]byte(body))
				})
				for ask, do := range asksOfHosts {
					err := do(t.Context(), h, c)
					if err == nil {
						continue
					}
					text := err.Error()
					hides := strings.ContainsFunc(text, foreign.IsHidden) || strings.Contains(text, "secret-token")
					if len(text) > 1000 || hides {
						t.Errorf("%d, %s, %s, %s: %d bytes, %.300q", status, name, provider, ask, len(text), text)
					}
				}
			}
		}
	}
}

// TestEmptyElementsOfHostsTakeNoMemory: three bytes of a list become hundreds where it is decoded.
func TestEmptyElementsOfHostsTakeNoMemory(t *testing.T) {
	list := "[" + strings.Repeat("{},", 1<<18) + "{}]"
	for provider, body := range map[string]string{
		"GitHub": list, "GitLab": list, "Gitea": list, "BitbucketServer": `{"values":` + list + `}`,
	} {
		h, _ := hostileHost(t, provider, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := h.Find(t.Context(), "prerig/shop", "main")
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "more than 50000 elements") {
			t.Errorf("%s: got %v", provider, err)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 20<<20 {
			t.Errorf("%s: it took %d MiB", provider, took>>20)
		}
	}
}

// TestPagesOfAListAreBoundedTogether: each page is smaller than an answer may be, and their sum is not.
func TestPagesOfAListAreBoundedTogether(t *testing.T) {
	text := strings.Repeat("x", 12<<20)
	for provider, page := range map[string]string{
		"GitHub": `[{"id":%d,"body":"` + text + `"}]`,
		"BitbucketServer": `{"nextPageStart":%[1]d,"values":[{"action":"COMMENTED","comment":{"id":%[1]d,"text":"` +
			text + `"}}]}`,
	} {
		var calls atomic.Int64
		_, c := hostileHost(t, provider, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", `<x>; rel="next"`)
			fmt.Fprintf(w, page, calls.Add(1))
		})
		err := asksOfHosts["comment"](t.Context(), nil, c)
		if err == nil || !strings.Contains(err.Error(), "pages of the list have more than 64 MiB") || calls.Load() > 8 {
			t.Errorf("%s: %d calls, got %v", provider, calls.Load(), err)
		}
	}
}

// TestAListThatIsNotReadToItsEndMergesNothing: whoever may write statuses, or review, could hide a red one behind
// thousands of others.
func TestAListThatIsNotReadToItsEndMergesNothing(t *testing.T) {
	statuses := strings.TrimSuffix(strings.Repeat(`{"context":"ci","name":"ci","state":"success","status":"success"},`, 100), ",")
	reviews := strings.TrimSuffix(strings.Repeat(`{"state":"APPROVED","official":true,"user":{"login":"ann"}},`, 100), ",")
	builds := strings.TrimSuffix(strings.Repeat(`{"key":"ci","state":"SUCCESSFUL"},`, 100), ",")
	pull := `{"number":1,"iid":1,"head":{"ref":"h","label":"h"},"source_branch":"h"}`
	for provider, list := range map[string]string{
		"GitHub": `{"statuses":[` + statuses + `]}`, "GitLab": `[` + statuses + `]`,
		"Gitea":          `{"total_count":1000000,"statuses":[` + statuses + `]}`,
		"BitbucketCloud": `{"next":"x","values":[` + builds + `]}`, "BitbucketServer": `{"nextPageStart":%d,"values":[` + builds + `]}`,
		"AzureDevOps": `{"value":[` + strings.TrimSuffix(strings.Repeat(`{"state":"succeeded"},`, 1000), ",") + `]}`,
	} {
		var calls atomic.Int64
		h, _ := hostileHost(t, provider, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasSuffix(r.URL.Path, "/reviews"), strings.HasSuffix(r.URL.Path, "/reviewers"):
				w.Header().Set("X-Total-Count", "1000000")
				fmt.Fprintf(w, "[%s]", reviews)
			case strings.HasSuffix(r.URL.Path, "/approvals"):
				fmt.Fprint(w, "{}")
			case strings.HasSuffix(r.URL.Path, "/pulls/1"), strings.HasSuffix(r.URL.Path, "/merge_requests/1"):
				fmt.Fprint(w, pull)
			case strings.HasSuffix(r.URL.Path, "/check-runs"):
				fmt.Fprint(w, `{}`)
			case strings.Contains(list, "%d"):
				fmt.Fprintf(w, list, calls.Add(1))
			default:
				fmt.Fprint(w, list)
			}
		})
		if err := asksOfHosts["checks"](t.Context(), h, nil); err == nil || !strings.Contains(err.Error(), "more") {
			t.Errorf("%s, checks: got %v", provider, err)
		}
		if provider == "GitHub" || provider == "GitLab" || provider == "Gitea" {
			if _, err := h.(pullrequest.Merger).Opinions(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "more than 50 pages") {
				t.Errorf("%s, opinions: got %v", provider, err)
			}
		}
	}
}

// TestRedirectedWritesStayInTheAPI: calls that write carry the credential and a body, which a redirect with 307 or 308
// repeats.
func TestRedirectedWritesStayInTheAPI(t *testing.T) {
	var got atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { got.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		for _, provider := range []string{"GitHub", "GitLab", "Gitea", "BitbucketServer"} {
			for _, to := range []string{
				elsewhere.URL + "/api/", "/evil/", "/api/../evil/", "/api/%2e%2e/evil/",
				"//" + strings.TrimPrefix(elsewhere.URL, "http://") + "/api/",
			} {
				h, c := hostileHost(t, provider, func(w http.ResponseWriter, r *http.Request) {
					switch {
					case strings.Contains(r.RequestURI, "evil"):
						got.Add(1)
					case r.Method == http.MethodGet:
						_, _ = w.Write([]byte("[]"))
					default:
						w.Header().Set("Location", to)
						w.WriteHeader(status)
					}
				})
				for _, ask := range []string{"create", "comment"} {
					if err := asksOfHosts[ask](t.Context(), h, c); err == nil || got.Load() > 0 {
						t.Errorf("%s, %d to %s, %s: %d calls arrived, error %v", provider, status, to, ask, got.Swap(0), err)
					}
				}
			}
		}
	}
}
