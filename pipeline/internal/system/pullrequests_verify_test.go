// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package system

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// settles waits until each group has exactly one open pull request, which has exactly the newest state, in its head, its text, and in
// what the daemon says.
func (h *hecticReview) settles() {
	h.t.Helper()
	begin := time.Now()
	for deadline := begin.Add(30 * time.Minute); ; time.Sleep(time.Second) {
		problem := ""
		for g := range h.groups {
			if problem = h.unsettled(h.head(g)); problem != "" {
				break
			}
		}
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("it does not settle: %s; %s", problem, h.describe())
		}
	}
}

// unsettled says what is not yet as it should be with the pull request of a group.
func (h *hecticReview) unsettled(head string) string {
	var found []giteaPull
	for _, p := range h.pulls("open") {
		if p.Head.Label == head {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return fmt.Sprintf("%s has %d open pull requests", head, len(found))
	}
	p, tip := found[0], h.tip(head)
	for _, i := range h.members(head) {
		want := fmt.Sprint(h.newest[i])
		if got := h.image(tip, i); got != want || !strings.Contains(p.Body, "image:"+want) {
			return fmt.Sprintf("%s shows %s of app%d, want %s, and says %s", head, got, i, want, p.Body)
		}
		if w := h.waitingOf(i); w == nil || w.Number != p.Number || w.State != v1alpha1.PullRequestOpen || w.HeadCommit != tip {
			return fmt.Sprintf("the status of app%d is %+v, and %s is at %s with %d", i, w, head, tip, p.Number)
		}
	}
	if p.Head.SHA != tip || h.inRendered("rev-parse", tip+"~1") != h.tip("main") {
		return fmt.Sprintf("%s is at %s, the pull request at %s", head, tip, p.Head.SHA)
	}
	if want, changed := h.titles[p.Number], h.titles[p.Number] != ""; changed && p.Title != want || !changed && p.Title != h.inRendered("log", "-1", "--format=%s", tip) {
		return fmt.Sprintf("the title of %d is %q", p.Number, p.Title)
	}
	if p.has("rendered") == h.unlabels[p.Number] {
		return fmt.Sprintf("the labels of %d are %v, taken off was %v", p.Number, p.Labels, h.unlabels[p.Number])
	}
	for _, file := range strings.Fields(h.inRendered("diff", "--name-only", "main", tip)) {
		if directory, _, _ := strings.Cut(file, "/"); directory != ".prerig" && !slices.ContainsFunc(h.members(head), func(i int) bool { return directory == fmt.Sprintf("app%d", i) }) {
			return head + " changes " + file
		}
	}
	return ""
}

// checkHistory looks at all that has happened, by what Gitea has told of it.
func (h *hecticReview) checkHistory() {
	h.t.Helper()
	all := h.pulls("all")
	opened := map[int64]pullEvent{}
	h.eventually("waiting for Gitea's events", func() string {
		h.eventsMu.Lock()
		defer h.eventsMu.Unlock()
		for _, e := range h.events {
			if e.Action == "opened" {
				opened[e.Number] = e
			}
			if e.Action == "reopened" {
				h.t.Errorf("%d was opened again by %s", e.Number, e.Sender.Login)
			}
		}
		if len(opened) < len(all) {
			return fmt.Sprintf("%d were opened, and %d are there", len(opened), len(all))
		}
		return ""
	})
	for _, p := range all {
		for _, note := range h.notes[p.Number] {
			if !strings.Contains(p.Body, note) {
				h.t.Errorf("%q is gone from %d", note, p.Number)
			}
		}
		said := 0
		for _, comment := range h.comments(p.Number) {
			if strings.HasPrefix(comment, "Nothing is left to review") {
				said++
			}
		}
		if said > 1 {
			h.t.Errorf("%d was told %d times that nothing is left", p.Number, said)
		}
		if p.has("rendered") == h.unlabels[p.Number] {
			h.t.Errorf("the labels of %d are %v, taken off was %v", p.Number, p.Labels, h.unlabels[p.Number])
		}
		// What a person has closed last must not be in the next one.
		for _, next := range slices.Backward(all) {
			if next.Number > p.Number && next.Head.Label == p.Head.Label {
				if declined := h.closed[p.Number]; declined != nil && maps.Equal(declined, h.images(opened[next.Number].Pull.Head.SHA, p.Head.Label)) {
					h.t.Errorf("%d has what a person has closed with %d: %v", next.Number, p.Number, declined)
				}
				break
			}
		}
	}
}

// rests waits for looks at all groups, and nothing may be written.
func (h *hecticReview) rests() {
	h.t.Helper()
	writes, calls := h.proxy.writes.Load(), h.proxy.calls.Load()
	h.eventually("waiting for looks", func() string {
		if more := h.proxy.calls.Load() - calls; more < int64(6*h.groups) {
			return fmt.Sprintf("%d calls", more)
		}
		return ""
	})
	if more := h.proxy.writes.Load() - writes; more > 0 {
		h.t.Errorf("%d calls have written something although nothing has changed", more)
	}
}

// ends has a person close one and merge the others: nothing is proposed again, over a last crash.
func (h *hecticReview) ends() {
	h.t.Helper()
	last := h.pulls("all")[0].Number
	for _, p := range h.pulls("open") {
		if p.Head.Label == h.head(0) {
			h.gitea.Must(h.ann, http.MethodPatch, pullPath(p.Number), map[string]any{"state": "closed"}, nil)
			continue
		}
		h.merge(p.Number, "merge")
	}
	h.daemon.kill()
	h.daemon.awaitUp(h.patience)
	for i := range h.newest {
		h.eventually(fmt.Sprintf("waiting for the end of app%d", i), func() string {
			w := h.waitingOf(i)
			if i%h.groups == 0 && (w == nil || w.State != v1alpha1.PullRequestClosed) || i%h.groups > 0 && w != nil {
				return fmt.Sprintf("the status says %+v", w)
			}
			if i%h.groups > 0 && h.tip(h.head(i%h.groups)) != "" {
				return "the head is there"
			}
			if got, want := h.image("main", i), fmt.Sprint(h.newest[i]); (got == want) == (i%h.groups == 0) {
				return "main shows " + got
			}
			return ""
		})
	}
	h.rests()
	if newest := h.pulls("all")[0].Number; newest != last {
		h.t.Errorf("%d was opened after all was closed or merged", newest)
	}
}
