// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/git"
)

var ctx = context.Background()

func configMap(name, value string) render.Object {
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  namespace: shop\ndata:\n  k: %q\n", name, value)
	return render.Object{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: name, YAML: []byte(text)}
}

func change(t *testing.T, pipeline, path string, objects ...render.Object) publish.Change {
	t.Helper()
	files, err := publish.Files(objects, v1alpha1.LayoutObjects, v1alpha1.StyleCanonical)
	if err != nil {
		t.Fatal(err)
	}
	return publish.Change{
		Pipeline: pipeline, Path: path, Files: files, Objects: objects, PolicyDigest: "sha256:p", Tool: "v0.1.0", Command: "prerig render " + pipeline,
		Origin: publish.Origin{
			URL: "https://git.example.com/config.git", Revision: "main@sha1:abc", Digest: "abc", Date: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Author: "Ann", AuthorEmail: "ann@example.com", Subject: "Change the shop", Body: "Because.",
		},
	}
}

func branch(t *testing.T, r *gittest.Repository, name string) *publish.Branch {
	t.Helper()
	remote, err := git.NewRemote(r.URL, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	mirror, err := git.NewStore(t.TempDir(), git.DefaultLimits()).Mirror(r.URL)
	if err != nil {
		t.Fatal(err)
	}
	return &publish.Branch{Mirror: mirror, Remote: remote, Name: name, Author: "Prerig", Email: "prerig@prerig.dev"}
}

func run(t *testing.T, b *publish.Branch, changes ...publish.Change) publish.Result {
	t.Helper()
	result, err := b.Publish(ctx, changes)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestPublish(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	first := run(t, b, change(t, "apps/shop", "shop", configMap("a", "1"), configMap("b", "1")))
	if !first.Changed || first.Commit.String() != repository.Git("rev-parse", "rendered") {
		t.Errorf("got %+v", first)
	}
	want := ".prerig/README.md\n.prerig/pipelines/apps__shop.record\nshop/shop/configmap-a.yaml\nshop/shop/configmap-b.yaml"
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered"); got != want {
		t.Errorf("got %s", got)
	}
	message := `Render shop: Change the shop

Prerig-Pipeline: apps/shop
Prerig-Source: https://git.example.com/config.git
Prerig-Source-Revision: main@sha1:abc
Prerig-Policy: sha256:p
Prerig-Version: v0.1.0
Prerig-Command: prerig render apps/shop`
	if got := repository.Git("log", "-1", "--format=%B", "rendered"); got != message {
		t.Errorf("got %s", got)
	}
	if got := repository.Git("log", "-1", "--format=%aI %cI %an", "rendered"); got != "2026-01-02T03:04:05Z 2026-01-02T03:04:05Z Prerig" &&
		got != "2026-01-02T03:04:05+00:00 2026-01-02T03:04:05+00:00 Prerig" {
		t.Errorf("got %s", got)
	}
	// The same again is no commit.
	if again := run(t, b, change(t, "apps/shop", "shop", configMap("a", "1"), configMap("b", "1"))); again.Changed || again.Commit != first.Commit {
		t.Errorf("got %+v", again)
	}
	// A second pipeline beside it, and then the first changes, loses and gains a file.
	run(t, b, change(t, "apps/other", "other", configMap("x", "1")))
	result := run(t, b, change(t, "apps/shop", "shop", configMap("a", "2"), configMap("c", "1")))
	if got := fmt.Sprint(result.Outcomes[0]); got != "{apps/shop [shop/shop/configmap-c.yaml] [shop/shop/configmap-a.yaml] [shop/shop/configmap-b.yaml] false  <nil>}" {
		t.Errorf("got %s", got)
	}
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", "shop", "other"); got != "other/shop/configmap-x.yaml\nshop/shop/configmap-a.yaml\nshop/shop/configmap-c.yaml" {
		t.Errorf("got %s", got)
	}
	remove := change(t, "apps/shop", "shop")
	remove.Remove = true
	run(t, b, remove)
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered"); got != ".prerig/README.md\n.prerig/pipelines/apps__other.record\nother/shop/configmap-x.yaml" {
		t.Errorf("got %s", got)
	}
	repository.Git("fsck", "--strict")
}

