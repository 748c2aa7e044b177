// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// reviewed is a repository with a host of pull requests, and people.
type reviewed struct {
	t    *testing.T
	repo *gittest.Repository
	host *pulltest.Host
}

func newReviewed(t *testing.T) *reviewed {
	t.Helper()
	w := &reviewed{t: t, repo: gittest.New(t).Repository(t, "deploy"), host: &pulltest.Host{}}
	w.host.Heads = func(branch string) string { return w.tip(branch) }
	return w
}

// tip is where a branch is, "" where it does not exist.
func (w *reviewed) tip(branch string) string {
	return w.repo.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+branch)
}

// restarted is what a new process publishes with.
func (w *reviewed) restarted(head string) *publish.PullRequest {
	return &publish.PullRequest{Base: branch(w.t, w.repo, "rendered"), Head: head, Host: w.host, Labels: []string{"rendered"}}
}

func (w *reviewed) newest(head string) *pullrequest.Request {
	w.t.Helper()
	var newest *pullrequest.Request
	for _, r := range w.host.Requests() {
		if r.Head == head {
			newest = &r
		}
	}
	return newest
}

// merge is a person's merge, by a commit with two parents.
func (w *reviewed) merge(number int64) {
	w.t.Helper()
	r := w.host.Requests()[number-1]
	tree := w.repo.Git("merge-tree", "--write-tree", r.Base, r.Head)
	commit := w.repo.Git("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit-tree", "-m", "Merge", "-p", r.Base, "-p", r.Head, tree)
	w.repo.Git("update-ref", "refs/heads/"+r.Base, commit)
	w.host.MergedByPerson(number, commit)
}

// commitTo is a person's commit of one file to a branch.
func (w *reviewed) commitTo(branch, name, content string) {
	w.t.Helper()
	dir := w.t.TempDir()
	w.repo.Git("worktree", "add", "-q", dir, branch)
	defer w.repo.Git("worktree", "remove", "--force", dir)
	writeFile(w.t, dir, name, content)
	w.repo.Git("-C", dir, "add", "-A")
	w.repo.Git("-C", dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "-q", "-m", "By hand")
}

func (w *reviewed) publish(p *publish.PullRequest, changes ...publish.Change) publish.Result {
	w.t.Helper()
	result, err := p.Publish(ctx, changes)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, outcome := range result.Outcomes {
		if outcome.Err != nil {
			w.t.Fatal(outcome.Err)
		}
	}
	return result
}

func (w *reviewed) file(branch, name string) string { return w.repo.Git("show", branch+":"+name) }

const shopHead = "prerig/rendered/pipeline/shop"

func TestPullRequest(t *testing.T) {
	w := newReviewed(t)
	p := w.restarted(shopHead)
	first := w.publish(p, change(t, "shop", "shop", configMap("a", "1")))
	if !first.Changed || first.Waiting.State != v1alpha1.PullRequestOpen || first.Waiting.Request.Number != 1 || !first.Waiting.Pipelines["shop"] {
		t.Fatalf("got %+v", first.Waiting)
	}
	if got := w.repo.Git("ls-tree", "-r", "--name-only", "rendered"); got != ".prerig/README.md" {
		t.Errorf("the base holds %s", got)
	}
	r := w.newest(shopHead)
	if r.Title != "Render shop: Change the shop" || !strings.Contains(r.Body, "1 object added, 0 changed, 0 deleted") || r.Labels[0] != "rendered" {
		t.Errorf("got %+v", r)
	}
	if w.host.Calls(pulltest.Update) > 0 {
		t.Error("it was written twice")
	}
	if again := w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1"))); again.Changed || again.Commit != first.Commit {
		t.Errorf("got %+v", again)
	}
	written := w.host.Written()
	w.publish(w.restarted(shopHead))
	if w.host.Written() != written {
		t.Error("a look wrote something")
	}
	w.publish(p, change(t, "shop", "shop", configMap("a", "2")))
	if got := w.file(shopHead, "shop/shop/configmap-a.yaml"); !strings.Contains(got, `k: "2"`) || len(w.host.Requests()) != 1 {
		t.Errorf("got %s, %d pull requests", got, len(w.host.Requests()))
	}
	if got := w.repo.Git("rev-list", "--count", "rendered.."+shopHead); got != "1" {
		t.Errorf("the head has %s commits", got)
	}
	w.merge(1)
	if done := w.publish(w.restarted(shopHead)); done.Waiting.State != "" || w.tip(shopHead) != "" {
		t.Errorf("got %+v, and %s is at %s", done.Waiting, shopHead, w.tip(shopHead))
	}
	w.publish(p, change(t, "shop", "shop", configMap("a", "3")))
	if r := w.newest(shopHead); r.Number != 2 || r.State != pullrequest.StateOpen {
		t.Errorf("got %+v", r)
	}
	w.publish(p, change(t, "shop", "shop", configMap("a", "2")))
	if r := w.newest(shopHead); r.State != pullrequest.StateClosed || w.tip(shopHead) != "" || !strings.Contains(w.host.Comments(2)[0], "Nothing is left") {
		t.Errorf("got %+v", r)
	}
	// What Prerig has closed is not declined.
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "3")))
	if r := w.newest(shopHead); r.Number != 3 || r.State != pullrequest.StateOpen {
		t.Errorf("got %+v", r)
	}
}

