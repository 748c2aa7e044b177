// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/internal/testbed"
)

// TestGiteaPreviewOfAGit has somebody propose who may only read, by a push to refs/for/: Gitea takes it for a pull request of the
// repository itself, and neither a fork nor a branch is needed. It gets what a fork gets.
func TestGiteaPreviewOfAGit(t *testing.T) {
	p := newPreviews(t, ", timeout: 1m")
	canary := strings.Repeat("c4", 32)
	p.write(filepath.Join(p.c.Secrets, "team", "canary", "password"), canary)
	p.more(p.source, "chart", map[string]string{
		"chart/Chart.yaml": "apiVersion: v2\nname: private\nversion: 1.0.0\n", "chart/templates/a.yaml": deployment("chart", "image:1"),
	})
	p.write(filepath.Join(p.c.Pipelines, "private.yaml"), fmt.Sprintf(`apiVersion: prerig.dev/v1alpha1
kind: RenderPipeline
metadata: {name: private, namespace: team}
spec:
  source: {git: {url: "%s/shop/config.git", ref: {branch: main}, secretRef: {name: gitea}}}
  build:
    helm: {chart: chart, namespace: shop, kubeVersion: 1.33.4}
    chartRepositories: [{url: "https://charts.example.com", secretRef: {name: canary}}]
  preview: {provider: Gitea, timeout: 1m}
  interval: 10h
`, p.proxy.URL))
	p.eventually("waiting for all to be known", func() string {
		if all := p.pipelines(); len(all) != 3 {
			return fmt.Sprint(len(all))
		}
		return ""
	})
	before := p.publishes()
	// The same of somebody who may write is rendered with the secret.
	files := func(image int) map[string]string {
		return map[string]string{"chart/templates/b.yaml": deployment("more", fmt.Sprintf("image:%d", image)), applicationFile(0): deployment("app0", fmt.Sprintf("image:%d", image))}
	}
	own := p.propose(p.source, p.ann, "own", files(5))
	if state, text := p.ends(p.inWork(p.source, "rev-parse", "HEAD")); state != "success" {
		t.Errorf("that of the repository itself: the status is %s %q", state, text)
	}
	if all := p.bySelf(own); len(all) != 1 || strings.Contains(all[0].Body, "from a fork") || strings.Contains(all[0].Body, "needs a secret") {
		t.Errorf("of the repository itself it says %+v", all)
	}

	work := &testbed.Repository{Work: filepath.Join(t.TempDir(), "work")}
	remote := strings.Replace(p.proxy.URL, "://", "://bob:"+p.bob+"@", 1) + "/shop/config.git"
	p.inWork(&testbed.Repository{Work: t.TempDir()}, "clone", "-q", "-b", "main", remote, work.Work)
	if _, err := work.InWork(t.Context(), "push", "-q", "origin", "HEAD:refs/heads/by-bob"); err == nil {
		t.Fatal("who may only read can push a branch")
	}
	for i, topic := range []string{"evil", "own"} { // the second is the name of a branch
		p.inWork(work, "checkout", "-q", "-B", "work", "origin/main")
		p.writeAndCommit(work, files(6+i))
		head := p.inWork(work, "rev-parse", "HEAD")
		p.inWork(work, "push", "-q", "origin", "HEAD:refs/for/main", "-o", "topic="+topic, "-o", "title=of bob")
		number := p.newestPull()
		if number == own {
			t.Fatalf("there is no pull request of the topic %s", topic)
		}
		state, text := p.ends(head)
		if state != "failure" {
			t.Errorf("the topic %s: the status is %s %q", topic, state, text)
		}
		p.gives(number, canary, before)
		if all := p.bySelf(number); len(all) != 1 || !strings.Contains(all[0].Body, "from a fork") || !strings.Contains(all[0].Body, "needs a secret") ||
			!strings.Contains(all[0].Body, fmt.Sprintf("image:%d", 6+i)) {
			t.Errorf("the topic %s: it says %+v", topic, all)
		}
	}
}

// writeAndCommit commits files to a work tree without pushing them.
func (p *previews) writeAndCommit(work *testbed.Repository, files map[string]string) {
	p.t.Helper()
	for name, text := range files {
		p.write(filepath.Join(work.Work, filepath.FromSlash(name)), text)
	}
	p.inWork(work, "add", "-A")
	p.inWork(work, "-c", "user.name=Bob", "-c", "user.email=bob@example.com", "commit", "-q", "-m", "Change all")
}

// newestPull is the number of the newest pull request to the source.
func (p *previews) newestPull() int64 {
	p.t.Helper()
	var all []giteaPull
	p.gitea.Must(p.ann, http.MethodGet, "/repos/shop/config/pulls?state=all&limit=50", nil, &all)
	newest := int64(0)
	for _, one := range all {
		newest = max(newest, one.Number)
	}
	return newest
}
