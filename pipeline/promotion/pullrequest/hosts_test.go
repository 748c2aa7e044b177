// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// object returns an object of JSON, from keys and values.
func object(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

func TestGitHub(t *testing.T) {
	const list = "GET /repos/org/app/pulls?base=main&direction=desc&head=org%3Aprerig%2Fshop&per_page=100&sort=created&state=all"
	fork := recorded(t, "github", map[string]any{"number": 9})
	fork["head"].(map[string]any)["repo"].(map[string]any)["id"] = 5
	gone := recorded(t, "github", map[string]any{"number": 8})
	gone["head"].(map[string]any)["repo"] = nil
	merged := recorded(t, "github", map[string]any{"number": 7, "state": "closed", "merged_at": "2026-05-16T00:00:00Z", "closed_at": "2026-05-16T00:00:00Z"})
	is := recorded(t, "github", nil)
	bare := recorded(t, "github", map[string]any{"labels": []any{}})
	closed := recorded(t, "github", map[string]any{"state": "closed", "closed_at": "2026-05-16T00:00:00Z"})
	s := newScript(t, "Bearer s3cret",
		exchange{ask: list, answer: []any{fork, gone, merged, is}},
		exchange{ask: "POST /repos/org/app/pulls", body: `{"title":"shop: 2 objects","body":"what a person must know","head":"prerig/shop","base":"main"}`, status: 422,
			answer: object("message", "Validation Failed", "errors", []any{object("resource", "PullRequest", "code", "custom", "message", "A pull request already exists for org:prerig/shop.")})},
		exchange{ask: list, answer: []any{merged, is}},
		exchange{ask: "GET /repos/org/app/pulls/2", answer: is},
		exchange{ask: "GET /repos/org/app/pulls/2", answer: bare},
		exchange{ask: "POST /repos/org/app/issues/2/labels", body: `{"labels":["prerig"]}`, answer: []any{}},
		exchange{ask: "PATCH /repos/org/app/pulls/2", body: `{"title":"new","body":"what a person must know"}`, answer: recorded(t, "github", map[string]any{"title": "new", "labels": []any{}})},
		exchange{ask: "GET /repos/org/app/pulls/2", answer: is},
		exchange{ask: "PATCH /repos/org/app/pulls/2", body: `{"state":"closed"}`, answer: closed},
		exchange{ask: "POST /repos/org/app/issues/2/comments", body: `{"body":"nothing is left"}`, status: 201, answer: object("id", 1)},
		exchange{ask: "GET /repos/org/app/pulls/2", answer: closed},
		exchange{ask: list, answer: []any{merged}},
	)
	h := open(t, pullrequest.Options{Repository: "https://github.com/org/app.git", API: s.url})
	found := drive(t, h, "https://github.com/org/app/pull/2", "prerig[bot]")
	if found.State != pullrequest.StateMerged || found.MergeCommit == "" || found.ClosedAt.IsZero() {
		t.Errorf("what was merged is %+v", found)
	}
}

// drive finds one that is open, opens it once more, updates it with and without a difference, closes it twice and finds what was merged.
func drive(t *testing.T, h pullrequest.Host, url, author string) *pullrequest.Request {
	t.Helper()
	ctx := context.Background()
	step := func(what string, r *pullrequest.Request, err error) *pullrequest.Request {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return r
	}
	r, err := h.Find(ctx, head, "main")
	checkOpen(t, step("finding", r, err), url, author)
	r, err = h.Create(ctx, head, "main", content)
	checkOpen(t, step("opening what is open", r, err), url, author)
	r, err = h.Update(ctx, 2, pullrequest.Content{Title: title, Body: body + "\n", Labels: content.Labels})
	checkOpen(t, step("writing the same", r, err), url, author)
	r, err = h.Update(ctx, 2, pullrequest.Content{Title: "new", Body: body, Labels: content.Labels})
	if step("writing", r, err); r.Title != "new" {
		t.Errorf("it was changed to %+v", r)
	}
	step("closing", nil, h.Close(ctx, 2, "nothing is left"))
	step("closing what is closed", nil, h.Close(ctx, 2, "nothing is left"))
	r, err = h.Find(ctx, head, "main")
	return step("finding what was merged", r, err)
}

func TestGitLab(t *testing.T) {
	const at = "/projects/org%2Fteam%2Fapp/merge_requests"
	const list = "GET " + at + "?order_by=created_at&per_page=100&sort=desc&source_branch=prerig%2Fshop&state=all&target_branch=main"
	fork := recorded(t, "gitlab", map[string]any{"iid": 9, "source_project_id": 5})
	gone := recorded(t, "gitlab", map[string]any{"iid": 8, "source_project_id": nil})
	merged := recorded(t, "gitlab", map[string]any{"iid": 1, "state": "merged", "merged_at": "2026-05-16T00:00:00Z", "squash_commit_sha": mergeSHA})
	is := recorded(t, "gitlab", nil)
	bare := recorded(t, "gitlab", map[string]any{"labels": []any{}})
	closed := recorded(t, "gitlab", map[string]any{"state": "closed", "closed_at": "2026-05-16T00:00:00Z"})
	s := newScript(t, "Bearer s3cret",
		exchange{ask: list, answer: []any{fork, gone, is, merged}},
		exchange{ask: "POST " + at, body: `{"title":"shop: 2 objects","description":"what a person must know","source_branch":"prerig/shop","target_branch":"main","labels":"prerig"}`,
			status: 409, answer: object("message", []any{"Another open merge request already exists for this source branch: !2"})},
		exchange{ask: list, answer: []any{is, merged}},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "GET " + at + "/2", answer: bare},
		exchange{ask: "PUT " + at + "/2", body: `{"add_labels":"prerig"}`, answer: is},
		exchange{ask: "PUT " + at + "/2", body: `{"title":"new","description":"what a person must know"}`, answer: recorded(t, "gitlab", map[string]any{"title": "new", "labels": []any{}})},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "PUT " + at + "/2", body: `{"state_event":"close"}`, answer: closed},
		exchange{ask: "POST " + at + "/2/notes", body: `{"body":"nothing is left"}`, status: 201, answer: object("id", 1)},
		exchange{ask: "GET " + at + "/2", answer: closed},
		exchange{ask: list, answer: []any{merged}},
	)
	h := open(t, pullrequest.Options{Repository: "git@gitlab.com:org/team/app.git", API: s.url})
	found := drive(t, h, "https://gitlab.com/org/team/app/-/merge_requests/2", "project_7_bot")
	if found.State != pullrequest.StateMerged || found.MergeCommit != mergeSHA || found.ClosedAt.IsZero() {
		t.Errorf("what was merged is %+v", found)
	}
}

