// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// mergingHost is one kind of host with what it answers to somebody who merges. COMMIT stands for the head.
type mergingHost struct {
	provider, repository, authorization string
	read                                exchange // of the pull request, open
	merged                              map[string]any
	checks                              []exchange
	wantChecks                          string
	opinions                            []exchange
	wantOpinions                        string
	before                              []exchange // what is asked right before the merge
	more                                []exchange // what is asked after each read of one that is open
	merge                               exchange
}

// tellsChanges reports whether a conflict says that the head was changed, and not that it cannot be merged.
func (m mergingHost) tellsChanges() bool {
	return strings.Contains(m.merge.body, `"sha"`) || strings.Contains(m.merge.body, "head_commit_id")
}

func (m mergingHost) reads() []exchange { return append([]exchange{m.read}, m.more...) }

func mergingHosts(t *testing.T) map[string]mergingHost {
	t.Helper()
	at := "2026-05-16T00:00:00Z"
	user := func(name string) map[string]any { return object("login", name) }
	giteaPull := func(changes map[string]any) map[string]any {
		out := recorded(t, "github", changes)
		out["head"].(map[string]any)["label"] = head
		return out
	}
	review := func(who, state, commit string, official bool) any {
		return object("user", user(who), "state", state, "commit_id", commit, "official", official)
	}
	// sam and tom may read the repository, and ada's approval is from before she could write no more.
	reviews := []any{
		review("ann", "APPROVED", headSHA, true), review("ann", "COMMENT", headSHA, false), review("bob", "APPROVED", "0000", true),
		review("eve", "APPROVED", headSHA, false), review("eve", "REQUEST_CHANGES", headSHA, true), review("zoe", "A_NEW_ONE", headSHA, true),
		review("sam", "APPROVED", headSHA, false), review("tom", "REQUEST_CHANGES", headSHA, false), review("ada", "APPROVED", headSHA, false),
	}
	permission := func(who, permission string) exchange {
		return exchange{ask: "GET /repos/org/app/collaborators/" + who + "/permission", answer: object("permission", permission, "role_name", "of next year", "user", user(who))}
	}
	return map[string]mergingHost{
		giturl.GitHub: {
			repository: "https://github.com/org/app.git", authorization: "Bearer s3cret",
			read:   exchange{ask: "GET /repos/org/app/pulls/2", answer: recorded(t, "github", nil)},
			merged: recorded(t, "github", map[string]any{"state": "closed", "merged_at": at, "closed_at": at, "merge_commit_sha": mergeSHA}),
			checks: []exchange{
				{ask: "GET /repos/org/app/commits/COMMIT/check-runs?per_page=100&page=1", answer: object("total_count", 4, "new", nil, "check_runs", []any{
					object("name", "build", "status", "completed", "conclusion", "success", "completed_at", at), object("name", "lint", "status", "completed", "conclusion", "timed_out", "completed_at", at),
					object("name", "slow", "status", "in_progress", "conclusion", nil, "started_at", at), object("name", "odd", "status", "completed", "conclusion", "of_next_year"),
				})},
				{ask: "GET /repos/org/app/commits/COMMIT/status?per_page=100&page=1", answer: object("state", "failure", "statuses", []any{
					object("context", "argocd/eu", "state", "success", "updated_at", at), object("context", "flux", "state", "error", "updated_at", at),
				})},
			},
			wantChecks: "argocd/eu Green, build Green, flux Red, lint Red, odd Pending, slow Pending",
			opinions: []exchange{
				{ask: "GET /repos/org/app/pulls/2/reviews?per_page=100&page=1", answer: reviews},
				permission("ada", "none"), permission("ann", "write"), permission("eve", "admin"), permission("sam", "read"), permission("tom", "read"),
			},
			wantOpinions: "[ann] [eve], not ada (may not write), sam (may not write)",
			merge:        exchange{ask: "PUT /repos/org/app/pulls/2/merge", body: `{"sha":"` + headSHA + `","merge_method":"squash"}`, answer: object("merged", true)},
		},
		giturl.Gitea: {
			provider: "Gitea", repository: "https://git.example.com/org/app.git", authorization: "token s3cret",
			read:   exchange{ask: "GET /repos/org/app/pulls/2", answer: giteaPull(nil)},
			merged: giteaPull(map[string]any{"state": "closed", "merged": true, "merged_at": at, "closed_at": at, "merge_commit_sha": mergeSHA}),
			checks: []exchange{{ask: "GET /repos/org/app/commits/COMMIT/status?page=1&limit=50", answer: object("total_count", 4, "statuses", []any{
				object("context", "a", "status", "success", "updated_at", at), object("context", "b", "status", "failure"), object("context", "c", "status", "warning"), object("context", "d", "status", "pending"),
			})}},
			wantChecks:   "a Green, b Red, c Pending, d Pending",
			opinions:     []exchange{{ask: "GET /repos/org/app/pulls/2/reviews?page=1&limit=50", header: map[string]string{"X-Total-Count": "9"}, answer: reviews}},
			wantOpinions: "[ann] [eve], not ada (no official reviewer), sam (no official reviewer)",
			merge:        exchange{ask: "POST /repos/org/app/pulls/2/merge", body: `{"Do":"squash","head_commit_id":"` + headSHA + `","delete_branch_after_merge":false}`, answer: ""},
		},
		giturl.GitLab: {
			provider: "GitLab", repository: "https://gitlab.example.com/org/app.git", authorization: "Bearer s3cret",
			read:   exchange{ask: "GET /projects/org%2Fapp/merge_requests/2", answer: recorded(t, "gitlab", nil)},
			merged: recorded(t, "gitlab", map[string]any{"state": "merged", "merged_at": at, "merge_commit_sha": mergeSHA}),
			checks: []exchange{{ask: "GET /projects/org%2Fapp/repository/commits/COMMIT/statuses?per_page=100&page=1", answer: []any{
				object("name", "build", "status", "success", "created_at", at, "finished_at", at), object("name", "flaky", "status", "failed", "allow_failure", true),
				object("name", "test", "status", "failed", "created_at", at), object("name", "test", "status", "running", "created_at", "2026-05-17T00:00:00Z"), object("name", "e2e", "status", "canceled"),
			}}},
			wantChecks: "build Green, e2e Red, flaky Green, test Pending",
			opinions: []exchange{{ask: "GET /projects/org%2Fapp/merge_requests/2/approvals", answer: object("approved", true, "approved_by", []any{
				object("user", object("username", "ann")), object("user", object("username", "bob")), object("user", object("username", "eve")),
			})}, {ask: "GET /projects/org%2Fapp/merge_requests/2/reviewers?per_page=100&page=1", answer: []any{
				object("user", object("username", "ann"), "state", "approved"), object("user", object("username", "eve"), "state", "requested_changes"),
				object("user", object("username", "sam"), "state", "of_next_year"), object("user", object("username", "zoe"), "state", "requested_changes"),
			}}}, wantOpinions: "[ann bob] [eve zoe]",
			merge: exchange{ask: "PUT /projects/org%2Fapp/merge_requests/2/merge", body: `{"sha":"` + headSHA + `","squash":true,"should_remove_source_branch":false}`, answer: object("state", "merged")},
		},
		giturl.BitbucketCloud: {
			repository: "https://bitbucket.org/org/app.git", authorization: "Bearer s3cret",
			read: exchange{ask: "GET /repositories/org/app/pullrequests/2", answer: recorded(t, "bitbucketcloud", nil)},
			more: []exchange{{ask: "GET /repositories/org/app/commit/" + headSHA[:12] + "?fields=hash", answer: object("hash", headSHA)}},
			merged: recorded(t, "bitbucketcloud", map[string]any{
				"state": "MERGED", "closed_on": at, "merge_commit": object("hash", mergeSHA),
			}),
			checks: []exchange{{ask: "GET /repositories/org/app/commit/COMMIT/statuses?pagelen=100&page=1", answer: object("size", 3, "values", []any{
				object("key", "a", "state", "SUCCESSFUL", "updated_on", at), object("key", "b", "state", "STOPPED"), object("key", "c", "state", "INPROGRESS"),
			})}},
			wantChecks: "a Green, b Red, c Pending",
			opinions: []exchange{{ask: "GET /repositories/org/app/pullrequests/2", answer: object("participants", []any{
				object("role", "REVIEWER", "approved", true, "state", "approved", "user", object("nickname", "ann")),
				object("role", "PARTICIPANT", "approved", false, "state", "changes_requested", "user", object("nickname", "bob")),
				object("role", "PARTICIPANT", "approved", true, "state", "approved", "user", object("nickname", "sam")),
			})}}, wantOpinions: "[ann] [bob], not sam (no reviewer of it)",
			merge: exchange{ask: "POST /repositories/org/app/pullrequests/2/merge", body: `{"merge_strategy":"squash","close_source_branch":false}`, answer: object("state", "MERGED")},
		},
		giturl.BitbucketServer: {
			provider: giturl.BitbucketServer, repository: "https://bb.example.com/scm/SHOP/app.git", authorization: "Bearer s3cret",
			read: exchange{ask: "GET /projects/SHOP/repos/app/pull-requests/2", answer: recorded(t, "bitbucketserver", nil)},
			merged: recorded(t, "bitbucketserver", map[string]any{
				"state": "MERGED", "closedDate": 1778858533500, "properties": object("mergeCommit", object("id", mergeSHA)),
			}),
			checks: []exchange{{ask: "GET /build-status/latest/commits/COMMIT?limit=100&start=0", answer: object("isLastPage", true, "values", []any{
				object("key", "a", "state", "SUCCESSFUL", "dateAdded", 1778858433500), object("key", "b", "state", "FAILED"), object("key", "c", "state", "UNKNOWN"),
			})}},
			wantChecks: "a Green, b Red, c Pending",
			opinions: []exchange{{ask: "GET /projects/SHOP/repos/app/pull-requests/2", answer: object("reviewers", []any{
				object("status", "APPROVED", "lastReviewedCommit", headSHA, "user", object("name", "ann")), object("status", "NEEDS_WORK", "user", object("name", "bob")),
				object("status", "APPROVED", "lastReviewedCommit", "0000", "user", object("name", "eve")),
			})}}, wantOpinions: "[ann] [bob]",
			before: []exchange{{ask: "GET /projects/SHOP/repos/app/pull-requests/2", answer: recorded(t, "bitbucketserver", nil)}},
			merge:  exchange{ask: "POST /projects/SHOP/repos/app/pull-requests/2/merge?version=3", body: `{"strategyId":"squash"}`, answer: object("state", "MERGED")},
		},
		giturl.AzureDevOps: {
			repository: "https://dev.azure.com/org/My%20Project/_git/app", authorization: "Basic OnMzY3JldA==",
			read: exchange{ask: "GET /My%20Project/_apis/git/repositories/app/pullrequests/2?api-version=7.0", answer: recorded(t, "azure", nil)},
			merged: recorded(t, "azure", map[string]any{
				"status": "completed", "closedDate": at, "lastMergeCommit": object("commitId", mergeSHA),
			}),
			checks: []exchange{{ask: "GET /My%20Project/_apis/git/repositories/app/commits/COMMIT/statuses?top=1000&latestOnly=true&api-version=7.0", answer: object("count", 4, "value", []any{
				object("state", "succeeded", "context", object("name", "a", "genre", "ci"), "creationDate", at), object("state", "error", "context", object("name", "b")),
				object("state", "notSet", "context", object("name", "c")), object("state", "notApplicable", "context", object("name", "d", "genre", nil)),
			})}},
			wantChecks: "b Red, c Pending, ci/a Green, d Green",
			opinions: []exchange{{ask: "GET /My%20Project/_apis/git/repositories/app/pullrequests/2?api-version=7.0", answer: object("reviewers", []any{
				object("uniqueName", "ann", "vote", 10), object("uniqueName", "bob", "vote", -5), object("uniqueName", "team", "vote", 10, "isContainer", true), object("uniqueName", "eve", "vote", 0),
			})}}, wantOpinions: "[ann] [bob]",
			merge: exchange{
				ask: "PATCH /My%20Project/_apis/git/repositories/app/pullrequests/2?api-version=7.0", answer: recorded(t, "azure", nil),
				body: `{"status":"completed","lastMergeSourceCommit":{"commitId":"` + headSHA + `"},"completionOptions":{"mergeStrategy":"squash","deleteSourceBranch":false}}`,
			},
		},
	}
}

