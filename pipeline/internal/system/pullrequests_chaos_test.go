// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hecticReview is reviews in groups, with people who do all that people do with pull requests.
type hecticReview struct {
	*reviews
	groups int
	did    map[string]int // what people have done
	backs  int            // how often the source went back to what is published

	notes    map[int64][]string // what they have written below the line, by pull requests
	titles   map[int64]string
	unlabels map[int64]bool           // "rendered" was taken off
	closed   map[int64]map[int]string // what was in it when they closed it: images by applications
}

func (h *hecticReview) head(group int) string {
	return fmt.Sprintf("prerig/main/label/cluster/c%d", group)
}

// members are the applications of the group that a head is of.
func (h *hecticReview) members(head string) (out []int) {
	for i := range h.newest {
		if h.head(i%h.groups) == head {
			out = append(out, i)
		}
	}
	return out
}

func (h *hecticReview) tip(branch string) string {
	return h.inRendered("rev-parse", "--verify", "-q", "refs/heads/"+branch)
}

// images are what a commit has of the applications of a head.
func (h *hecticReview) images(at, head string) map[int]string {
	out := map[int]string{}
	for _, i := range h.members(head) {
		out[i] = h.image(at, i)
	}
	return out
}

// acts does one thing that people do.
func (h *hecticReview) acts(n int) {
	open := h.pulls("open")
	if len(open) == 0 {
		return
	}
	p := open[rand.IntN(len(open))]
	edit := func(method, path string, in any) bool { return h.gitea.API(h.ann, method, path, in, nil) < 400 }
	issue := fmt.Sprintf("/repos/shop/rendered/issues/%d", p.Number)
	what := ""
	switch rand.IntN(12) {
	case 0, 1, 2:
		var now giteaPull
		h.gitea.Must(h.ann, http.MethodGet, pullPath(p.Number), nil, &now)
		note := fmt.Sprintf("Note %d of Ann", n)
		if edit(http.MethodPatch, pullPath(p.Number), map[string]any{"body": now.Body + "\n\n" + note + "\n"}) {
			h.notes[p.Number] = append(h.notes[p.Number], note)
			what = "wrote a note"
		}
	case 3, 4:
		how := []string{"merge", "squash", "rebase"}[rand.IntN(3)]
		if edit(http.MethodPost, pullPath(p.Number)+"/merge", map[string]any{"Do": how, "delete_branch_after_merge": rand.IntN(2) == 0}) {
			what = "merged (" + how + ")"
		}
	case 5, 6:
		what = h.close(p)
	case 7:
		title := fmt.Sprintf("Title %d of Ann", n)
		if edit(http.MethodPatch, pullPath(p.Number), map[string]any{"title": title}) {
			h.titles[p.Number], what = title, "changed a title"
		}
	case 8:
		for _, label := range p.Labels {
			if label.Name == "rendered" && edit(http.MethodDelete, fmt.Sprintf("%s/labels/%d", issue, label.ID), nil) {
				h.unlabels[p.Number], what = true, "took a label off"
			}
		}
	case 9:
		if edit(http.MethodPost, issue+"/comments", map[string]any{"body": "hm"}) {
			what = "commented"
		}
	case 10:
		in := map[string]any{"branch": "main", "content": "bWluZQ==", "message": "by hand"}
		if edit(http.MethodPost, fmt.Sprintf("/repos/shop/rendered/contents/others/%d.txt", n), in) {
			what = "committed to main"
		}
	case 11:
		what = h.pushesToHead(p, n)
	}
	if what != "" {
		h.did[what]++
	}
}

// close closes a pull request and remembers what was in it, if that is sure: one whose text is of an earlier result, as a newer one is
// just being pushed, is none that a person has read.
func (h *hecticReview) close(p giteaPull) string {
	var read, now giteaPull
	h.gitea.Must(h.ann, http.MethodGet, pullPath(p.Number), nil, &read)
	before := h.tip(p.Head.Label)
	if h.gitea.API(h.ann, http.MethodPatch, pullPath(p.Number), map[string]any{"state": "closed"}, nil) >= 400 {
		return ""
	}
	h.gitea.Must(h.ann, http.MethodGet, pullPath(p.Number), nil, &now)
	if h.tip(p.Head.Label) == before && before != "" && read.Body == now.Body && h.tells(now.Body, before, p.Head.Label) {
		h.closed[p.Number] = h.images(before, p.Head.Label)
	}
	if rand.IntN(2) > 0 {
		return "closed"
	}
	_ = h.gitea.API(h.ann, http.MethodDelete, "/repos/shop/rendered/branches/"+p.Head.Label, nil, nil)
	return "closed and deleted the branch"
}

// tells reports whether a text names all images that a commit has and main has not.
func (h *hecticReview) tells(body, commit, head string) bool {
	for _, i := range h.members(head) {
		if image := h.image(commit, i); image != h.image("main", i) && !strings.Contains(body, "image:"+image) {
			return false
		}
	}
	return true
}