// GitLab does what lines such as /merge say, with the rights of who wrote them.
func TestQuickActionsAreText(t *testing.T) {
	const at = "/projects/org%2Fapp/merge_requests"
	s := newScript(t, "Bearer s3cret", exchange{ask: "POST " + at,
		body:   `{"title":"t","description":"see\n\\/merge\n  \\/approve now\n/etc/passwd\na /close b\n\\/label ~x\r\n","source_branch":"a","target_branch":"b"}`,
		answer: recorded(t, "gitlab", nil)})
	h := open(t, pullrequest.Options{Repository: "https://gitlab.com/org/app", API: s.url})
	if _, err := h.Create(context.Background(), "a", "b", pullrequest.Content{Title: "t", Body: "see\n/merge\n  /approve now\n/etc/passwd\na /close b\n/label ~x\r\n"}); err != nil {
		t.Error(err)
	}
}

func TestBitbucketCloud(t *testing.T) {
	const at = "/repositories/org/app"
	list := func(state string) string {
		return "GET " + at + "/pullrequests?pagelen=50&q=source.branch.name+%3D+%22prerig%2Fshop%22+AND+destination.branch.name+%3D+%22main%22&sort=-created_on" + state
	}
	opened, others := list("&state=OPEN"), list("&state=MERGED&state=DECLINED&state=SUPERSEDED")
	whole := exchange{ask: "GET " + at + "/commit/" + headSHA[:12] + "?fields=hash", answer: object("hash", headSHA)}
	fork := recorded(t, "bitbucketcloud", map[string]any{"id": 9})
	fork["source"].(map[string]any)["repository"].(map[string]any)["uuid"] = "{other}"
	gone := recorded(t, "bitbucketcloud", map[string]any{"id": 8})
	gone["source"].(map[string]any)["repository"] = nil
	merged := recorded(t, "bitbucketcloud", map[string]any{"id": 1, "state": "MERGED", "merge_commit": object("hash", mergeSHA[:12])})
	is := recorded(t, "bitbucketcloud", nil)
	declined := recorded(t, "bitbucketcloud", map[string]any{"state": "DECLINED"})
	s := newScript(t, "Basic YW5uOnMzY3JldA==",
		exchange{ask: opened, answer: object("values", []any{fork, gone, is}, "pagelen", 50)}, whole,
		exchange{ask: opened, answer: object("values", []any{is})}, whole,
		exchange{ask: "GET " + at + "/pullrequests/2", answer: is}, whole,
		exchange{ask: "GET " + at + "/pullrequests/2", answer: is}, whole,
		exchange{ask: "GET " + at + "/pullrequests/2", answer: is}, whole,
		exchange{ask: "PUT " + at + "/pullrequests/2", answer: recorded(t, "bitbucketcloud", map[string]any{"title": "new"}),
			body: `{"title":"new","description":"what a person must know","reviewers":[{"uuid":"{a54f16da-24e9-4d7f-a3a7-b1ba2cd98aa3}"}]}`}, whole,
		exchange{ask: "GET " + at + "/pullrequests/2", answer: is}, whole,
		exchange{ask: "POST " + at + "/pullrequests/2/decline", answer: declined},
		exchange{ask: "POST " + at + "/pullrequests/2/comments", body: `{"content":{"raw":"nothing is left"}}`, status: 201, answer: object("id", 1)},
		exchange{ask: "GET " + at + "/pullrequests/2", answer: declined}, whole,
		exchange{ask: opened, answer: object("values", []any{})},
		exchange{ask: others, answer: object("values", []any{merged, declined}[:1])},
		exchange{ask: whole.ask, status: 404, answer: object("type", "error", "error", object("message", "Commit not found"))},
		exchange{ask: "GET " + at + "/commit/" + mergeSHA[:12] + "?fields=hash", answer: object("hash", mergeSHA)},
	)
	h := open(t, pullrequest.Options{Repository: "https://bitbucket.org/org/app.git", API: s.url, Credentials: pullrequest.Credentials{Username: "ann", Password: "s3cret"}})
	found := drive(t, h, "https://bitbucket.org/org/app/pull-requests/2", "prerig")
	if found.State != pullrequest.StateMerged || found.MergeCommit != mergeSHA || found.HeadCommit != headSHA[:12] || found.ClosedAt.IsZero() {
		t.Errorf("what was merged is %+v", found)
	}
}