func TestPullRequestFollowsItsBase(t *testing.T) {
	w := newReviewed(t)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
	w.commitTo("rendered", "other.txt", "x\n")
	moved := w.publish(w.restarted(shopHead))
	if !moved.Changed || moved.Waiting.Request.Number != 1 {
		t.Errorf("got %+v", moved)
	}
	if got := w.repo.Git("rev-parse", shopHead+"~1"); got != w.tip("rendered") {
		t.Errorf("the head is on %s", got)
	}
	if got := w.repo.Git("log", "-1", "--format=%s%n%b", shopHead); !strings.HasPrefix(got, "Render shop: Change the shop\n") ||
		strings.Count(got, "Prerig-Command: prerig render shop") != 1 || strings.Count(got, "Prerig-Source-Revision: main@sha1:abc") != 1 {
		t.Errorf("got %s", got)
	}
	if r := w.newest(shopHead); r.Title != "Render shop: Change the shop" {
		t.Errorf("got %s", r.Title)
	}
}

// Gitea answers so for a repository that nothing was pushed to.
func TestPullRequestInAnEmptyRepository(t *testing.T) {
	w := newReviewed(t)
	status, late := http.StatusNotFound, 2
	w.host.Before = func(string) error {
		if late--; w.tip("rendered") == "" || late >= 0 {
			return pulltest.Failure(status, "not found")
		}
		return nil
	}
	if first := w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1"))); first.Waiting.Request.Number != 1 {
		t.Errorf("got %+v", first.Waiting)
	}
	w.repo.Git("update-ref", "-d", "refs/heads/rendered")
	w.repo.Git("update-ref", "-d", "refs/heads/"+shopHead)
	status = http.StatusForbidden
	if _, err := w.restarted(shopHead).Publish(ctx, []publish.Change{change(t, "shop", "shop", configMap("a", "1"))}); err == nil || w.tip("rendered") != "" {
		t.Errorf("a host that refuses gives %v", err)
	}
}

func TestPullRequestOfSeveral(t *testing.T) {
	const head = "prerig/rendered/all"
	w := newReviewed(t)
	p := w.restarted(head)
	w.publish(p, change(t, "a", "a", configMap("a", "1")), change(t, "b", "b", configMap("b", "1")))
	w.publish(w.restarted(head), change(t, "c", "c", configMap("c", "1")))
	refused := change(t, "b", "b", configMap("b", "2"))
	refused.Gate = func(int, []string) error { return &publish.GateError{Gate: "maxDeleted", Message: "no"} }
	before := w.tip(head)
	result, err := w.restarted(head).Publish(ctx, []publish.Change{refused})
	if err != nil || result.Outcomes[0].Err == nil || w.tip(head) != before {
		t.Errorf("a refused change moved the head: %v", err)
	}
	result, err = w.restarted(head).Publish(ctx, []publish.Change{refused, change(t, "a", "a", configMap("a", "2"))})
	if err != nil || result.Outcomes[0].Err == nil || !result.Waiting.Pipelines["b"] {
		t.Errorf("got %+v, %v", result, err)
	}
	for name, want := range map[string]string{"a/shop/configmap-a.yaml": "2", "b/shop/configmap-b.yaml": "1", "c/shop/configmap-c.yaml": "1"} {
		if got := w.file(head, name); !strings.Contains(got, `k: "`+want+`"`) {
			t.Errorf("%s: got %s", name, got)
		}
	}
	if len(w.host.Requests()) != 1 || w.newest(head).Title != "Render 3 pipelines" {
		t.Errorf("got %+v", w.host.Requests())
	}
	gone := change(t, "c", "c")
	gone.Remove = true
	w.publish(w.restarted(head), gone)
	if got := w.repo.Git("ls-tree", "-r", "--name-only", head); strings.Contains(got, "c/") {
		t.Errorf("got %s", got)
	}
	w.merge(1)
	w.publish(w.restarted(head), gone, change(t, "b", "b"))
	if got := w.repo.Git("diff", "--name-status", "rendered", head); !strings.Contains(got, "D\tb/shop/configmap-b.yaml") {
		t.Errorf("got %s", got)
	}
}

