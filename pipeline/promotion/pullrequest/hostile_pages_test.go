// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// pullAt is a pull request as GitHub, GitLab and Gitea answer it, with a number and a page.
func pullAt(number int, page string) string {
	return fmt.Sprintf(`{"number":%[1]d,"iid":%[1]d,"state":"open","html_url":%[2]q,"web_url":%[2]q,"title":"t","body":"b","sha":%[3]q,`+
		`"source_branch":"h","target_branch":"main","source_project_id":1,"target_project_id":1,`+
		`"head":{"ref":"h","label":"h","sha":%[3]q,"repo_id":1,"repo":{"id":1}},"base":{"ref":"main","label":"main","repo_id":1,"repo":{"id":1}}}`,
		number, page, strings.Repeat("a", 40))
}

// TestAnswersAboutOtherPullRequestsChangeNone: a host answers with another pull request than the one that is asked for.
func TestAnswersAboutOtherPullRequestsChangeNone(t *testing.T) {
	for _, provider := range []string{"GitHub", "GitLab", "Gitea"} {
		var writes atomic.Int64
		h, c := hostileHost(t, provider, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				writes.Add(1)
			}
			fmt.Fprint(w, pullAt(8, "https://git.example.com/8"))
		})
		_, updating := h.Update(t.Context(), 7, pullrequest.Content{Title: "new", Body: "new"})
		closing := h.Close(t.Context(), 7, "closed")
		_, merging := h.(pullrequest.Merger).Merge(t.Context(), 7, strings.Repeat("a", 40), "Merge")
		_, reading := c.Incoming(t.Context(), 7)
		for what, err := range map[string]error{"update": updating, "close": closing, "merge": merging, "read": reading} {
			if err == nil || !strings.Contains(err.Error(), "no pull request") {
				t.Errorf("%s, %s: got %v", provider, what, err)
			}
		}
		if writes.Load() > 0 {
			t.Errorf("%s: %d calls have written", provider, writes.Load())
		}
	}
}

// TestPagesThatHostsNameAreWebPages: the URL of a pull request's page is stored, shown as a link and sent to others.
func TestPagesThatHostsNameAreWebPages(t *testing.T) {
	for page, want := range map[string]bool{
		"https://git.example.com/shop/app/pulls/7": true,
		"http://git:3000/7":                        true,
		"javascript:alert(1)":                      false,
		"data:text/html,x":                         false,
		"//evil.example.net/7":                     false,
		"/7":                                       false,
		"https://shop@evil.example.net/7":          false,
		"https://git.example.com/\u202e7":          false,
		"https://git.example.com/" + strings.Repeat("x", 1<<21): false,
		"file:///etc/passwd": false,
		"https:///7":         false,
	} {
		for _, provider := range []string{"GitHub", "GitLab", "Gitea"} {
			h, c := hostileHost(t, provider, func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "/7") {
					fmt.Fprint(w, pullAt(7, page))
				} else {
					fmt.Fprintf(w, "[%s]", pullAt(7, page))
				}
			})
			in, err := c.Incoming(t.Context(), 7)
			if err != nil || (in.URL == page) != want || !want && in.URL != "" {
				t.Errorf("%s, %.60q: got %v", provider, page, err)
			}
			found, err := h.Find(t.Context(), "h", "main")
			if err != nil || found == nil || (found.URL == page) != want || !want && found.URL != "" {
				t.Errorf("%s, %.60q: found, %v", provider, page, err)
			}
		}
	}
}

// TestPagesOfPullRequestsAtGiteaAreBoundedTogether: each of hundreds of pages has almost as many bytes as an answer may have.
func TestPagesOfPullRequestsAtGiteaAreBoundedTogether(t *testing.T) {
	page := `[` + strings.Replace(pullAt(1, "https://git.example.com/1"), `"title":"t"`, `"title":"`+strings.Repeat("x", 12<<20)+`"`, 1) + `]`
	page = strings.ReplaceAll(page, `"label":"h"`, `"label":"other"`)
	var calls atomic.Int64
	h, _ := hostileHost(t, "Gitea", func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("X-Total-Count", "1000000")
		fmt.Fprint(w, page)
	})
	_, err := h.Find(t.Context(), "h", "main")
	if err == nil || !strings.Contains(err.Error(), "pages of the list have more than 64 MiB") || calls.Load() > 8 {
		t.Errorf("%d calls, got %v", calls.Load(), err)
	}
}

// TestNextPagesAreThoseOfTheAPI: a host names the next page of a list at another server, at another of its applications, or at once
// the same page again.
func TestNextPagesAreThoseOfTheAPI(t *testing.T) {
	var strayed atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	for _, next := range []string{elsewhere.URL + "/x", "/evil", "//" + strings.TrimPrefix(elsewhere.URL, "http://") + "/x", "http://169.254.169.254/latest"} {
		for provider, page := range map[string]string{
			"GitHub": `[{"id":1,"body":"b"}]`, "GitLab": `[{"id":1,"body":"b"}]`, "Gitea": `[{"id":1,"body":"b"}]`,
			"BitbucketServer": `{"nextPageStart":0,"next":%q,"values":[{"action":"COMMENTED","comment":{"id":1,"text":"b"}}]}`,
		} {
			var calls atomic.Int64
			_, c := hostileHost(t, provider, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				if strings.Contains(r.URL.Path, "evil") {
					strayed.Add(1)
				}
				w.Header().Set("Link", fmt.Sprintf(`<%s>; rel="next"`, next))
				if strings.Contains(page, "%q") {
					fmt.Fprintf(w, page, next)
				} else {
					fmt.Fprint(w, page)
				}
			})
			_ = asksOfHosts["comment"](t.Context(), nil, c)
			if strayed.Load() > 0 || calls.Load() > 60 {
				t.Errorf("%s, %s: %d calls, %d of them elsewhere", provider, next, calls.Load(), strayed.Swap(0))
			}
		}
	}
}