func TestBitbucketServer(t *testing.T) {
	const at = "/projects/SHOP/repos/app/pull-requests"
	list := func(state, start string) string {
		return "GET " + at + "?at=refs%2Fheads%2Fprerig%2Fshop&direction=OUTGOING&limit=100&order=NEWEST&start=" + start + "&state=" + state
	}
	ref := func(name string) string {
		return `{"id":"refs/heads/` + name + `","repository":{"slug":"app","project":{"key":"SHOP"}}}`
	}
	fork := recorded(t, "bitbucketserver", map[string]any{"id": 9})
	fork["toRef"].(map[string]any)["repository"].(map[string]any)["id"] = 5
	merged := recorded(t, "bitbucketserver", map[string]any{"id": 1, "state": "MERGED", "closedDate": 1778889600000, "properties": object("mergeCommit", object("id", mergeSHA))})
	is := recorded(t, "bitbucketserver", nil)
	later := recorded(t, "bitbucketserver", map[string]any{"version": 4})
	declined := recorded(t, "bitbucketserver", map[string]any{"state": "DECLINED", "closedDate": 1778889600000})
	outdated := object("errors", []any{object("context", nil, "message", "You are attempting to modify a pull request based on out-of-date information.",
		"exceptionName", "com.atlassian.bitbucket.pull.PullRequestOutOfDateException", "currentVersion", 4)})
	write := func(version string) string {
		return `{"version":` + version + `,"title":"new","description":"what a person must know","reviewers":[{"user":{"name":"ann"}}]}`
	}
	s := newScript(t, "Bearer s3cret",
		exchange{ask: list("OPEN", "0"), answer: object("values", []any{fork}, "isLastPage", false, "nextPageStart", 100)},
		exchange{ask: list("OPEN", "100"), answer: object("values", []any{is}, "isLastPage", true, "nextPageStart", nil)},
		exchange{ask: "POST " + at, body: `{"title":"shop: 2 objects","description":"what a person must know","fromRef":` + ref(head) + `,"toRef":` + ref("main") + `}`, status: 409,
			answer: object("errors", []any{object("message", "Only one pull request may be open for a given source and target branch", "exceptionName", "DuplicatePullRequestException", "existingPullRequest", is)})},
		exchange{ask: list("OPEN", "0"), answer: object("values", []any{is}, "isLastPage", true)},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "PUT " + at + "/2", body: write("3"), status: 409, answer: outdated},
		exchange{ask: "GET " + at + "/2", answer: later},
		exchange{ask: "PUT " + at + "/2", body: write("4"), answer: recorded(t, "bitbucketserver", map[string]any{"title": "new", "version": 5})},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "GET " + at + "/2", answer: is},
		exchange{ask: "POST " + at + "/2/decline?version=3", answer: declined},
		exchange{ask: "POST " + at + "/2/comments", body: `{"text":"nothing is left"}`, status: 201, answer: object("id", 1)},
		exchange{ask: "GET " + at + "/2", answer: declined},
		exchange{ask: list("OPEN", "0"), answer: object("values", []any{}, "isLastPage", true)},
		exchange{ask: list("ALL", "0"), answer: object("values", []any{merged}, "isLastPage", true)},
	)
	h := open(t, pullrequest.Options{Provider: giturl.BitbucketServer, Repository: "ssh://git@bb.example.com:7999/SHOP/app.git", API: s.url})
	found := drive(t, h, "https://bb.example.com/projects/SHOP/repos/app/pull-requests/2", "prerig")
	if found.State != pullrequest.StateMerged || found.MergeCommit != mergeSHA || found.ClosedAt.IsZero() {
		t.Errorf("what was merged is %+v", found)
	}
}