// TestAPullRequestLosesWhatHasMovedElsewhere has a result wait at a path that its pipeline has left on the base meanwhile.
func TestAPullRequestLosesWhatHasMovedElsewhere(t *testing.T) {
	const eu, us = "prerig/rendered/directory/eu", "prerig/rendered/directory/us"
	w := newReviewed(t)
	w.publish(w.restarted(eu), change(t, "a", "eu/a", configMap("a", "1")), change(t, "shop", "eu/shop", configMap("s", "1")))
	w.publish(w.restarted(us), change(t, "shop", "us/shop", configMap("s", "1")))
	w.merge(2)
	w.publish(w.restarted(eu), change(t, "a", "eu/a", configMap("a", "2")))
	if got := w.repo.Git("diff", "--name-status", "rendered", eu, "--", "eu", "us"); got != "A\teu/a/shop/configmap-a.yaml" {
		t.Errorf("got %s", got)
	}
	// What moves by a pull request waits in it whatever else happens to the base.
	w.publish(w.restarted(eu), change(t, "shop", "eu/shop", configMap("s", "1")))
	w.publish(w.restarted("prerig/rendered/pipeline/b"), change(t, "b", "b", configMap("b", "1")))
	w.merge(3)
	w.publish(w.restarted(eu))
	if got := w.repo.Git("diff", "--name-status", "--no-renames", "rendered", eu, "--", "eu", "us"); !strings.Contains(got, "D\tus/shop/shop/configmap-s.yaml") || !strings.Contains(got, "A\teu/shop/shop/") {
		t.Errorf("a move is lost: %s", got)
	}
}

func TestPullRequestClosedByAPerson(t *testing.T) {
	for name, deletes := range map[string]bool{"branch kept": false, "branch deleted": true} {
		t.Run(name, func(t *testing.T) {
			w := newReviewed(t)
			w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
			w.host.ClosedByPerson(1)
			if deletes {
				w.repo.Git("update-ref", "-d", "refs/heads/"+shopHead)
			}
			same := w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
			if same.Changed || same.Waiting.State != v1alpha1.PullRequestClosed || len(w.host.Requests()) != 1 {
				t.Fatalf("got %+v", same.Waiting)
			}
			w.commitTo("rendered", "other.txt", "x\n")
			w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
			if len(w.host.Requests()) != 1 {
				t.Fatal("what was closed was proposed again as the base had moved")
			}
			w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "2")))
			if all := w.host.Requests(); len(all) != 2 || all[0].State != pullrequest.StateClosed || all[1].State != pullrequest.StateOpen {
				t.Fatalf("got %+v", all)
			}
		})
	}
}

func TestPullRequestWithCommitsOfAPerson(t *testing.T) {
	w := newReviewed(t)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
	w.commitTo(shopHead, "shop/note.txt", "mine\n")
	mine := w.tip(shopHead)
	look := w.publish(w.restarted(shopHead))
	if look.Waiting.State != v1alpha1.PullRequestEdited || !strings.Contains(look.Waiting.Message, "Ann <ann@example.com>: By hand") {
		t.Errorf("got %+v", look.Waiting)
	}
	// What is there already is no reason to fail.
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
	if _, err := w.restarted(shopHead).Publish(ctx, []publish.Change{change(t, "shop", "shop", configMap("a", "2"))}); !errors.Is(err, publish.ErrEdited) {
		t.Errorf("got %v", err)
	}
	if w.tip(shopHead) != mine {
		t.Fatal("the commits of a person are gone")
	}
	w.merge(1)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "2")))
	if r := w.newest(shopHead); r.Number != 2 || w.file(shopHead, "shop/note.txt") != "mine" {
		t.Errorf("got %+v", r)
	}
}