func TestOthersAreLeftAlone(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("by hand", map[string]string{"shop/CODEOWNERS": "@ann", "shop/shop/configmap-a.yaml": "mine"})
	b := branch(t, repository, "main")
	c := change(t, "shop", "shop", configMap("a", "1"))
	if _, err := b.Publish(ctx, []publish.Change{c}); !errors.Is(err, publish.ErrUnmanaged) {
		t.Errorf("got %v", err)
	}
	b.Adopt = true
	if result := run(t, b, c); !errors.Is(result.Outcomes[0].Err, publish.ErrNotOwned) || result.Changed {
		t.Errorf("got %+v", result)
	}
	c.Adopt = true
	run(t, b, c)
	b.Adopt, c.Adopt = false, false
	run(t, b, change(t, "shop", "shop"))
	if got := repository.Git("ls-tree", "-r", "--name-only", "main", "shop"); got != "shop/CODEOWNERS" {
		t.Errorf("got %s", got)
	}
	// A file that somebody added where the next render wants to write.
	repository.InWork("pull", "-q", "origin", "main")
	repository.Commit("by hand", map[string]string{"shop/shop/configmap-z.yaml": "mine"})
	result := run(t, b, change(t, "shop", "shop", configMap("z", "1")), change(t, "other", "other", configMap("o", "1")))
	if !errors.Is(result.Outcomes[0].Err, publish.ErrNotOwned) || result.Outcomes[1].Err != nil || !result.Changed {
		t.Errorf("got %+v", result)
	}
	if got := repository.Git("show", "main:shop/shop/configmap-z.yaml"); got != "mine" {
		t.Errorf("got %s", got)
	}
	// Two pipelines that want the same file: the first keeps it.
	result = run(t, b, change(t, "p1", "same", configMap("z", "1")), change(t, "p2", "same", configMap("z", "2")))
	if result.Outcomes[0].Err != nil || result.Outcomes[1].Err == nil || !strings.Contains(result.Outcomes[1].Err.Error(), "p1 writes it too") {
		t.Errorf("got %+v", result)
	}
}

func TestMovedBranch(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "zero", "zero", configMap("a", "1")))
	repository.InWork("pull", "-q", "origin", "rendered")
	repository.InWork("checkout", "-q", "-B", "rendered")
	var once sync.Once
	// Somebody pushes after we have looked and before our push arrives.
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") {
			once.Do(func() { repository.Commit("by hand", map[string]string{"notes.txt": "hello"}) })
		}
		return false
	})
	result := run(t, b, change(t, "shop", "shop", configMap("a", "1")))
	if got := repository.Git("log", "--format=%s", "rendered"); !result.Changed || got != "Render shop: Change the shop\nby hand\nRender zero: Change the shop" {
		t.Errorf("got %s", got)
	}
	if got := repository.Git("show", "rendered:notes.txt"); got != "hello" {
		t.Errorf("got %s", got)
	}
}

// A push whose answer is lost has happened all the same: it is found, counted as ours, and nothing is committed twice.
func TestLostAnswer(t *testing.T) {
	server := gittest.New(t)
	repository := server.Repository(t, "config")
	b := branch(t, repository, "rendered")
	lost := 0
	server.Lose = func(r *http.Request) bool {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "git-receive-pack") && lost == 0 {
			lost++
			return true
		}
		return false
	}
	c := change(t, "shop", "shop", configMap("a", "1"))
	result := run(t, b, c)
	if lost != 1 || !result.Changed || len(result.Outcomes[0].Added) != 1 || result.Commit.String() != repository.Git("rev-parse", "rendered") {
		t.Errorf("got %+v", result)
	}
	if again := run(t, b, c); again.Changed || repository.Git("rev-list", "--count", "rendered") != "1" {
		t.Errorf("got %+v", again)
	}
}