func TestAzureDevOps(t *testing.T) {
	const at, version = "/My%20Project/_apis/git/repositories/app/pullrequests", "api-version=7.0"
	list := func(status string) string {
		return "GET " + at + "?%24top=100&searchCriteria.sourceRefName=refs%2Fheads%2Fprerig%2Fshop&searchCriteria.status=" + status + "&searchCriteria.targetRefName=refs%2Fheads%2Fmain&" + version
	}
	one, labels := at+"/2?"+version, at+"/2/labels?"+version
	fork := recorded(t, "azure", map[string]any{"pullRequestId": 9, "forkSource": object("name", "refs/heads/prerig/shop")})
	cut := recorded(t, "azure", map[string]any{"description": "what a"})
	is := recorded(t, "azure", nil)
	bare := recorded(t, "azure", map[string]any{"labels": nil})
	abandoned := recorded(t, "azure", map[string]any{"status": "abandoned", "closedDate": "2026-05-16T00:00:00Z"})
	merged := recorded(t, "azure", map[string]any{"pullRequestId": 1, "status": "completed", "closedDate": "2026-05-16T00:00:00Z"})
	s := newScript(t, "Basic OnMzY3JldA==",
		exchange{ask: list("active"), answer: object("value", []any{fork, cut}, "count", 2)},
		exchange{ask: "GET " + one, answer: is},
		exchange{ask: "POST " + at + "?" + version, status: 409, answer: object("message", "TF401179: An active pull request for the source and target branch already exists.", "errorCode", 0),
			body: `{"title":"shop: 2 objects","description":"what a person must know","sourceRefName":"refs/heads/prerig/shop","targetRefName":"refs/heads/main","labels":[{"name":"prerig"}]}`},
		exchange{ask: list("active"), answer: object("value", []any{cut})},
		exchange{ask: "GET " + one, answer: is},
		exchange{ask: "GET " + one, answer: is},
		exchange{ask: "GET " + one, answer: bare},
		exchange{ask: "GET " + labels, answer: object("value", []any{object("name", "prerig", "active", false)})},
		exchange{ask: "POST " + labels, body: `{"name":"prerig"}`, answer: object("name", "prerig", "active", true)},
		exchange{ask: "PATCH " + one, body: `{"title":"new","description":"what a person must know"}`, answer: recorded(t, "azure", map[string]any{"title": "new", "labels": nil})},
		exchange{ask: "GET " + one, answer: is},
		exchange{ask: "PATCH " + one, body: `{"status":"abandoned"}`, answer: abandoned},
		exchange{ask: "POST " + at + "/2/threads?" + version, body: `{"status":"closed","comments":[{"parentCommentId":0,"commentType":"text","content":"nothing is left"}]}`, answer: object("id", 1)},
		exchange{ask: "GET " + one, answer: abandoned},
		exchange{ask: list("active"), answer: object("value", []any{})},
		exchange{ask: list("all"), answer: object("value", []any{merged})},
		exchange{ask: "GET " + at + "/1?" + version, answer: merged},
	)
	h := open(t, pullrequest.Options{Repository: "https://dev.azure.com/org/My%20Project/_git/app", API: s.url})
	found := drive(t, h, s.url+"/My%20Project/_git/app/pullrequest/2", "prerig@example.com")
	if found.State != pullrequest.StateMerged || found.MergeCommit != mergeSHA || found.ClosedAt.IsZero() {
		t.Errorf("what was merged is %+v", found)
	}
}