// pushesToHead commits to a head, looks a while later whether that is still there, and merges it.
func (h *hecticReview) pushesToHead(p giteaPull, n int) string {
	name := fmt.Sprintf("others/on-head-%d.txt", n)
	in := map[string]any{"branch": p.Head.Label, "content": "bWluZQ==", "message": "by hand"}
	if h.gitea.API(h.ann, http.MethodPost, "/repos/shop/rendered/contents/"+name, in, nil) >= 400 {
		return ""
	}
	time.Sleep(time.Duration(rand.IntN(3000)) * time.Millisecond)
	h.eventually("merging a pull request with a commit of Ann", func() string {
		if h.inRendered("ls-tree", "refs/heads/"+p.Head.Label, name) == "" {
			h.t.Errorf("the commit of a person on %s is gone", p.Head.Label)
			return ""
		}
		status := h.gitea.API(h.ann, http.MethodPost, pullPath(p.Number)+"/merge", map[string]any{"Do": "merge", "delete_branch_after_merge": true}, nil)
		if status < 400 {
			return ""
		}
		// One that is in conflict with main, as that has moved: it is given up.
		if rand.IntN(20) == 0 {
			_ = h.close(p)
			_ = h.gitea.API(h.ann, http.MethodDelete, "/repos/shop/rendered/branches/"+p.Head.Label, nil, nil)
			return ""
		}
		return fmt.Sprint(status)
	})
	return "committed to a head, and merged it"
}

// strikes kills the daemon, at any moment or right at a call that writes.
func (h *hecticReview) strikes() {
	if rand.IntN(3) > 0 {
		struck := make(chan struct{})
		kill := func() {
			h.daemon.kill()
			close(struck)
		}
		h.proxy.strike.Store(&kill)
		select {
		case <-struck:
		case <-time.After(20 * time.Second):
			if h.proxy.strike.CompareAndSwap(&kill, nil) {
				h.daemon.kill()
			}
		}
	} else {
		time.Sleep(rand.N(time.Second))
		h.daemon.kill()
	}
	h.daemon.awaitUp(h.patience)
}

// pushes changes one or two applications, now and then back to what is published.
func (h *hecticReview) pushes(n int) {
	files := map[string]string{}
	for range 1 + rand.IntN(2) {
		i := rand.IntN(len(h.newest))
		h.newest[i] = n
		if now, err := strconv.Atoi(h.image("main", i)); err == nil && rand.IntN(6) == 0 {
			h.newest[i] = now
			h.backs++
		}
		files[applicationFile(i)] = deployment(fmt.Sprintf("app%d", i), fmt.Sprintf("image:%d", h.newest[i]))
	}
	h.commit(fmt.Sprintf("change %d", n), files)
}

func TestGiteaPullRequestsSurvive(t *testing.T) {
	n, groups := size{20, 6, 3}, 3
	if full() {
		n, groups = size{200, 20, 20}, 5
	}
	h := &hecticReview{groups: groups, did: map[string]int{}, notes: map[int64][]string{}, titles: map[int64]string{}, unlabels: map[int64]bool{},
		closed: map[int64]map[int]string{}}
	h.reviews = newReviews(t, n.pipelines)
	h.size = n
	for i := range n.pipelines {
		h.pipeline(i, fmt.Sprintf("c%d", i%groups), ", groupBy: Label, label: cluster", "  interval: 5s\n")
	}
	h.proxy.refusing.Store(true)
	h.serveReviews()
	begin := time.Now()
	h.hectic(n)
	pushed := time.Since(begin)
	files := map[string]string{}
	for i := range h.newest {
		h.newest[i] = n.pushes + 1 + i
		files[applicationFile(i)] = deployment(fmt.Sprintf("app%d", i), fmt.Sprintf("image:%d", h.newest[i]))
	}
	h.commit("the last change", files)
	h.settles()
	t.Logf("%d pushes to %d pipelines in %d groups and %d kills in %s; all was proposed %s later; %d of %d calls of the API were refused; people: %v, and back in the source: %d; %d pull requests",
		n.pushes, n.pipelines, groups, n.kills, pushed.Round(time.Second), (time.Since(begin) - pushed).Round(time.Second), h.proxy.refused.Load(), h.proxy.calls.Load(),
		h.did, h.backs, len(h.pulls("all")))
	h.checkHistory()
	h.rests()
	h.ends()
}

// hectic pushes to the source, while people do what they do and the daemon is killed.
func (h *hecticReview) hectic(n size) {
	done := make(chan struct{})
	var group sync.WaitGroup
	group.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-time.After(rand.N(time.Second)):
				h.acts(n)
			}
		}
	})
	kills := make(chan struct{}, n.kills)
	group.Go(func() {
		for range kills {
			h.strikes()
		}
	})
	for i := 1; i <= n.pushes; i++ {
		if h.pushes(i); i*n.kills/n.pushes > (i-1)*n.kills/n.pushes {
			kills <- struct{}{}
		}
		time.Sleep(rand.N(time.Second))
	}
	close(kills)
	close(done)
	group.Wait()
}
