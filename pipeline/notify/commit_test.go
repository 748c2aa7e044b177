// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// strictHost takes statuses by the documentation of a host's API, and refuses everything else.
type strictHost struct {
	provider, source string
	// pattern is that of http.ServeMux, query what must stand behind the path.
	pattern, query string
	// token is what is in the secret, user and password or bearer what must arrive.
	token, user, password, bearer string
	// check returns what is wrong with a body.
	check func(body []byte) string
	// answer is the status of success.
	answer int
}

// strictJSON reads a body that has no other fields.
func strictJSON(body []byte, to any) string {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(to); err != nil {
		return err.Error()
	}
	return ""
}

// bitbucketBody checks what Bitbucket Cloud and Data Center have in common: key, state and url are required.
func bitbucketBody(longestKey int, states ...string) func(body []byte) string {
	return func(body []byte) string {
		var b struct{ Key, State, Name, URL, Description string }
		if problem := strictJSON(body, &b); problem != "" {
			return problem
		}
		page, err := url.Parse(b.URL)
		switch {
		case b.Key == "" || len(b.Key) > longestKey:
			return "key"
		case !slices.Contains(states, b.State):
			return "state"
		case err != nil || page.Host == "" || len(b.URL) > 450:
			return "url"
		case len([]rune(b.Name)) > 255 || len([]rune(b.Description)) > 255:
			return "name or description"
		}
		return ""
	}
}

func azureStatusBody(body []byte) string {
	var b struct {
		State, Description, TargetURL string
		Context                       struct{ Name, Genre string }
	}
	if problem := strictJSON(body, &b); problem != "" {
		return problem
	}
	if !slices.Contains([]string{"notSet", "pending", "succeeded", "failed", "error", "notApplicable"}, b.State) || b.Context.Name == "" {
		return "state or context"
	}
	return ""
}

// Statuses are taken by hosts that check each request by the documented API, good and bad, with a page and without.
func TestStatusesAreTakenByStrictHosts(t *testing.T) {
	commit := strings.Repeat("a", 40)
	cloud := bitbucketBody(40, "SUCCESSFUL", "FAILED", "INPROGRESS", "STOPPED")
	server := bitbucketBody(255, "SUCCESSFUL", "FAILED", "INPROGRESS", "CANCELLED", "UNKNOWN")
	for name, h := range map[string]strictHost{
		"Bitbucket Cloud, a token": {provider: "BitbucketCloud", source: "https://bitbucket.org/shop/apps.git",
			pattern: "POST /repositories/shop/apps/commit/" + commit + "/statuses/build", token: "tok", bearer: "tok", check: cloud, answer: 201},
		"Bitbucket Cloud, by ssh and with a user's token": {provider: "BitbucketCloud", source: "git@bitbucket.org:shop/apps.git",
			pattern: "POST /repositories/shop/apps/commit/" + commit + "/statuses/build", token: "ann@shop.example:tok", user: "ann@shop.example", password: "tok", check: cloud, answer: 200},
		"Bitbucket Data Center": {provider: "BitbucketServer", source: "https://bb.example/git/scm/SHOP/apps.git",
			pattern: "POST /projects/SHOP/repos/apps/commits/" + commit + "/builds", token: "tok", bearer: "tok", check: server, answer: 204},
		"Azure DevOps": {provider: "AzureDevOps", source: "https://dev.azure.com/shop/My%20Project/_git/apps",
			pattern: "POST /My%20Project/_apis/git/repositories/apps/commits/" + commit + "/statuses", query: "api-version=7.0", token: "pat", password: "pat", check: azureStatusBody, answer: 201},
	} {
		t.Run(name, func(t *testing.T) {
			taken := 0
			mux := http.NewServeMux()
			mux.HandleFunc(h.pattern, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				user, password, _ := r.BasicAuth()
				problem := h.check(body)
				switch {
				case h.bearer != "" && r.Header.Get("Authorization") != "Bearer "+h.bearer, user != h.user, password != h.password:
					w.WriteHeader(http.StatusUnauthorized)
				case r.URL.RawQuery != h.query || r.Header.Get("Content-Type") != "application/json" || problem != "":
					t.Errorf("%s %s: %s", r.URL, problem, body)
					w.WriteHeader(http.StatusBadRequest)
				default:
					taken++
					w.WriteHeader(h.answer)
				}
			})
			host := httptest.NewServer(mux)
			defer host.Close()
			failed, long, bare, waits := published, published, published, published
			waits.Run.Outcome, waits.Waits = "Unchanged", true
			failed.Run.Outcome, failed.Run.Message = "Failed", strings.Repeat("é", 500)
			long.Name = strings.Repeat("shop-", 40)
			bare.Page = ""
			for _, r := range []Run{published, failed, long, bare, waits} {
				r.SourceURL, r.Commit = h.source, commit
				to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: h.provider, URL: host.URL, SecretRef: *ref("host")}}}
				if err := notifier(secrets{"team/host": h.token + "\n"}).Send(t.Context(), to, r); err != nil {
					t.Error(err)
				}
			}
			if taken != 5 {
				t.Errorf("%d statuses were taken", taken)
			}
		})
	}
}

// A source that a host of the provider cannot have says so, and nothing is sent.
func TestStatusOfAnotherHostsSource(t *testing.T) {
	r := published
	r.SourceURL = "https://git.example/org/sub/apps.git"
	for _, provider := range []string{"AzureDevOps", "BitbucketServer"} {
		to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: provider, URL: "http://127.0.0.1:1", SecretRef: *ref("host")}}}
		if err := notifier(nil).Send(t.Context(), to, r); err == nil || !strings.Contains(err.Error(), "not one of a repository of "+provider) {
			t.Errorf("%s: got %v", provider, err)
		}
	}
}

// A Gitea that is read over plain http gets its statuses there, too.
func TestStatusOfAPlainGitea(t *testing.T) {
	s, got := sink(t, 201)
	r := published
	r.SourceURL = s.URL + "/org/apps.git"
	to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: "Gitea", SecretRef: *ref("host")}}}
	if err := notifier(secrets{"team/host": "tok"}).Send(t.Context(), to, r); err != nil || len(*got) != 1 || (*got)[0].Path != "/api/v1/repos/org/apps/statuses/"+r.Commit {
		t.Errorf("got %v, %v", *got, err)
	}
}

// TestAStatusOfGitLabThatIsPendingAlready is refused there as this test has it, and is as it should be.
func TestAStatusOfGitLabThatIsPendingAlready(t *testing.T) {
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"message":"Cannot transition status via :enqueue from :pending (Reason(s): Status cannot transition via \"enqueue\")"}`)
	}))
	defer host.Close()
	to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: "GitLab", URL: host.URL, SecretRef: *ref("host")}}}
	for _, waits := range []bool{true, false} {
		r := published
		r.Waits = waits
		if err := notifier(secrets{"team/host": "tok"}).Send(t.Context(), to, r); (err == nil) != waits {
			t.Errorf("of a result that waits, %v: %v", waits, err)
		}
	}
}

// TestEveryHostHasStatuses: a kind of host that pipelines may name has a body of its statuses.
func TestEveryHostHasStatuses(t *testing.T) {
	t.Parallel()
	for _, kind := range giturl.Kinds() {
		if hosts[kind].body == nil || hosts[kind].header == nil {
			t.Errorf("%s has no row in hosts", kind)
		}
	}
}
