// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/cli"
	"github.com/prerig/prerig/pipeline/internal/testbed"
)

const app0Head = "prerig/main/pipeline/team_app0"

// waitingOf is what the daemon says of the pull request of an application; nil where nothing waits.
func (r *reviews) waitingOf(i int) *v1alpha1.PullRequestStatus {
	r.t.Helper()
	for _, p := range r.pipelines(fmt.Sprintf("team/app%d", i)) {
		for _, one := range p.Status.Published {
			return one.PullRequest
		}
	}
	return nil
}

// proposes waits for an open pull request from a head that shows an image of app0, with its text, and returns it.
func (r *reviews) proposes(image int) (found giteaPull) {
	r.t.Helper()
	want := fmt.Sprint(image)
	r.eventually("waiting for a pull request with image:"+want, func() string {
		open := r.pulls("open")
		if len(open) != 1 {
			return fmt.Sprintf("%d are open; %s", len(open), r.describe())
		}
		if found = open[0]; r.image(found.Head.SHA, 0) != want || !strings.Contains(found.Body, "image:"+want) {
			return fmt.Sprintf("%d shows %s: %s", found.Number, r.image(found.Head.SHA, 0), found.Body)
		}
		if w := r.waitingOf(0); w == nil || w.Number != found.Number || w.State != v1alpha1.PullRequestOpen {
			return fmt.Sprintf("the status says %+v", w)
		}
		return ""
	})
	return found
}

// merge merges a pull request as a person does.
func (r *reviews) merge(number int64, how string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("merging %d", number), func() string {
		if status := r.gitea.API(r.ann, http.MethodPost, pullPath(number)+"/merge", map[string]any{"Do": how}, nil); status >= 400 {
			return fmt.Sprint(status)
		}
		return ""
	})
}

// isPublished waits until the status says so and the head is gone.
func (r *reviews) isPublished(i int, head string) {
	r.t.Helper()
	r.eventually("waiting for "+head+" to be published", func() string {
		if w := r.waitingOf(i); w != nil {
			return fmt.Sprintf("the status says %+v", w)
		}
		if tip := r.inRendered("rev-parse", "--verify", "-q", "refs/heads/"+head); tip != "" {
			return "the head is at " + tip
		}
		return ""
	})
}

// says is what prerig daemon status says of app0.
func (r *reviews) says() string {
	r.t.Helper()
	var out, problems bytes.Buffer
	if code := cli.Main(context.Background(), []string{"daemon", "status", "--state", r.c.State, "team/app0"}, cli.Streams{Out: &out, Err: &problems}, "test"); code != cli.ExitOK {
		r.t.Errorf("prerig daemon status ended with %d: %s", code, problems.String())
	}
	return out.String()
}

func (r *reviews) comments(number int64) (out []string) {
	r.t.Helper()
	var all []struct {
		Body string `json:"body"`
	}
	r.gitea.Must(r.ann, http.MethodGet, fmt.Sprintf("/repos/shop/rendered/issues/%d/comments", number), nil, &all)
	for _, one := range all {
		out = append(out, one.Body)
	}
	return out
}

// TestGiteaReview is what somebody sees who begins with pull requests. The interval is so long that all of it is by Gitea's webhooks.
func TestGiteaReview(t *testing.T) {
	r := newReviews(t, 1)
	r.pipeline(0, "eu", "", "  interval: 10h\n  drift: Repair\n")
	r.serveReviews()
	first := r.proposes(0)
	if first.Number != 1 || first.Head.Label != app0Head || !first.has("rendered") || first.Base.Ref != "main" {
		t.Errorf("got %+v", first)
	}
	if said := r.says(); !strings.Contains(said, "proposed") || !strings.Contains(said, "pull request 1 waits for a merge") {
		t.Errorf("prerig daemon status says %s", said)
	}
	r.setImage(0, 1)
	if second := r.proposes(1); second.Number != first.Number {
		t.Errorf("got %+v", second)
	}
	r.merge(1, "merge")
	r.isPublished(0, app0Head)
	if said := r.says(); strings.Contains(said, "proposed") || !strings.Contains(said, "published") || r.image("main", 0) != "1" {
		t.Errorf("prerig daemon status says %s; main shows %s", said, r.image("main", 0))
	}
	published := r.inRendered("rev-parse", "main:app0")

	// A change that is taken back in the source before anybody has merged it.
	r.setImage(0, 2)
	withdrawn := r.proposes(2)
	r.setImage(0, 1)
	r.eventually("waiting for it to be withdrawn", func() string {
		if open := r.pulls("open"); len(open) > 0 || r.waitingOf(0) != nil {
			return fmt.Sprintf("%d are open, the status says %+v", len(open), r.waitingOf(0))
		}
		return ""
	})
	if said := r.comments(withdrawn.Number); len(said) != 1 || !strings.Contains(said[0], "Nothing is left to review") {
		t.Errorf("its comments are %q", said)
	}
	r.isPublished(0, app0Head)

	// Back to what was, after a merge: by the source.
	r.setImage(0, 3)
	r.merge(r.proposes(3).Number, "squash")
	r.isPublished(0, app0Head)
	r.setImage(0, 1)
	r.merge(r.proposes(1).Number, "rebase")
	r.isPublished(0, app0Head)
	if now := r.inRendered("rev-parse", "main:app0"); now != published || now == "" {
		t.Errorf("after the rollback the directory is %s, and was %s", now, published)
	}
	r.revertsOnTheBranch()
	r.closesFor(r.proposes(1))
}