// atHost opens a host that answers, after its own read of the pull request.
func atHost(t *testing.T, m mergingHost, exchanges ...exchange) pullrequest.Merger {
	t.Helper()
	for i := range exchanges {
		exchanges[i].ask = strings.ReplaceAll(exchanges[i].ask, "COMMIT", headSHA)
	}
	s := newScript(t, m.authorization, exchanges...)
	merger, ok := open(t, pullrequest.Options{Provider: m.provider, Repository: m.repository, API: s.url}).(pullrequest.Merger)
	if !ok {
		t.Fatal("it cannot merge")
	}
	return merger
}

func TestMergingAtHosts(t *testing.T) {
	ctx := context.Background()
	for name, m := range mergingHosts(t) {
		t.Run(name, func(t *testing.T) {
			checks, err := atHost(t, m, m.checks...).Checks(ctx, headSHA)
			var got []string
			for _, c := range checks {
				got = append(got, fmt.Sprintf("%s %s", c.Name, c.State))
			}
			if all := strings.Join(got, ", "); err != nil || all != m.wantChecks {
				t.Errorf("checks: got %s, %v, want %s", all, err, m.wantChecks)
			}
			opinions, err := atHost(t, m, slices.Concat(m.reads(), m.opinions)...).Opinions(ctx, 2)
			all := fmt.Sprint(opinions.Approved, opinions.Declined)
			if len(opinions.Ignored) > 0 {
				all += ", not " + strings.Join(opinions.Ignored, ", ")
			}
			if err != nil || all != m.wantOpinions {
				t.Errorf("opinions: got %s, %v, want %s", all, err, m.wantOpinions)
			}
			done := m.read
			done.answer = m.merged
			r, err := atHost(t, m, slices.Concat(m.reads(), m.before, []exchange{m.merge, done}, m.more)...).Merge(ctx, 2, headSHA, pullrequest.MergeSquash)
			if err != nil || r.State != pullrequest.StateMerged || r.MergeCommit != mergeSHA {
				t.Errorf("merging: %+v, %v", r, err)
			}
			if r, err := atHost(t, m, append([]exchange{done}, m.more...)...).Merge(ctx, 2, headSHA, pullrequest.MergeSquash); err != nil || r.State != pullrequest.StateMerged {
				t.Errorf("merging what is merged: %+v, %v", r, err)
			}
			if _, err := atHost(t, m, m.reads()...).Merge(ctx, 2, mergeSHA, pullrequest.MergeSquash); !errors.Is(err, pullrequest.ErrChanged) {
				t.Errorf("merging another commit: %v", err)
			}
			for status, again := range map[int]bool{403: false, 404: false, 405: false, 409: false, 422: false, 429: true, 500: true, 503: true} {
				refused := m.merge
				refused.status, refused.answer = status, object("message", "no such luck", "code", nil)
				if again {
					refused.header = map[string]string{"Retry-After": "7"}
				}
				_, err := atHost(t, m, slices.Concat(m.reads(), m.before, []exchange{refused})...).Merge(ctx, 2, headSHA, pullrequest.MergeSquash)
				_, retry := pullrequest.Retry(err)
				if err == nil || retry != again || errors.Is(err, pullrequest.ErrChanged) != (status == http.StatusConflict && m.tellsChanges()) || !strings.Contains(err.Error(), "no such luck") {
					t.Errorf("%d: %v, again %v", status, err, retry)
				}
				refused = m.checks[0]
				refused.status, refused.answer = status, object("message", "no such luck")
				if all, err := atHost(t, m, refused).Checks(ctx, headSHA); err == nil || len(all) > 0 {
					t.Errorf("checks with %d: %v, %v", status, all, err)
				}
			}
		})
	}
}

