// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/giteatest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// giteaShop has an organisation with a repository, to which the user prerig may write, with the scopes that the documentation names. ann
// and bob are people.
type giteaShop struct {
	*giteatest.Server
	t        *testing.T
	ann, bob string
	token    string
	host     pullrequest.Host
}

func newGiteaShop(t *testing.T) *giteaShop {
	g := giteatest.Start(t, giteatest.Options{Page: 3})
	s := &giteaShop{Server: g, t: t}
	for _, name := range []string{"prerig", "ann", "bob"} {
		g.User(name)
	}
	s.token, s.ann, s.bob = g.Token("prerig", "write:repository,write:issue"), g.Token("ann", "all"), g.Token("bob", "all")
	g.Must(g.Admin, http.MethodPost, "/orgs", object("username", "shop"), nil)
	g.Must(g.Admin, http.MethodPost, "/orgs/shop/repos", object("name", "app", "auto_init", true, "default_branch", "main", "private", false), nil)
	for _, name := range []string{"prerig", "ann"} {
		g.Must(g.Admin, http.MethodPut, "/repos/shop/app/collaborators/"+name, object("permission", "write"), nil)
	}
	s.host = s.open("shop/app", s.token)
	return s
}

func (s *giteaShop) find(branch string) *pullrequest.Request {
	s.t.Helper()
	r, err := s.host.Find(context.Background(), branch, "main")
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *giteaShop) createPullRequest(branch string) *pullrequest.Request {
	s.t.Helper()
	r, err := s.host.Create(context.Background(), branch, "main", pullrequest.Content{Title: "change of " + branch, Body: "first\n\ntext", Labels: []string{"prerig", "shop"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *giteaShop) listPostedComments(number int64) int {
	s.t.Helper()
	var out []any
	s.Must(s.Admin, http.MethodGet, fmt.Sprintf("/repos/shop/app/issues/%d/comments", number), nil, &out)
	return len(out)
}

func (s *giteaShop) pull(number int64) string { return fmt.Sprintf("/repos/shop/app/pulls/%d", number) }

// eventually waits for what Gitea does after it has answered.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never: %s", what)
		}
	}
}

func TestGitea(t *testing.T) {
	s := newGiteaShop(t)
	for name, test := range map[string]func(s *giteaShop, t *testing.T){
		"one is opened, and never two":    giteaOpens,
		"what differs is written":         giteaWrites,
		"a person closes it":              giteaClosedByPerson,
		"closing it twice comments once":  giteaCloses,
		"a person merges it":              giteaMerges,
		"a fork has a branch of the name": giteaFork,
		"it is on a later page":           giteaPages,
		"it is older than most":           giteaOld,
		"what is refused":                 giteaRefuses,
	} {
		t.Run(name, func(t *testing.T) {
			here := *s
			here.t = t
			server := *s.Server
			server.T = t
			here.Server = &server
			test(&here, t)
		})
	}
}

func giteaOpens(s *giteaShop, t *testing.T) {
	const branch = "prerig/opens"
	commit := s.Write(s.token, "shop/app", branch, "main", "opens.yaml")
	if r := s.find(branch); r != nil {
		t.Fatalf("there is %+v", r)
	}
	r := s.createPullRequest(branch)
	if r.State != pullrequest.StateOpen || r.Head != branch || r.Base != "main" || r.HeadCommit != commit || r.Author != "prerig" || r.Body != "first\n\ntext" ||
		!slices.Equal(r.Labels, []string{"prerig", "shop"}) || r.URL != fmt.Sprintf("%s/shop/app/pulls/%d", s.URL, r.Number) || r.CreatedAt.IsZero() {
		t.Errorf("opened %+v", r)
	}
	again, err := s.host.Create(context.Background(), branch, "main", pullrequest.Content{Title: "other"})
	if err != nil || again.Number != r.Number || again.Title != r.Title {
		t.Errorf("opening it again gives %+v, %v", again, err)
	}
	found := s.find(branch)
	if slices.Sort(found.Labels); found.Number != r.Number || found.MergeCommit != "" || !slices.Equal(found.Labels, r.Labels) {
		t.Errorf("found %+v", found)
	}
	next := s.Write(s.token, "shop/app", branch, "", "opens-2.yaml")
	eventually(t, "the new commit is seen", func() bool { return s.find(branch).HeadCommit == next })
}