// Gitea itself is in gitea_test.go; these are what it does not do by itself.
func TestGiteaPages(t *testing.T) {
	other := func(number int) any {
		return object("number", number, "state", "open", "head", object("label", "other", "repo_id", 1), "base", object("label", "main", "repo_id", 1))
	}
	wanted := object("number", 3, "state", "open", "title", title, "body", body, "head", object("label", head, "ref", "refs/pull/3/head", "sha", headSHA, "repo_id", 1), "base", object("label", "main", "repo_id", 1))
	list := "GET /repos/org/app/pulls?base_branch=main&limit=50&page="
	s := newScript(t, "token s3cret",
		exchange{ask: list + "1&state=open", answer: []any{other(9), other(8)}, header: map[string]string{"Link": `<HOST/x?page=2>; rel="next",<HOST/x?page=2>; rel="last"`}},
		exchange{ask: list + "2&state=open", answer: []any{wanted}, header: map[string]string{"Link": `<HOST/x?page=1>; rel="first"`}},
		// Labels come without Link. There were two of one name where the first page was taken for all.
		exchange{ask: "GET /repos/org/app/pulls/3", answer: wanted},
		exchange{ask: "GET /orgs/org/labels?page=1&limit=50", status: 404, answer: object("message", "user redirect does not exist")},
		exchange{ask: "GET /repos/org/app/labels?page=1&limit=50", answer: []any{object("id", 5, "name", "bug")}, header: map[string]string{"X-Total-Count": "2"}},
		exchange{ask: "GET /repos/org/app/labels?page=2&limit=50", answer: []any{object("id", 6, "name", "prerig")}, header: map[string]string{"X-Total-Count": "2"}},
		exchange{ask: "POST /repos/org/app/labels", body: `{"name":"new","color":"#1d76db"}`, status: 201, answer: object("id", 7, "name", "new")},
		exchange{ask: "POST /repos/org/app/issues/3/labels", body: `{"labels":[6,7]}`, answer: []any{}},
	)
	h := open(t, pullrequest.Options{Provider: giturl.Gitea, Repository: "https://git.example.com/org/app", API: s.url})
	if r, err := h.Find(context.Background(), head, "main"); err != nil || r == nil || r.Number != 3 || r.Head != head {
		t.Errorf("found %+v, %v", r, err)
	}
	if _, err := h.Update(context.Background(), 3, pullrequest.Content{Title: title, Body: body, Labels: []string{"prerig", "new"}}); err != nil {
		t.Error(err)
	}
}