// revertsOnTheBranch takes the newest merge back on the branch itself. That is drift, which is proposed again.
func (r *reviews) revertsOnTheBranch() {
	r.t.Helper()
	work := &testbed.Repository{Work: filepath.Join(r.t.TempDir(), "work")}
	clone := &testbed.Repository{Work: r.t.TempDir()}
	if _, err := clone.InWork(context.Background(), "clone", "-q", r.remote("rendered"), work.Work); err != nil {
		r.t.Fatal(err)
	}
	for _, args := range [][]string{{"revert", "--no-edit", "HEAD"}, {"push", "-q", "origin", "HEAD"}} {
		if _, err := work.InWork(context.Background(), args...); err != nil {
			r.t.Fatal(err)
		}
	}
	if got := r.image("main", 0); got != "3" {
		r.t.Fatalf("main shows %s after the revert", got)
	}
}

// closesFor has a person close what waits: it stays closed, over a crash, a merge of others and a request, until the source gives
// something else.
func (r *reviews) closesFor(open giteaPull) {
	r.t.Helper()
	r.gitea.Must(r.ann, http.MethodPatch, pullPath(open.Number), map[string]any{"state": "closed"}, nil)
	declined := func() string {
		if w := r.waitingOf(0); w == nil || w.State != v1alpha1.PullRequestClosed || w.Number != open.Number {
			return fmt.Sprintf("the status says %+v", w)
		}
		return ""
	}
	r.size.pipelines = 1
	r.eventually("waiting for it to be known as closed", declined)
	r.gitea.Write(r.ann, "shop/rendered", "main", "", "beside.txt")
	r.daemon.kill()
	r.daemon.awaitUp(r.patience)
	token := r.reconcile()
	r.eventually("waiting for the request", func() string {
		if p := r.pipelines("team/app0")[0]; p.Status.LastHandledReconcileAt != token {
			return "it was not handled"
		}
		return declined()
	})
	if open := r.pulls("open"); len(open) > 0 || r.image("main", 0) != "3" {
		r.t.Errorf("it was proposed again: %+v", open)
	}
	r.setImage(0, 4)
	if next := r.proposes(4); next.Number == open.Number {
		r.t.Error("it was opened again")
	}
}

// TestGiteaReviewTakesAsLong compares how long it takes from a push to a pull request, and to a commit on a branch.
func TestGiteaReviewTakesAsLong(t *testing.T) {
	r := newReviews(t, 1)
	r.pipeline(0, "eu", "", "  interval: 10h\n")
	r.write(filepath.Join(r.c.Pipelines, "direct.yaml"), fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: direct, namespace: team}
spec:
  source: {git: {url: "%s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {path: apps/app0}
  publish: [{git: {url: "%[1]s/shop/direct.git", branch: main, path: app0, secretRef: {name: gitea}}}]
  interval: 10h
`, r.proxy.URL))
	r.serveReviews()
	var direct, reviewed []time.Duration
	const rounds = 9
	for n := 1; n <= rounds+1; n++ {
		r.merge(r.proposes(n-1).Number, "merge")
		r.isPublished(0, app0Head)
		r.proxy.forget()
		r.setImage(0, n)
		const opens = "POST /api/v1/repos/shop/rendered/pulls"
		r.eventually("waiting for both", func() string {
			if r.proxy.first(opens).IsZero() || r.proxy.first("POST /shop/direct.git/git-receive-pack").IsZero() {
				return "one is missing"
			}
			return ""
		})
		if n == 1 {
			continue // to warm up
		}
		pushed := r.proxy.first("POST /shop/config.git/git-receive-pack")
		direct = append(direct, r.proxy.first("POST /shop/direct.git/git-receive-pack").Sub(pushed))
		reviewed = append(reviewed, r.proxy.first(opens).Sub(pushed))
	}
	slices.Sort(direct)
	slices.Sort(reviewed)
	a, b := direct[rounds/2], reviewed[rounds/2]
	t.Logf("from the push, median of %d: to a commit on the branch %s, to a pull request %s, which is %.2f times as long (%v; %v)",
		rounds, a.Round(time.Millisecond), b.Round(time.Millisecond), float64(b)/float64(a), direct, reviewed)
}