func giteaWrites(s *giteaShop, t *testing.T) {
	const branch = "prerig/writes"
	ctx := context.Background()
	s.Write(s.token, "shop/app", branch, "main", "writes.yaml")
	r := s.createPullRequest(branch)
	s.Must(s.ann, http.MethodPost, "/repos/shop/app/labels", object("name", "of-ann", "color", "#ff0000"), nil)
	s.Must(s.ann, http.MethodPost, fmt.Sprintf("/repos/shop/app/issues/%d/labels", r.Number), object("labels", []any{"of-ann"}), nil)
	before := s.find(branch)
	same := pullrequest.Content{Title: r.Title, Body: r.Body + "\r\n", Labels: []string{"shop"}}
	if after, err := s.host.Update(ctx, r.Number, same); err != nil || !after.UpdatedAt.Equal(before.UpdatedAt) {
		t.Errorf("the same was written: %+v, %v", after, err)
	}
	after, err := s.host.Update(ctx, r.Number, pullrequest.Content{Title: "ünï 😀 <b>", Body: "second\n```diff\n+a\n```\n", Labels: []string{"prerig", "late"}})
	if err != nil {
		t.Fatal(err)
	}
	found := s.find(branch)
	slices.Sort(found.Labels)
	if found.Title != "ünï 😀 <b>" || found.Body != "second\n```diff\n+a\n```\n" || !slices.Equal(found.Labels, []string{"late", "of-ann", "prerig", "shop"}) || after.Title != found.Title {
		t.Errorf("written was %+v, returned %+v", found, after)
	}
}

func giteaClosedByPerson(s *giteaShop, t *testing.T) {
	const branch = "prerig/closed"
	s.Write(s.token, "shop/app", branch, "main", "closed.yaml")
	first := s.createPullRequest(branch)
	s.Must(s.ann, http.MethodPatch, s.pull(first.Number), object("state", "closed"), nil)
	if r := s.find(branch); r.Number != first.Number || r.State != pullrequest.StateClosed || r.ClosedAt.IsZero() || r.MergeCommit != "" {
		t.Errorf("found %+v", r)
	}
	second := s.createPullRequest(branch)
	if r := s.find(branch); second.Number == first.Number || r.Number != second.Number || r.State != pullrequest.StateOpen {
		t.Errorf("opened %+v, found %+v", second, r)
	}
	s.Must(s.ann, http.MethodPatch, s.pull(second.Number), object("state", "closed"), nil)
	s.Must(s.ann, http.MethodPatch, s.pull(first.Number), object("state", "open"), nil)
	if r := s.find(branch); r.Number != first.Number {
		t.Errorf("one that is open again was not found before %+v", r)
	}
}

func giteaCloses(s *giteaShop, t *testing.T) {
	const branch = "prerig/closes"
	s.Write(s.token, "shop/app", branch, "main", "closes.yaml")
	r := s.createPullRequest(branch)
	for range 2 {
		if err := s.host.Close(context.Background(), r.Number, "nothing is left"); err != nil {
			t.Fatal(err)
		}
	}
	if found := s.find(branch); found.State != pullrequest.StateClosed || s.listPostedComments(r.Number) != 1 {
		t.Errorf("closed is %+v with %d comments", found, s.listPostedComments(r.Number))
	}
	if status := s.API(s.ann, http.MethodGet, "/repos/shop/app/branches/"+branch, nil, nil); status != http.StatusOK {
		t.Errorf("the branch is gone: %d", status)
	}
}