// Labels that come after would be lost in a crash in between: the body says that they were put on.
func TestGiteaOpensWithLabels(t *testing.T) {
	opened := object("number", 3, "state", "open", "title", title, "body", body, "labels", []any{object("id", 6, "name", "prerig")},
		"head", object("label", head, "sha", headSHA, "repo_id", 1), "base", object("label", "main", "repo_id", 1))
	s := newScript(t, "token s3cret",
		exchange{ask: "GET /orgs/org/labels?page=1&limit=50", answer: []any{object("id", 6, "name", "prerig")}, header: map[string]string{"X-Total-Count": "1"}},
		exchange{ask: "GET /repos/org/app/labels?page=1&limit=50", answer: []any{}},
		exchange{ask: "POST /repos/org/app/pulls", body: `{"title":"shop: 2 objects","body":"what a person must know","head":"prerig/shop","base":"main","labels":[6]}`, status: 201, answer: opened},
	)
	h := open(t, pullrequest.Options{Provider: giturl.Gitea, Repository: "https://git.example.com/org/app", API: s.url})
	if r, err := h.Create(context.Background(), head, "main", content); err != nil || !slices.Equal(r.Labels, []string{"prerig"}) {
		t.Errorf("opened %+v, %v", r, err)
	}
}

// A body that was changed between reading and writing it stays.
func TestGiteaChangedMeanwhile(t *testing.T) {
	is := object("number", 3, "state", "open", "title", title, "body", body, "content_version", 4,
		"head", object("label", head, "sha", headSHA, "repo_id", 1), "base", object("label", "main", "repo_id", 1))
	s := newScript(t, "token s3cret",
		exchange{ask: "GET /repos/org/app/pulls/3", answer: is},
		exchange{ask: "GET /repos/org/app/pulls/3", answer: is},
		exchange{ask: "PATCH /repos/org/app/pulls/3", body: `{"title":"new","body":"what a person must know","content_version":4}`, status: 409, answer: object("message", "the issue was changed")},
	)
	h := open(t, pullrequest.Options{Provider: giturl.Gitea, Repository: "https://git.example.com/org/app", API: s.url})
	for _, was := range []string{"read before Ann wrote", body} {
		_, err := h.Update(context.Background(), 3, pullrequest.Content{Title: "new", Body: body, From: &pullrequest.Request{Title: title, Body: was}})
		if !errors.Is(err, pullrequest.ErrChanged) {
			t.Errorf("got %v", err)
		}
	}
}

func TestWhatIsWrittenFits(t *testing.T) {
	long := recorded(t, "github", map[string]any{"labels": []any{}})
	title := strings.Repeat("😀", 200)
	s := newScript(t, "Bearer s3cret", exchange{ask: "POST /repos/org/app/pulls", body: `{"title":"` + strings.Repeat("😀", 127) + `…","body":"","head":"a","base":"b"}`, answer: long})
	h := open(t, pullrequest.Options{Repository: "https://github.com/org/app", API: s.url})
	ctx := context.Background()
	if _, err := h.Create(ctx, "a", "b", pullrequest.Content{Title: " \n" + title}); err != nil {
		t.Error(err)
	}
	for problem, c := range map[string]pullrequest.Content{
		"has 65538 characters": {Title: "t", Body: strings.Repeat("😀", 32769)}, "needs a title": {Title: " \n", Body: "b"},
	} {
		if _, err := h.Create(ctx, "a", "b", c); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v", problem, err)
		}
		if _, err := h.Update(ctx, 1, c); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: got %v", problem, err)
		}
	}
	if h.MaxBody() != 65536 {
		t.Errorf("the limit is %d", h.MaxBody())
	}
}

func TestLabelsStay(t *testing.T) {
	is := recorded(t, "github", map[string]any{"labels": []any{object("name", "of a person")}})
	s := newScript(t, "Bearer s3cret",
		exchange{ask: "GET /repos/org/app/pulls/2", answer: is},
		exchange{ask: "POST /repos/org/app/issues/2/labels", body: `{"labels":["prerig","new"]}`, answer: []any{}})
	h := open(t, pullrequest.Options{Repository: "https://github.com/org/app", API: s.url})
	r, err := h.Update(context.Background(), 2, pullrequest.Content{Title: title, Body: body, Labels: []string{"prerig", "of a person", "new", "new"}})
	if err != nil || !slices.Equal(r.Labels, []string{"of a person", "prerig", "new"}) {
		t.Errorf("got %+v, %v", r, err)
	}
}