func TestPullRequestEditedOnItsPage(t *testing.T) {
	w := newReviewed(t)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
	w.host.Edit(1, func(r *pullrequest.Request) {
		r.Body = strings.ReplaceAll(r.Body+"\n\nLooks good to me.\n- [ ] wait for Ann\n", "\n", "\r\n")
		r.Labels = []string{"urgent"}
	})
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "2"), configMap("b", "2")))
	r := w.newest(shopHead)
	if !strings.HasSuffix(r.Body, "\n\nLooks good to me.\n- [ ] wait for Ann") || !strings.Contains(r.Body, "2 objects") || strings.Join(r.Labels, ",") != "urgent" {
		t.Errorf("got %v\n%s", r.Labels, r.Body)
	}
	w.host.Edit(1, func(r *pullrequest.Request) { r.Title = "Do not merge yet" })
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "3")))
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "4")))
	if r := w.newest(shopHead); r.Title != "Do not merge yet" {
		t.Errorf("got %q", r.Title)
	}
	w.host.Edit(1, func(r *pullrequest.Request) { r.Body = "All mine." })
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "5")))
	if r := w.newest(shopHead); !strings.HasSuffix(r.Body, "\nAll mine.") || !strings.HasPrefix(r.Body, "Prerig has rendered") {
		t.Errorf("got %s", r.Body)
	}
}

// TestLabelsThatACrashHasLost is at a host that opens pull requests without labels: whoever opened one died before they were added.
func TestLabelsThatACrashHasLost(t *testing.T) {
	w := newReviewed(t)
	w.host.WithoutLabels = true
	w.host.After = func(call string) error {
		if call == pulltest.Create {
			return pulltest.Failure(http.StatusBadGateway, "lost")
		}
		return nil
	}
	if _, err := w.restarted(shopHead).Publish(ctx, []publish.Change{change(t, "shop", "shop", configMap("a", "1"))}); err == nil || len(w.newest(shopHead).Labels) > 0 {
		t.Fatalf("got %v, %+v", err, w.newest(shopHead))
	}
	w.host.After = nil
	w.publish(w.restarted(shopHead))
	if r := w.newest(shopHead); strings.Join(r.Labels, ",") != "rendered" {
		t.Errorf("the next look leaves it with the labels %q", r.Labels)
	}
	w.host.Edit(1, func(r *pullrequest.Request) { r.Labels = nil })
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "2")))
	if r := w.newest(shopHead); len(r.Labels) > 0 {
		t.Errorf("what a person has taken off is put on again: %q", r.Labels)
	}
	// Where nothing is lost they are put on once.
	w.merge(1)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "3")))
	if r := w.newest(shopHead); strings.Join(r.Labels, ",") != "rendered" || !strings.Contains(r.Body, "labels=rendered") {
		t.Errorf("got %q: %s", r.Labels, r.Body)
	}
}

// A person writes between a look and what follows from it.
func TestPullRequestEditedMeanwhile(t *testing.T) {
	w := newReviewed(t)
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "1")))
	wrote := false
	w.host.Before = func(call string) error {
		if call == pulltest.Update && !wrote {
			wrote = true
			w.host.Edit(1, func(r *pullrequest.Request) { r.Title, r.Body = "Do not merge yet", r.Body+"\n\nWait for Ann." })
		}
		return nil
	}
	w.publish(w.restarted(shopHead), change(t, "shop", "shop", configMap("a", "2"), configMap("b", "2")))
	if r := w.newest(shopHead); r.Title != "Do not merge yet" || !strings.HasSuffix(r.Body, "\n\nWait for Ann.") || !strings.Contains(r.Body, "2 objects") {
		t.Errorf("got %s\n%s", r.Title, r.Body)
	}
}

func TestPullRequestBodyFits(t *testing.T) {
	w := newReviewed(t)
	w.host.Limit = 700
	var changes []publish.Change
	for _, name := range []string{"alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"} {
		changes = append(changes, change(t, name, name, configMap("a", "1")))
	}
	w.publish(w.restarted("prerig/rendered/all"), changes...)
	w.host.Edit(1, func(r *pullrequest.Request) { r.Body += "\n\n" + strings.Repeat("é", 100) })
	w.publish(w.restarted("prerig/rendered/all"), change(t, "alpha", "alpha", configMap("a", "2")))
	if r := w.newest("prerig/rendered/all"); len(r.Body) > 700 || !strings.HasSuffix(r.Body, strings.Repeat("é", 100)) {
		t.Errorf("%d bytes: %s", len(r.Body), r.Body)
	}
}

func writeFile(t *testing.T, dir, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
