// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// previews is a Gitea with a daemon that previews pull requests to shop/config.
type previews struct {
	*reviews
	bob string
}

const previewContext = "prerig/preview/team/main"

func newPreviews(t *testing.T, want string) *previews {
	p := &previews{reviews: newReviews(t, 2)}
	g := p.gitea
	g.URL = p.proxy.URL // Gitea tells others the address at which it is asked
	g.User("bob")
	p.bob = g.Token("bob", "all")
	g.Must(g.Admin, http.MethodPut, "/repos/shop/config/collaborators/bob", map[string]any{"permission": "read"}, nil)
	g.Must(g.Admin, http.MethodPost, "/repos/shop/config/hooks", map[string]any{
		"type": "gitea", "active": true, "events": []string{"pull_request", "pull_request_sync"},
		"config": map[string]any{"url": "http://" + p.address + "/hook/gitea", "content_type": "json", "secret": hookKey},
	}, nil)
	for i := range 2 {
		p.write(filepath.Join(p.c.Pipelines, fmt.Sprintf("app%d.yaml", i)), fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: app%d, namespace: team}
spec:
  source: {git: {url: "%s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {path: apps/app%[1]d}
  publish: [{git: {url: "%[2]s/shop/rendered.git", branch: main, path: app%[1]d, secretRef: {name: gitea}}}]
  preview: {provider: Gitea%[3]s}
  interval: 10h
`, i, p.proxy.URL, want))
	}
	p.c.Limits.Timeout = 20e9
	p.serveReviews()
	p.eventually("waiting for both to be published", func() string {
		if p.image("main", 0) != "0" || p.image("main", 1) != "0" {
			return p.describe()
		}
		return ""
	})
	return p
}

// propose pushes files to a branch of a work tree and opens a pull request as a user, from head, which may be OWNER:BRANCH.
func (p *previews) propose(work *testbed.Repository, token, head string, files map[string]string) int64 {
	p.t.Helper()
	_, branch, isFork := strings.Cut(head, ":")
	if !isFork {
		branch = head
	}
	for _, args := range [][]string{{"fetch", "-q", "origin", "main"}, {"checkout", "-q", "-B", branch, "FETCH_HEAD"}} {
		p.inWork(work, args...)
	}
	p.more(work, "propose", files)
	var out giteaPull
	p.gitea.Must(token, http.MethodPost, "/repos/shop/config/pulls", map[string]any{"title": "t", "head": head, "base": "main"}, &out)
	return out.Number
}

func (p *previews) inWork(work *testbed.Repository, args ...string) string {
	p.t.Helper()
	out, err := work.InWork(context.Background(), args...)
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

func (p *previews) more(work *testbed.Repository, subject string, files map[string]string) string {
	p.t.Helper()
	commit, err := work.Commit(context.Background(), subject, files)
	if err != nil {
		p.t.Fatal(err)
	}
	return commit
}

// said is a comment.
type said struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

func (p *previews) said(number int64) (out []said) {
	p.t.Helper()
	p.gitea.Must(p.ann, http.MethodGet, fmt.Sprintf("/repos/shop/config/issues/%d/comments", number), nil, &out)
	return out
}

// bySelf are the comments of the daemon.
func (p *previews) bySelf(number int64) (out []said) {
	p.t.Helper()
	for _, one := range p.said(number) {
		if one.User.Login == "prerig" {
			out = append(out, one)
		}
	}
	return out
}

// statusOf is the state and the description of the newest status of a commit that previews set.
func (p *previews) statusOf(commit string) (state, text string) {
	p.t.Helper()
	var all struct {
		Statuses []struct {
			State       string `json:"status"`
			Context     string `json:"context"`
			Description string `json:"description"`
		} `json:"statuses"`
	}
	p.gitea.Must(p.ann, http.MethodGet, "/repos/shop/config/commits/"+commit+"/status", nil, &all)
	for _, one := range all.Statuses {
		if one.Context == previewContext {
			return one.State, one.Description
		}
	}
	return "", ""
}

// ends waits until the status of a commit is no longer pending, and returns it.
func (p *previews) ends(commit string) (state, text string) {
	p.t.Helper()
	p.eventually("waiting for a preview of "+commit, func() string {
		if state, text = p.statusOf(commit); state == "" || state == "pending" {
			return "the status is " + state + " " + text
		}
		return ""
	})
	return state, text
}

func (p *previews) pullState(number int64, state string) {
	p.t.Helper()
	p.gitea.Must(p.ann, http.MethodPatch, fmt.Sprintf("/repos/shop/config/pulls/%d", number), map[string]any{"state": state}, nil)
}

// publishes is what is published now.
func (p *previews) publishes() string { return p.inRendered("for-each-ref") }

// TestGiteaPreview is what somebody sees who proposes a change, adds to it, closes it and opens it again.
func TestGiteaPreview(t *testing.T) {
	p := newPreviews(t, "")
	before := p.publishes()
	number := p.propose(p.source, p.ann, "change", map[string]string{applicationFile(0): deployment("app0", "image:7")})
	head := p.inWork(p.source, "rev-parse", "HEAD")
	if state, text := p.ends(head); state != "success" || text != "1 changed in 1 of 2 pipelines" {
		t.Errorf("the status is %s %q", state, text)
	}
	first := p.bySelf(number)
	if len(first) != 1 || !strings.Contains(first[0].Body, "image:7") || !strings.Contains(first[0].Body, head[:12]) || strings.Contains(first[0].Body, "fork") {
		t.Fatalf("it says %+v", first)
	}
	// A person quotes all of it.
	p.gitea.Must(p.ann, http.MethodPost, fmt.Sprintf("/repos/shop/config/issues/%d/comments", number), map[string]any{"body": first[0].Body}, nil)
	head = p.more(p.source, "more", map[string]string{applicationFile(0): deployment("app0", "image:8"), applicationFile(1): deployment("app1", "image:9")})
	if state, text := p.ends(head); state != "success" || text != "2 changed in 2 of 2 pipelines" {
		t.Errorf("the status is %s %q", state, text)
	}
	all := p.said(number)
	if len(all) != 2 || all[0].ID != first[0].ID || !strings.Contains(all[0].Body, "image:8") || all[1].Body != first[0].Body {
		t.Fatalf("it says %+v", all)
	}
	// What cannot be rendered.
	head = p.more(p.source, "broken", map[string]string{applicationFile(1): "kind: [\n"})
	if state, text := p.ends(head); state != "failure" || !strings.Contains(text, "team/app1") {
		t.Errorf("the status is %s %q", state, text)
	}
	// Back to what is there.
	head = p.more(p.source, "back", map[string]string{applicationFile(0): deployment("app0", "image:0"), applicationFile(1): deployment("app1", "image:0")})
	if state, text := p.ends(head); state != "success" || text != "nothing would change" {
		t.Errorf("the status is %s %q", state, text)
	}
	if all = p.bySelf(number); len(all) != 1 || !strings.Contains(all[0].Body, "Nothing would change.") {
		t.Errorf("it says %+v", all)
	}
	if now := p.publishes(); now != before {
		t.Errorf("published is\n%s\nand was\n%s", now, before)
	}
	p.endsAndBeginsAgain(number, first[0].ID)
	p.isEdited(number, first[0].ID)
}

// endsAndBeginsAgain closes the pull request and opens it again, also while there is no daemon.
func (p *previews) endsAndBeginsAgain(number, id int64) {
	p.t.Helper()
	p.pullState(number, "closed")
	p.eventually("waiting for the last word", func() string {
		if all := p.bySelf(number); len(all) != 1 || !strings.HasPrefix(all[0].Body, "_This pull request is closed.") {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	})
	p.daemon.kill()
	p.daemon.awaitUp(p.patience)
	p.pullState(number, "open")
	p.eventually("waiting for the comment to be kept up to date again", func() string {
		if all := p.bySelf(number); len(all) != 1 || all[0].ID != id || !strings.HasPrefix(all[0].Body, "**Prerig** has previewed") {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	})
}

// isEdited has a person change the comment, which is theirs from then on.
func (p *previews) isEdited(number, id int64) {
	p.t.Helper()
	const text = "What Prerig said is wrong."
	p.gitea.Must(p.gitea.Admin, http.MethodPatch, fmt.Sprintf("/repos/shop/config/issues/comments/%d", id), map[string]any{"body": text}, nil)
	head := p.more(p.source, "again", map[string]string{applicationFile(0): deployment("app0", "image:10")})
	p.ends(head)
	all := p.bySelf(number)
	if len(all) != 2 || all[0].Body != text || !strings.Contains(all[1].Body, "image:10") {
		p.t.Errorf("it says %+v", all)
	}
}

// TestGiteaPreviewOfForks has somebody without any right propose what reads secrets, publishes, and does not end.
func TestGiteaPreviewOfForks(t *testing.T) {
	p := newPreviews(t, ", timeout: 1m, most: 2")
	const canary = "c4nary-of-the-preview"
	p.write(filepath.Join(p.c.Secrets, "team", "canary", "token"), canary)
	p.write(filepath.Join(p.c.Policies, "canary.txt"), canary)
	// A pipeline that needs a secret, and one with a chart.
	p.more(p.source, "chart", map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: endless\nversion: 1.0.0\n", "chart/templates/a.yaml": deployment("chart", "image:1"),
	})
	for name, repositories := range map[string]string{
		"private": `[{url: "https://charts.example.com", secretRef: {name: canary}}]`, "chart": "[]",
	} {
		p.write(filepath.Join(p.c.Pipelines, name+".yaml"), fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: %s, namespace: team}
spec:
  source: {git: {url: "%s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build: {helm: {chart: chart, namespace: shop, kubeVersion: 1.33.4}, chartRepositories: %s}
  preview: {provider: Gitea, timeout: 1m, most: 2}
  interval: 10h
`, name, p.proxy.URL, repositories))
	}
	p.eventually("waiting for both to be known", func() string {
		if all := p.pipelines(); len(all) != 4 {
			return fmt.Sprint(len(all))
		}
		return ""
	})
	before := p.publishes()
	g := p.gitea
	g.Must(p.bob, http.MethodPost, "/repos/shop/config/forks", map[string]any{"name": "config"}, nil)
	fork := &testbed.Repository{Work: filepath.Join(t.TempDir(), "work")}
	remote := strings.Replace(p.proxy.URL, "://", "://bob:"+p.bob+"@", 1) + "/bob/config.git"
	p.inWork(&testbed.Repository{Work: t.TempDir()}, "clone", "-q", remote, fork.Work)

	endless := strings.Repeat("{{- range until 100000000 }}", 3) + "x" + strings.Repeat("{{- end }}", 3)
	number := p.propose(fork, p.bob, "bob:evil", map[string]string{
		"chart/templates/b.yaml": endless,
		applicationFile(1):       deployment("app1", "image:6"),
		"apps/app0/pipeline.yaml": fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: evil, namespace: team}\n"+
			"spec:\n  source: {git: {url: %q, secretRef: {name: canary}}}\n  publish: [{git: {url: %q, branch: evil, path: evil, secretRef: {name: gitea}}}]\n",
			p.proxy.URL+"/shop/config.git", p.proxy.URL+"/shop/rendered.git"),
	})
	head := p.inWork(fork, "rev-parse", "HEAD")
	state, text := p.ends(head)
	if state != "failure" {
		t.Errorf("the status is %s %q", state, text)
	}
	p.gives(number, canary, before)
	if all := p.bySelf(number); len(all) != 1 || !strings.Contains(all[0].Body, "from a fork") || !strings.Contains(all[0].Body, "image:6") ||
		!strings.Contains(all[0].Body, "needs a secret") {
		t.Errorf("it says %+v", all)
	}
	// Links to the files of the daemon, and to those that a kustomization may name.
	for _, to := range []string{filepath.Join(p.c.Secrets, "team", "canary", "token"), filepath.Join(p.c.Policies, "canary.txt"), "../../../../../../etc/passwd"} {
		for _, name := range []string{"chart/templates/b.yaml", "apps/app0"} {
			if err := os.RemoveAll(filepath.Join(fork.Work, name)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(filepath.Join(fork.Work, "apps", "app0"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, filepath.Join(fork.Work, "apps", "app0", "link.yaml")); err != nil {
			t.Fatal(err)
		}
		head = p.more(fork, "link", map[string]string{"apps/app0/kustomization.yaml": "resources: [link.yaml]\nconfigMapGenerator: [{name: a, files: [link.yaml]}]\n"})
		if state, text := p.ends(head); state != "failure" {
			t.Errorf("a link to %s: the status is %s %q", to, state, text)
		}
		p.gives(number, canary, before)
	}
	// The daemon still does its work.
	p.inWork(p.source, "pull", "-q", "--ff-only", "origin", "main")
	p.setImage(0, 3)
	p.eventually("waiting for image:3", func() string {
		if got := p.image("main", 0); got != "3" {
			return "it is " + got
		}
		return ""
	})
	p.pullState(number, "closed")
	p.eventually("waiting for the last word", func() string {
		if all := p.bySelf(number); len(all) != 1 || !strings.HasPrefix(all[0].Body, "_This pull request is closed.") {
			return fmt.Sprintf("%+v", all)
		}
		return ""
	})
}

// gives checks that somebody who has no right gets nothing.
func (p *previews) gives(number int64, canary, before string) {
	p.t.Helper()
	for _, one := range p.said(number) {
		if strings.Contains(one.Body, canary) || strings.Contains(one.Body, "root:") {
			p.t.Errorf("it shows %s", one.Body)
		}
	}
	if now := p.publishes(); now != before {
		p.t.Errorf("published is\n%s\nand was\n%s", now, before)
	}
	for _, one := range p.pipelines() {
		if strings.Contains(one.Name, "evil") {
			p.t.Errorf("there is a pipeline %s", one.Name)
		}
	}
}
