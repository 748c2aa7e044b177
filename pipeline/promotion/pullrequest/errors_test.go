// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// What hosts answer when they refuse, and what is made of it.
func TestRefusals(t *testing.T) {
	soon := fmt.Sprint(time.Now().Add(10 * time.Minute).Unix())
	for _, c := range []struct {
		name     string
		status   int
		header   map[string]string
		answer   string
		says     string
		again    bool
		from, to time.Duration
	}{
		{"wrong token", 401, nil, `{"message":"Bad credentials","documentation_url":"https://docs"}`, "401 Unauthorized: Bad credentials; the credential is wrong or has expired", false, 0, 0},
		{"no permission", 403, nil, `{"message":"Resource not accessible by personal access token","x-y":1}`, "may lack a permission", false, 0, 0},
		{"permission with a rest of calls", 403, map[string]string{"X-RateLimit-Remaining": "4999", "X-RateLimit-Reset": soon}, `{"message":"Forbidden"}`, "403 Forbidden: Forbidden", false, 0, 0},
		{"GitHub's limit", 403, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": soon}, `{"message":"API rate limit exceeded for installation ID 1."}`,
			"asked again in", true, 9 * time.Minute, 11 * time.Minute},
		{"GitHub's secondary limit", 403, map[string]string{"Retry-After": "90"}, `{"message":"You have exceeded a secondary rate limit."}`, "asked again in 1m30s", true, 90 * time.Second, 90 * time.Second},
		{"GitHub's secondary limit without a time", 403, map[string]string{"X-RateLimit-Remaining": "12"}, `{"message":"You have exceeded a secondary rate limit. Please wait."}`,
			"asked again in 1m0s", true, time.Minute, time.Minute},
		{"a limit with a time", 429, map[string]string{"Retry-After": "7"}, ``, "429 Too Many Requests; it wants to be asked again in 7s", true, 7 * time.Second, 7 * time.Second},
		{"a limit with a date", 429, map[string]string{"Retry-After": time.Now().Add(3 * time.Minute).UTC().Format(http.TimeFormat)}, ``, "429", true, time.Minute, 3 * time.Minute},
		{"GitLab's limit", 429, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": soon}, `Retry later`, "429", true, 9 * time.Minute, 11 * time.Minute},
		{"a limit for ever", 429, map[string]string{"Retry-After": "1e300"}, ``, "429", true, 2 * time.Hour, 2 * time.Hour},
		{"a limit that is over", 429, map[string]string{"Retry-After": "-5"}, ``, "429", true, 0, 0},
		{"not there", 404, nil, `{"message":"404 Project Not Found"}`, "404 Not Found: 404 Project Not Found; hosts also say so", false, 0, 0},
		{"GitHub's validation", 422, nil, `{"message":"Validation Failed","errors":[{"resource":"PullRequest","field":"head","code":"invalid"},{"message":"No commits between a and b"}]}`,
			"422 Unprocessable Entity: Validation Failed; head invalid; No commits between a and b", false, 0, 0},
		{"GitLab's validation", 400, nil, `{"message":{"base":["a","b"],"title":["can't be blank"]}}`, "base a; base b; title can't be blank", false, 0, 0},
		{"GitLab's scope", 403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges","scope":"api"}`, "higher privileges; insufficient_scope", false, 0, 0},
		{"Bitbucket Cloud", 400, nil, `{"type":"error","error":{"message":"Bad request","detail":"There are no changes to be pulled","fields":{"source":["x"]}}}`, "Bad request; There are no changes to be pulled", false, 0, 0},
		{"Bitbucket Data Center", 409, nil, `{"errors":[{"context":null,"message":"is up to date","exceptionName":"com.atlassian.E"}]}`, "409 Conflict: is up to date; com.atlassian.E", false, 0, 0},
		{"Azure DevOps", 400, nil, `{"$id":"1","innerException":null,"message":"TF401398: no branch","typeKey":"X","errorCode":0}`, "TF401398: no branch", false, 0, 0},
		{"Azure's page to sign in at", 203, nil, `<html>`, "401 Unauthorized: the host answers with a page to sign in at", false, 0, 0},
		{"a proxy", 502, nil, `<html>s3cret</html>`, "502 Bad Gateway", true, 0, 0},
		{"maintenance", 503, map[string]string{"Retry-After": "120"}, `{}`, "503", true, 2 * time.Minute, 2 * time.Minute},
		{"not built in", 501, nil, `{}`, "501", false, 0, 0},
		{"the token said again", 400, nil, `{"message":"bad token s3cret-token\u0000\u202e here"}`, "bad token *** here", false, 0, 0},
		{"a list of nothing", 400, nil, `[[[[[[["deep"]]]]]],null,1,true]`, "400 Bad Request", false, 0, 0},
		{"an empty answer", 200, nil, ``, "ends in its middle", true, 0, 0},
		{"a truncated answer", 200, nil, `[{"number": 1, "html_u`, "ends in its middle", true, 0, 0},
		{"a page", 200, nil, "\n<!DOCTYPE html>", "is a web page", false, 0, 0},
		{"another type", 200, nil, `{"number": 1}`, "none that is known", false, 0, 0},
		{"nonsense", 200, nil, `[}]`, "none that is known", false, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for key, value := range c.header {
					w.Header().Set(key, value)
				}
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()
			h := open(t, pullrequest.Options{Repository: "https://github.com/org/app", API: server.URL, Credentials: pullrequest.Credentials{Token: "s3cret-token"}})
			_, err := h.Find(context.Background(), "a", "b")
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") {
				t.Fatalf("got %v", err)
			}
			if want := "finding pull requests from a to b of org/app at " + strings.TrimPrefix(server.URL, "http://") + ": "; !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%q does not begin with %q", err, want)
			}
			wait, again := pullrequest.Retry(fmt.Errorf("publishing: %w", err))
			if again != c.again || wait < c.from || wait > c.to {
				t.Errorf("again %t in %s: %v", again, wait, err)
			}
			if got := pullrequest.IsNotFound(err); got != (c.status == 404) {
				t.Errorf("not found: %t", got)
			}
		})
	}
}