// A directory that somebody put where the pipeline had a file is not the pipeline's.
func TestDirectoryInPlaceOfAFile(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	run(t, b, change(t, "shop", "shop", configMap("a", "1"), configMap("b", "1")))
	repository.InWork("pull", "-q", "origin", "rendered")
	repository.InWork("checkout", "-q", "-B", "rendered")
	repository.Commit("by hand", map[string]string{"shop/shop/configmap-a.yaml": ""})
	repository.Commit("by hand", map[string]string{"shop/shop/configmap-a.yaml/README": "mine"})
	result := run(t, b, change(t, "shop", "shop", configMap("a", "2")), change(t, "other", "other", configMap("a", "2")))
	if !errors.Is(result.Outcomes[0].Err, publish.ErrNotOwned) || !result.Changed || result.Outcomes[1].Err != nil {
		t.Errorf("got %+v", result)
	}
	run(t, b, change(t, "shop", "shop", configMap("c", "1")))
	if got := repository.Git("ls-tree", "-r", "--name-only", "rendered", "shop"); got != "shop/shop/configmap-a.yaml/README\nshop/shop/configmap-c.yaml" {
		t.Errorf("got %s", got)
	}
}

func TestManyWritersOnOneBranch(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	const writers, rounds = 4, 3
	var wg sync.WaitGroup
	for w := range writers {
		b := branch(t, repository, "rendered")
		b.Attempts = 50
		wg.Go(func() {
			for round := range rounds {
				name := fmt.Sprintf("p%d", w)
				if _, err := b.Publish(ctx, []publish.Change{change(t, name, name, configMap("a", fmt.Sprint(round)))}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if got := repository.Git("rev-list", "--count", "rendered"); got != fmt.Sprint(writers*rounds) {
		t.Errorf("%s commits", got)
	}
	for w := range writers {
		if got := repository.Git("show", fmt.Sprintf("rendered:p%d/shop/configmap-a.yaml", w)); !strings.Contains(got, fmt.Sprintf("%q", fmt.Sprint(rounds-1))) {
			t.Errorf("got %s", got)
		}
	}
	repository.Git("fsck", "--strict")
}

func TestManyPipelinesInOneCommit(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	var changes []publish.Change
	for i := range 200 {
		name := fmt.Sprintf("app%d", i)
		changes = append(changes, change(t, name, name, configMap("a", "1"), configMap("b", "1")))
	}
	start := time.Now()
	result := run(t, b, changes...)
	t.Logf("200 pipelines with two objects in %s", time.Since(start))
	if got := repository.Git("log", "-1", "--format=%s", "rendered"); !result.Changed || got != "Render 200 pipelines: Change the shop" {
		t.Errorf("got %s", got)
	}
	if got := repository.Git("rev-list", "--count", "rendered"); got != "1" {
		t.Errorf("%s commits", got)
	}
}

func TestPropose(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("active", map[string]string{"README": "hello"})
	repository.InWork("push", "-q", "origin", "HEAD:environment/prod")
	active := repository.Git("rev-parse", "environment/prod")
	b := branch(t, repository, "environment/prod")
	b.Propose = true
	c := change(t, "shop", ".", configMap("a", "1"))
	first := run(t, b, c)
	if first.Branch != "refs/heads/environment/prod-next" || repository.Git("rev-parse", "environment/prod-next^") != active {
		t.Errorf("got %+v", first)
	}
	want := "{\n  \"repoURL\": \"https://git.example.com/config.git\",\n  \"drySha\": \"abc\",\n  \"commands\": [\n    \"prerig render shop\"\n  ],\n" +
		"  \"author\": \"Ann <ann@example.com>\",\n  \"date\": \"2026-01-02T03:04:05Z\",\n  \"subject\": \"Change the shop\",\n  \"body\": \"Because.\"\n}"
	if got := repository.Git("show", "environment/prod-next:hydrator.metadata"); got != want {
		t.Errorf("got %s", got)
	}
	note := func() string {
		return repository.Git("notes", "--ref=hydrator.metadata", "show", "environment/prod-next")
	}
	if got := note(); got != `{"drySha":"abc"}` {
		t.Errorf("got %s", got)
	}
	// A source commit without an effect: no commit, but the note says that it was looked at.
	c.Origin.Digest = "def"
	if again := run(t, b, c); again.Changed || again.Commit != first.Commit || note() != `{"drySha":"def"}` {
		t.Errorf("got %+v, %s", again, note())
	}
	before := repository.Git("rev-parse", "refs/notes/hydrator.metadata")
	run(t, b, c)
	if repository.Git("rev-parse", "refs/notes/hydrator.metadata") != before {
		t.Error("the note was written again")
	}
	// Notes that git itself has spread over directories are found and replaced.
	spread(repository, first.Commit.String())
	if note() != `{"drySha":"def"}` {
		t.Fatalf("got %s", note())
	}
	c.Origin.Digest = "123"
	run(t, b, c)
	if note() != `{"drySha":"123"}` || len(strings.Split(repository.Git("notes", "--ref=hydrator.metadata", "list"), "\n")) != 1 {
		t.Errorf("got %s", repository.Git("notes", "--ref=hydrator.metadata", "list"))
	}
}

// spread moves a note into a directory, as git does when there are many.
func spread(r *gittest.Repository, commit string) {
	blob := r.Git("rev-parse", "refs/notes/hydrator.metadata:"+commit)
	r.InWork("fetch", "-q", "origin", "refs/notes/hydrator.metadata")
	r.InWork("read-tree", "--empty")
	r.InWork("update-index", "--add", "--cacheinfo", "100644,"+blob+","+commit[:2]+"/"+commit[2:])
	r.InWork("push", "-q", "origin", r.InWork("commit-tree", "-p", "FETCH_HEAD", "-m", "spread", r.InWork("write-tree"))+":refs/notes/hydrator.metadata")
}

func TestProposeActivePaths(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	repository.Commit("active", map[string]string{"apps/other/x": "x"})
	for _, app := range []string{"apps/a", "apps/b"} {
		b := branch(t, repository, "main")
		b.Propose, b.ActivePath = true, app
		result := run(t, b, change(t, strings.ReplaceAll(app, "/", "-"), app, configMap("a", "1")))
		if result.Branch != "refs/heads/main-next/"+app {
			t.Errorf("got %s", result.Branch)
		}
		if got := repository.Git("diff", "--name-only", "main", "main-next/"+app, "--", "apps"); got != app+"/hydrator.metadata\n"+app+"/shop/configmap-a.yaml" {
			t.Errorf("got %s", got)
		}
	}
	// Git cannot hold both main-next and main-next/apps/a.
	b := branch(t, repository, "main")
	b.Propose = true
	if _, err := b.Publish(ctx, []publish.Change{change(t, "x", ".", configMap("a", "1"))}); err == nil || !strings.Contains(err.Error(), "cannot have both") {
		t.Errorf("got %v", err)
	}
	// The proposals of several applications merge without a conflict.
	repository.InWork("fetch", "-q", "origin")
	repository.InWork("merge", "-q", "origin/main-next/apps/a", "-m", "a")
	repository.InWork("merge", "-q", "origin/main-next/apps/b", "-m", "b")
}

func TestSubjectTemplate(t *testing.T) {
	repository := gittest.New(t).Repository(t, "config")
	b := branch(t, repository, "rendered")
	c := change(t, "apps/shop", "shop", configMap("a", "1"))
	c.Subject = "{{.Namespace}}/{{.Name}} {{.Count}} on {{.Branch}} by {{.Source.Author}}\nsecond line"
	run(t, b, c)
	if got := repository.Git("log", "-1", "--format=%s", "rendered"); got != "apps/shop 1 on rendered by Ann second line" {
		t.Errorf("got %s", got)
	}
	for _, bad := range []string{"{{.None}}", "{{"} {
		if err := publish.CheckSubject(bad); err == nil {
			t.Errorf("%s was accepted", bad)
		}
	}
	// A subject of the source cannot forge trailers.
	c = change(t, "apps/shop", "shop", configMap("a", "2"))
	c.Origin.Subject = "x\n\nPrerig-Version: forged"
	run(t, b, c)
	if got := repository.Git("log", "-1", "--format=%(trailers:key=Prerig-Version)", "rendered"); strings.Contains(got, "forged") {
		t.Errorf("got %s", got)
	}
}