// TestWhoMayWriteAtGitHub has one person approve and one ask for changes, and the host answer oddly when it is asked what they may.
func TestWhoMayWriteAtGitHub(t *testing.T) {
	m := mergingHosts(t)[giturl.GitHub]
	reviews := exchange{ask: m.opinions[0].ask, answer: []any{
		object("user", object("login", "ann"), "state", "APPROVED", "commit_id", headSHA), object("user", object("login", "eve"), "state", "CHANGES_REQUESTED", "commit_id", headSHA),
	}}
	for status, want := range map[int]string{
		403: "[] [eve] [ann (the credential may not ask whether they may write)]", // who may have the right to stop it stops it
		404: "[] [] [ann (not known to the repository)]",
		401: "error",
		500: "error",
	} {
		exchanges := append(m.reads(), reviews)
		for _, who := range []string{"ann", "eve"} {
			if want != "error" || who == "ann" {
				exchanges = append(exchanges, exchange{ask: "GET /repos/org/app/collaborators/" + who + "/permission", status: status, answer: object("message", "no such luck")})
			}
		}
		opinions, err := atHost(t, m, exchanges...).Opinions(context.Background(), 2)
		got := fmt.Sprint(opinions.Approved, opinions.Declined, opinions.Ignored)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%d: got %s, %v", status, got, err)
		}
	}
	var many []any
	for i := range 51 {
		many = append(many, object("user", object("login", fmt.Sprint("p", i)), "state", "APPROVED", "commit_id", headSHA))
	}
	if _, err := atHost(t, m, append(m.reads(), exchange{ask: reviews.ask, answer: many})...).Opinions(context.Background(), 2); err == nil || !strings.Contains(err.Error(), "50") {
		t.Errorf("of many people: %v", err)
	}
}

// TestOlderGitLabsTellNoReviewers has one that does not know who asks for changes, and one that fails to tell.
func TestOlderGitLabsTellNoReviewers(t *testing.T) {
	m := mergingHosts(t)[giturl.GitLab]
	for status, want := range map[int]string{404: "[ann bob eve] [] <nil>", 403: "[] [] error"} {
		reviewers := exchange{ask: m.opinions[1].ask, status: status, answer: object("message", "no such luck")}
		opinions, err := atHost(t, m, slices.Concat(m.reads(), m.opinions[:1], []exchange{reviewers})...).Opinions(context.Background(), 2)
		got := fmt.Sprint(opinions.Approved, opinions.Declined, " ", err)
		if err != nil {
			got = "[] [] error"
		}
		if got != want {
			t.Errorf("%d: got %s, %v", status, got, err)
		}
	}
}