// What breaks on the way passes; what is refused on our side does not.
func TestNoAnswer(t *testing.T) {
	ctx := context.Background()
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte(`[{"number":`))
	}))
	defer broken.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	defer secure.Close()
	rules, err := egress.NewRules(nil, []string{"private"})
	if err != nil {
		t.Fatal(err)
	}
	ended, end := context.WithCancel(ctx)
	end()
	for _, c := range []struct {
		name, api, says string
		ctx             context.Context
		dialer          *egress.Dialer
		again           bool
	}{
		{"a connection that breaks", broken.URL, "unexpected EOF", ctx, nil, true},
		{"a server that is gone", gone.URL, "refused", ctx, nil, true},
		{"an authority that is not known", secure.URL, "certificate", ctx, nil, false},
		{"an address that is refused", gone.URL, "egress.allow", ctx, egress.NewDialer(rules), false},
		{"a caller that has gone", broken.URL, "canceled", ended, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := open(t, pullrequest.Options{Repository: "https://github.com/org/app", API: c.api, Dialer: c.dialer})
			_, err := h.Find(c.ctx, "a", "b")
			if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), "per_page") {
				t.Fatalf("got %v", err)
			}
			if _, again := pullrequest.Retry(err); again != c.again {
				t.Errorf("again is %t: %v", again, err)
			}
		})
	}
}

// A repository that was renamed is read on; nothing is written to another address than was asked, and no other server gets the token.
func TestRedirections(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another server is asked %s with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer other.Close()
	is := recorded(t, "github", nil)
	const list = "?base=b&direction=desc&head=org%3Aa&per_page=100&sort=created&state=all"
	s := newScript(t, "Bearer s3cret",
		exchange{ask: "GET /repos/org/app/pulls/2", status: 301, header: map[string]string{"Location": "HOST/repositories/1/pulls/2"}},
		exchange{ask: "GET /repositories/1/pulls/2", answer: is},
		exchange{ask: "PATCH /repos/org/app/pulls/2", body: `{"title":"new","body":"what a person must know"}`, status: 307, header: map[string]string{"Location": "HOST/repositories/1/pulls/2"}},
		exchange{ask: "PATCH /repositories/1/pulls/2", body: `{"title":"new","body":"what a person must know"}`, answer: is},
		exchange{ask: "POST /repos/org/app/pulls", body: `{"title":"new","body":"","head":"a","base":"b"}`, status: 301, header: map[string]string{"Location": "HOST/repositories/1/pulls"}},
		exchange{ask: "GET /repos/org/app/pulls" + list, status: 302, header: map[string]string{"Location": other.URL}},
	)
	h := open(t, pullrequest.Options{Repository: "https://github.com/org/app", API: s.url})
	ctx := context.Background()
	if _, err := h.Update(ctx, 2, pullrequest.Content{Title: "new", Body: body}); err != nil {
		t.Error(err)
	}
	_, err := h.Create(ctx, "a", "b", pullrequest.Content{Title: "new"})
	_, second := h.Find(ctx, "a", "b")
	for _, err := range []error{err, second} {
		if _, again := pullrequest.Retry(err); err == nil || again || !strings.Contains(err.Error(), "was the repository renamed or moved") {
			t.Errorf("got %v", err)
		}
	}
}

func TestCertificateAuthority(t *testing.T) {
	for _, provider := range giturl.Kinds() {
		url := map[string]string{giturl.AzureDevOps: "https://dev.azure.com/o/p/_git/r"}[provider]
		if url == "" {
			url = "https://git.example.com/o/r"
		}
		o := pullrequest.Options{Provider: provider, Repository: url, Credentials: pullrequest.Credentials{Token: "t", CA: []byte("none")}}
		if _, err := pullrequest.Open(o); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
			t.Errorf("%s: got %v", provider, err)
		}
	}
}

// TestWhatOnlyReadsIsAskedAgain of a host that refuses some of its calls, and what writes is not.
func TestWhatOnlyReadsIsAskedAgain(t *testing.T) {
	const lists = "GET /repos/org/app/pulls?base=main&direction=desc&head=org%3Aprerig%2Fshop&per_page=100&sort=created&state=all"
	s := newScript(t, "Bearer s3cret",
		exchange{ask: lists, status: http.StatusBadGateway, answer: "<html>"},
		exchange{ask: lists, status: http.StatusTooManyRequests, header: map[string]string{"Retry-After": "1"}, answer: "{}"},
		exchange{ask: lists, answer: []any{recorded(t, "github", nil)}},
		exchange{ask: "POST /repos/org/app/pulls", body: `{"base":"main","body":"` + body + `","head":"` + head + `","title":"` + title + `"}`, status: http.StatusBadGateway, answer: "{}"},
	)
	host := open(t, pullrequest.Options{Provider: "GitHub", Repository: "https://github.com/org/app", API: s.url})
	if r, err := host.Find(t.Context(), head, "main"); err != nil || r == nil || r.Number != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := host.Create(t.Context(), head, "main", content); err == nil {
		t.Error("a call that writes was made again")
	}
}