// The branch that it goes to is protected: nobody pushes to it, and somebody has to approve.
func giteaMerges(s *giteaShop, t *testing.T) {
	const branch = "prerig/merges"
	s.Write(s.token, "shop/app", branch, "main", "merges.yaml")
	s.Must(s.Admin, http.MethodPost, "/repos/shop/app/branch_protections", object("rule_name", "main", "enable_push", false, "required_approvals", 1), nil)
	defer s.Must(s.Admin, http.MethodDelete, "/repos/shop/app/branch_protections/main", nil, nil)
	r := s.createPullRequest(branch)
	merge := object("Do", "merge", "delete_branch_after_merge", true)
	mergeable := func() bool {
		var now struct {
			Mergeable bool `json:"mergeable"`
		}
		s.Must(s.ann, http.MethodGet, s.pull(r.Number), nil, &now)
		return now.Mergeable
	}
	eventually(t, "it can be merged", mergeable)
	if status := s.API(s.token, http.MethodPost, s.pull(r.Number)+"/merge", merge, nil); status < 400 {
		t.Fatalf("it was merged without an approval: %d", status)
	}
	s.Must(s.ann, http.MethodPost, s.pull(r.Number)+"/reviews", object("event", "APPROVED", "commit_id", r.HeadCommit), nil)
	eventually(t, "it is merged", func() bool { return s.API(s.ann, http.MethodPost, s.pull(r.Number)+"/merge", merge, nil) < 400 })
	var main struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	s.Must(s.ann, http.MethodGet, "/repos/shop/app/branches/main", nil, &main)
	found := s.find(branch)
	if found == nil || found.State != pullrequest.StateMerged || found.MergeCommit != main.Commit.ID || found.Head != branch || found.HeadCommit != r.HeadCommit || found.ClosedAt.IsZero() {
		t.Errorf("merged is %+v, main is at %s", found, main.Commit.ID)
	}
	if err := s.host.Close(context.Background(), r.Number, "late"); err != nil || s.listPostedComments(r.Number) != 0 {
		t.Errorf("closing what was merged: %v, %d comments", err, s.listPostedComments(r.Number))
	}
}

func giteaFork(s *giteaShop, t *testing.T) {
	const branch = "prerig/fork"
	s.Must(s.bob, http.MethodPost, "/repos/shop/app/forks", object("name", "app"), nil)
	s.Write(s.bob, "bob/app", branch, "main", "fork.yaml")
	var theirs struct {
		Number int64 `json:"number"`
	}
	s.Must(s.bob, http.MethodPost, "/repos/shop/app/pulls", object("title", "of bob", "head", "bob:"+branch, "base", "main"), &theirs)
	if r := s.find(branch); r != nil {
		t.Fatalf("that of a fork is found: %+v", r)
	}
	s.Write(s.token, "shop/app", branch, "main", "ours.yaml")
	if r := s.createPullRequest(branch); r.Number == theirs.Number || s.find(branch).Number != r.Number {
		t.Errorf("opened is %+v", r)
	}
}

