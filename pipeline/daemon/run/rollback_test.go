// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
)

// promoter is one over the same pipelines.
func (w *works) promoter() *promotion.Promoter {
	r := w.runner
	return &promotion.Promoter{Catalog: r.Catalog, Store: r.Store, Queue: r.Queue, Targets: r.Targets, Log: slog.New(slog.DiscardHandler)}
}

func everybody(string) error { return nil }

// doAll runs pipelines for one cause.
func (w *works) doAll(cause string, pipelines ...string) {
	w.t.Helper()
	var all sync.WaitGroup
	for _, name := range pipelines {
		all.Go(func() {
			if err := w.do(name, cause, len(pipelines)); err != nil {
				w.t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
}

func (w *works) control(pipeline string) status.Control {
	w.t.Helper()
	if err := w.runner.Store.Sync(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w.runner.Store.Control(pipeline)
}

func (w *works) tree(at string) string { return w.repository.Git("rev-parse", at+"^{tree}") }

// TestRollbackTakesBackExactlyOnePublish is of a commit of two pipelines, over which a third has published.
func TestRollbackTakesBackExactlyOnePublish(t *testing.T) {
	w := newWorks(t, "a", "b", "c")
	w.repository.Commit("one", map[string]string{"a/text": "one", "b/text": "one", "c/text": "one"})
	w.doAll("1", "a", "b", "c")
	before := w.repository.Git("rev-parse", "rendered")
	w.repository.Commit("two", map[string]string{"a/text": "two", "b/text": "two"})
	w.doAll("2", "a", "b")
	publish := w.repository.Git("rev-parse", "rendered")
	w.repository.Commit("three", map[string]string{"c/text": "three"})
	w.doAll("3", "c")
	p := w.promoter()
	denied := errors.New("not yours")
	if _, err := p.Rollback(t.Context(), []string{"a"}, "", "ann", func(name string) error {
		if name == "b" {
			return denied
		}
		return nil
	}); !errors.Is(err, denied) || w.control("a").OnHold != nil {
		t.Fatalf("got %v, and %+v", err, w.control("a"))
	}
	done, err := p.Rollback(t.Context(), []string{"a", "b"}, "", "ann", everybody)
	if err != nil || len(done) != 1 || done[0].State != status.RollbackDone || done[0].Commit != publish || len(done[0].Pipelines) != 2 {
		t.Fatalf("got %+v, %v", done, err)
	}
	for _, dir := range []string{"a", "b"} {
		if now, then := w.repository.Git("rev-parse", "rendered:"+dir), w.repository.Git("rev-parse", before+":"+dir); now != then {
			t.Errorf("%s is %s, and was %s", dir, now, then)
		}
	}
	if got := w.repository.Git("show", "rendered:c/configmap-x.yaml"); !strings.Contains(got, "three") {
		t.Errorf("what others published since is %s", got)
	}
	if w.commits() != 4 || !strings.Contains(w.repository.Git("log", "-1", "--format=%B", "rendered"), "Prerig-Rollback: "+publish) {
		t.Errorf("%d commits, the last is %s", w.commits(), w.repository.Git("log", "-1", "--format=%B", "rendered"))
	}
	tip := w.repository.Git("rev-parse", "rendered")
	w.repository.Commit("four", map[string]string{"a/text": "four"})
	w.doAll("4", "a", "b")
	if hold := w.control("a").OnHold; hold == nil || !w.control("a").Suspended || hold.By != "ann" || w.repository.Git("rev-parse", "rendered") != tip {
		t.Errorf("on hold: %+v; the branch is at %s", hold, w.repository.Git("rev-parse", "rendered"))
	}
	if _, err := p.Rollback(t.Context(), []string{"a"}, "", "ann", everybody); !errors.Is(err, promotion.ErrRolledBack) {
		t.Errorf("once more: %v", err)
	}
	further, err := p.Rollback(t.Context(), []string{"a"}, before[:10], "ann", everybody)
	if err != nil || further[0].State != status.RollbackRefused || !strings.Contains(further[0].Message, "changed since") {
		t.Errorf("one that others have published over: %+v, %v", further, err)
	}
	if hold := w.control("a").OnHold; hold == nil || hold.Rollback == "" {
		t.Errorf("after a refused one the hold is %+v", hold)
	}
	if released, err := p.Release(t.Context(), []string{"a", "b", "c"}, "token"); err != nil || len(released) != 2 {
		t.Errorf("released %v, %v", released, err)
	}
	for _, name := range []string{"a", "b"} {
		if err := w.runner.Do(t.Context(), queue.Job{Pipeline: name, Cause: "5" + name, Force: true, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := w.repository.Git("show", "rendered:a/configmap-x.yaml"), w.repository.Git("show", "rendered:b/configmap-x.yaml"); !strings.Contains(a, "four") || !strings.Contains(b, "two") {
		t.Errorf("after promoting: %s, %s", a, b)
	}
}

// TestTheSameRollbackAskedForTwiceAtOnce has two people ask before either has begun: the second finds what the first has done.
func TestTheSameRollbackAskedForTwiceAtOnce(t *testing.T) {
	w := newWorks(t, "a")
	for _, text := range []string{"one", "two"} {
		w.repository.Commit(text, map[string]string{"a/text": text})
		w.doAll(text, "a")
	}
	before := w.tree("rendered~1")
	var found, ended sync.WaitGroup
	found.Add(2)
	for range 2 {
		ended.Go(func() {
			done, err := w.promoter().Rollback(t.Context(), []string{"a"}, "", "ann", func(string) error {
				found.Done()
				found.Wait()
				return nil
			})
			if err != nil || len(done) != 1 || done[0].State != status.RollbackDone || done[0].Result == "" || done[0].Files == 0 {
				t.Errorf("got %+v, %v", done, err)
			}
		})
	}
	ended.Wait()
	if err := w.runner.Store.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	tip := w.repository.Git("rev-parse", "rendered")
	if all := w.runner.Store.Rollbacks(); len(all) != 1 || all[0].Result != tip || w.tree("rendered") != before || w.commits() != 3 {
		t.Errorf("got %+v; the branch is at %s", all, tip)
	}
}

// TestRollbackByPullRequest opens one, over calls that fail, and respects what people do with it.
func TestRollbackByPullRequest(t *testing.T) {
	p := newProposing(t, "", "shop")
	for i := 1; i <= 2; i++ {
		p.repository.Commit(fmt.Sprint(i), map[string]string{"shop/text": fmt.Sprint("text", i)})
		if err := p.do("shop", fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
		p.merge(int64(i))
		p.look()
	}
	before := p.tree("rendered~1")
	promoter := p.promoter()
	p.host.After = func(call string) error {
		if call == pulltest.Create {
			return pulltest.Failure(http.StatusBadGateway, "lost")
		}
		return nil
	}
	done, err := promoter.Rollback(t.Context(), []string{"shop"}, "", "ann", everybody)
	if err != nil || done[0].State != status.RollbackAsked || !strings.Contains(done[0].Message, "lost") {
		t.Fatalf("got %+v, %v", done, err)
	}
	p.host.After = nil
	again := func() status.Rollback {
		t.Helper()
		promoter := p.promoter() // of another process
		promoter.FinishRollbacks(t.Context())
		if err := p.runner.Store.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		return p.runner.Store.Rollbacks()[0]
	}
	if r := again(); r.State != status.RollbackOpen || r.Number != 3 || len(p.host.Requests()) != 3 {
		t.Fatalf("got %+v, %d pull requests", r, len(p.host.Requests()))
	}
	r := p.host.Requests()[2]
	if !strings.HasPrefix(r.Title, "Roll back ") || !strings.Contains(r.Body, "text1") || p.tree(r.Head) != before {
		t.Errorf("got %+v", r)
	}
	if p.merge(3); again().State != status.RollbackDone || p.tree("rendered") != before {
		t.Errorf("got %+v", again())
	}
	if state := p.look(); state.IsDrifted() || p.control("shop").OnHold == nil {
		t.Errorf("got %+v", state.Condition())
	}
}

// TestRollbackLeavesCommitsOfOthersOnItsHead has people change the head of a rollback, and the branch move on.
func TestRollbackLeavesCommitsOfOthersOnItsHead(t *testing.T) {
	const person = "Ann <ann@example.com>"
	for name, edit := range map[string]func(p *proposing, head string){
		"a fix on top": func(p *proposing, head string) { p.byHand(head, "fix", "main^{tree}", head) },
		"a merge":      func(p *proposing, head string) { p.byHand(head, "Merge rendered", head+"^{tree}", head, "rendered") },
		"an amended one": func(p *proposing, head string) {
			p.byHand(head, p.repository.Git("log", "-1", "--format=%B", head), "main^{tree}", "rendered")
		},
		"one before ours": nil,
	} {
		t.Run(name, func(t *testing.T) {
			p := newProposing(t, "", "shop", "other")
			publish := func(dir, text string) {
				t.Helper()
				p.repository.Commit(dir+text, map[string]string{dir + "/text": text})
				if err := p.do(dir, dir+text, 1); err != nil {
					t.Fatal(err)
				}
				p.merge(int64(len(p.host.Requests())))
			}
			publish("shop", "one")
			publish("shop", "two")
			p.look()
			head := v1alpha1.RollbackHead("rendered", p.tip("rendered"))
			if edit == nil {
				p.byHand(head, "mine", "main^{tree}", "main")
			}
			done, err := p.promoter().Rollback(t.Context(), []string{"shop"}, "", "ann", everybody)
			if err != nil || len(done) != 1 {
				t.Fatalf("got %+v, %v", done, err)
			}
			want := status.RollbackAsked
			if edit != nil {
				want = status.RollbackOpen
				edit(p, head)
			}
			theirs := p.tip(head)
			publish("other", "one") // so that the rollback would be made on top of something newer
			for range 2 {
				p.promoter().FinishRollbacks(t.Context())
			}
			if err := p.runner.Store.Sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := p.tip(head); got != theirs {
				t.Fatalf("their commit was overwritten by %s", p.repository.Git("log", "-1", "--format=%an %s", got))
			}
			r := p.runner.Store.Rollbacks()[0]
			if r.State != want || !strings.Contains(r.Message, "by "+person) || !strings.Contains(r.Message, "nothing is pushed over them") {
				t.Errorf("got %+v", r)
			}
			if edit == nil && len(p.host.Requests()) != 3 {
				t.Errorf("a branch of somebody else was proposed: %+v", p.host.Requests())
			}
		})
	}
}

// TestRollbackIsMadeAgainOnANewerBranch has the branch move on while a rollback waits that nobody has touched.
func TestRollbackIsMadeAgainOnANewerBranch(t *testing.T) {
	p := newProposing(t, "", "shop")
	for i := 1; i <= 2; i++ {
		p.repository.Commit(fmt.Sprint(i), map[string]string{"shop/text": fmt.Sprint("text", i)})
		if err := p.do("shop", fmt.Sprint(i), 1); err != nil {
			t.Fatal(err)
		}
		p.merge(int64(i))
		p.look()
	}
	head := v1alpha1.RollbackHead("rendered", p.tip("rendered"))
	if _, err := p.promoter().Rollback(t.Context(), []string{"shop"}, "", "ann", everybody); err != nil {
		t.Fatal(err)
	}
	p.byHand("rendered", "empty", "rendered^{tree}", "rendered")
	p.promoter().FinishRollbacks(t.Context())
	if got := p.repository.Git("rev-parse", head+"~1"); got != p.tip("rendered") {
		t.Errorf("it is on top of %s", got)
	}
}

// byHand moves a branch to a person's commit.
func (p *proposing) byHand(branch, message, tree string, parents ...string) {
	args := []string{"commit-tree", "-m", message, p.repository.Git("rev-parse", tree)}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	p.repository.Git("update-ref", "refs/heads/"+branch, p.repository.Git(args...))
}

// TestARunThatWasBegunDoesNotPublishOverARollback puts a pipeline on hold while it renders.
func TestARunThatWasBegunDoesNotPublishOverARollback(t *testing.T) {
	w := newWorks(t, "shop")
	w.repository.Commit("one", map[string]string{"shop/text": "one"})
	w.doAll("1", "shop")
	w.repository.Commit("two", map[string]string{"shop/text": "two"})
	w.renderer.during = func() {
		if err := w.promoter().Hold(t.Context(), []string{"shop"}, "ann", "no"); err != nil {
			t.Error(err)
		}
	}
	if err := w.do("shop", "2", 1); err == nil {
		t.Error("it is not tried again")
	}
	if w.commits() != 1 {
		t.Errorf("%d commits", w.commits())
	}
	if err := w.do("shop", "2", 1); err != nil || w.commits() != 1 {
		t.Errorf("%v, %d commits", err, w.commits())
	}
}

// TestRollbackOfWhatIsNoPublishIsRefused names commits that people have made on the branch, and one of another pipeline.
func TestRollbackOfWhatIsNoPublishIsRefused(t *testing.T) {
	w := newWorks(t, "a", "b")
	w.repository.Commit("one", map[string]string{"a/text": "one", "b/text": "one"})
	w.doAll("1", "a")
	w.doAll("2", "b")
	other := w.repository.Git("rev-parse", "rendered")
	byHand := func(file string) string {
		t.Helper()
		w.repository.Git("read-tree", "rendered")
		w.repository.Git("update-index", "--add", "--cacheinfo", "100644,"+w.repository.Git("rev-parse", "main:a/text")+","+file)
		tree := w.repository.Git("write-tree")
		commit := w.repository.Git("-c", "user.name=Eve", "-c", "user.email=eve@example.com", "commit-tree", "-m", "Change "+file, "-p", "rendered", tree)
		w.repository.Git("update-ref", "refs/heads/rendered", commit)
		return commit
	}
	unowned := byHand("CODEOWNERS")
	owned := byHand("b/configmap-x.yaml")
	p, tip := w.promoter(), w.repository.Git("rev-parse", "rendered")
	for _, commit := range []string{unowned, owned, other} {
		done, err := p.Rollback(t.Context(), []string{"a"}, commit, "ann", everybody)
		if !errors.Is(err, publish.ErrNotPublished) || len(done) > 0 {
			t.Errorf("%s: %+v, %v", w.repository.Git("log", "-1", "--format=%s", commit), done, err)
		}
	}
	if now := w.repository.Git("rev-parse", "rendered"); now != tip || w.control("a").OnHold != nil || w.control("b").OnHold != nil {
		t.Errorf("the branch is at %s, %+v", now, w.control("b"))
	}
}

// TestRollbackHoldsPipelinesThatAreGone takes back a publish of two, of which one is not in the catalog any more.
func TestRollbackHoldsPipelinesThatAreGone(t *testing.T) {
	w := newWorks(t, "a", "b")
	w.repository.Commit("one", map[string]string{"a/text": "one", "b/text": "one"})
	w.doAll("1", "a", "b")
	p := w.promoter()
	if err := os.Remove(filepath.Join(w.runner.PipelinesDir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.Catalog, err = catalog.Open(w.runner.PipelinesDir, nil); err != nil {
		t.Fatal(err)
	}
	if done, err := p.Rollback(t.Context(), []string{"a"}, "", "ann", everybody); err != nil || done[0].State != status.RollbackDone {
		t.Fatalf("got %+v, %v", done, err)
	}
	for _, name := range []string{"a", "b"} {
		if hold := w.control(name).OnHold; hold == nil || hold.Rollback == "" {
			t.Errorf("the hold of %s is %+v", name, hold)
		}
	}
}