// Lists come in pages of three, whatever is asked for.
func giteaPages(s *giteaShop, t *testing.T) {
	var first int64
	for i := range 8 {
		branch := fmt.Sprintf("prerig/page-%d", i)
		s.Write(s.token, "shop/app", branch, "main", fmt.Sprintf("page-%d.yaml", i))
		r := s.createPullRequest(branch)
		if i == 0 {
			first = r.Number
		}
	}
	if r := s.find("prerig/page-0"); r == nil || r.Number != first {
		t.Errorf("found %+v", r)
	}
	for i := range 8 {
		if err := s.host.Close(context.Background(), first+int64(i), ""); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.find("prerig/page-0"); r == nil || r.Number != first || r.State != pullrequest.StateClosed {
		t.Errorf("found %+v", r)
	}
	// Labels have pages too: made twice, there would be two of one name.
	var labels []struct {
		Name string `json:"name"`
	}
	seen := map[string]int{}
	for page := 1; page == 1 || len(labels) > 0; page++ {
		s.Must(s.ann, http.MethodGet, fmt.Sprintf("/repos/shop/app/labels?page=%d", page), nil, &labels)
		for _, l := range labels {
			if seen[l.Name]++; seen[l.Name] > 1 {
				t.Errorf("the label %s is there twice", l.Name)
			}
		}
	}
}

// Only the newest ten pages of those that are closed are read for every branch, which are thirty here.
func giteaOld(s *giteaShop, t *testing.T) {
	var numbers []int64
	for i := range 32 {
		branch := fmt.Sprintf("prerig/old/of-%d", i)
		s.Write(s.token, "shop/app", branch, "main", fmt.Sprintf("old-%d.yaml", i))
		var r struct {
			Number int64 `json:"number"`
		}
		s.Must(s.ann, http.MethodPost, "/repos/shop/app/pulls", object("title", branch, "head", branch, "base", "main"), &r)
		s.Must(s.ann, http.MethodPatch, s.pull(r.Number), object("state", "closed"), nil)
		numbers = append(numbers, r.Number)
	}
	for _, i := range []int{0, 1, 31} {
		if r := s.find(fmt.Sprintf("prerig/old/of-%d", i)); r == nil || r.Number != numbers[i] || r.State != pullrequest.StateClosed {
			t.Errorf("found %+v, want %d", r, numbers[i])
		}
	}
	if r := s.find("prerig/old/of-none"); r != nil {
		t.Errorf("found %+v", r)
	}
	// The newest counts, also where the other is what Gitea finds at once.
	s.Must(s.ann, http.MethodPost, "/repos/shop/app/pulls", object("title", "again", "head", "prerig/old/of-0", "base", "main"), nil)
	again := s.find("prerig/old/of-0")
	if again.Number == numbers[0] || again.State != pullrequest.StateOpen {
		t.Fatalf("found %+v", again)
	}
	s.Must(s.ann, http.MethodPatch, s.pull(again.Number), object("state", "closed"), nil)
	if r := s.find("prerig/old/of-0"); r.Number != again.Number {
		t.Errorf("found %+v, want %d", r, again.Number)
	}
}

func giteaRefuses(s *giteaShop, t *testing.T) {
	ctx := context.Background()
	s.Must(s.Admin, http.MethodPost, "/orgs/shop/repos", object("name", "hidden", "auto_init", true, "private", true), nil)
	content := pullrequest.Content{Title: "t", Body: "b"}
	_, wrong := s.open("shop/app", "0123456789abcdef0123456789abcdef01234567").Find(ctx, "a", "main")
	_, hidden := s.open("shop/hidden", s.token).Find(ctx, "a", "main")
	_, noBranch := s.host.Create(ctx, "prerig/not-there", "main", content)
	_, noBase := s.host.Create(ctx, "main", "not-there", content)
	_, noDifference := s.host.Create(ctx, "main", "main", content)
	_, scope := s.open("shop/app", s.Token("prerig", "read:repository")).Create(ctx, "main", "main", content)
	for _, c := range []struct {
		name   string
		err    error
		status string
	}{
		{"a wrong token", wrong, ": 401 Unauthorized"}, {"a repository that is not shown", hidden, ": 404 Not Found"}, {"a branch that is not there", noBranch, ": 4"},
		{"a base that is not there", noBase, ": 4"}, {"a branch to itself", noDifference, ": 4"}, {"a token that may only read", scope, ": 403 Forbidden"},
	} {
		if _, again := pullrequest.Retry(c.err); c.err == nil || again || !strings.Contains(c.err.Error(), c.status) {
			t.Errorf("%s: %v", c.name, c.err)
		}
		t.Log(c.err)
	}
	if !pullrequest.IsNotFound(hidden) {
		t.Errorf("got %v", hidden)
	}
}
