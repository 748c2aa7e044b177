// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// story is a random sequence of what a source, people, hosts and crashes do to the pull requests of two groups.
type story struct {
	*reviewed
	rand      *rand.Rand
	server    *gittest.Server
	calm      bool // nothing goes wrong any more
	process   map[string]*publish.PullRequest
	values    map[string]int     // what the source says now, by pipelines
	closed    map[int64][]string // what a pull request held when a person closed it: files and their content, by its number
	notes     map[int64][]string // what people have written in one
	failed    map[string]bool    // the last try to publish what a pipeline gives
	published map[string]int     // what was tried last
	seen      int                // pull requests that were looked at
}

var groups = map[string][]string{"prerig/rendered/all": {"a", "b", "c"}, "prerig/rendered/pipeline/d": {"d"}}

func newStory(t *testing.T, seed uint64) *story {
	s := &story{
		rand: rand.New(rand.NewPCG(seed, 1)), server: gittest.New(t), process: map[string]*publish.PullRequest{},
		values: map[string]int{"a": 1, "b": 1, "c": 1, "d": 1}, closed: map[int64][]string{}, failed: map[string]bool{}, published: map[string]int{}, notes: map[int64][]string{},
	}
	s.reviewed = &reviewed{t: t, repo: s.server.Repository(t, "deploy"), host: &pulltest.Host{}}
	s.host.Heads = func(branch string) string { return s.tip(branch) }
	s.host.Before, s.host.After = s.mishap, s.mishap
	isPush := func(r *http.Request) bool {
		return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/git-receive-pack")
	}
	s.server.Intercept(func(w http.ResponseWriter, r *http.Request) bool {
		if !s.calm && isPush(r) && s.rand.IntN(8) == 0 {
			http.Error(w, "no", http.StatusForbidden)
			return true
		}
		return false
	})
	s.server.Lose = func(r *http.Request) bool { return !s.calm && isPush(r) && s.rand.IntN(8) == 0 }
	return s
}

// mishap lets a third of the calls fail, before or after they were done. For the one that calls that is a crash at this place: it goes
// no further.
func (s *story) mishap(call string) error {
	if s.calm || s.rand.IntN(6) > 0 {
		return nil
	}
	return pulltest.Failure(503, call+" went wrong")
}

// of returns what publishes to a head: a process that has run for a while, or a new one.
func (s *story) of(head string) *publish.PullRequest {
	if s.process[head] == nil || s.rand.IntN(6) == 0 {
		s.process[head] = s.restarted(head)
		s.process[head].Base.Attempts = 2
	}
	return s.process[head]
}

// publishSome publishes what the source says now of some pipelines of a group, or only looks.
func (s *story) publishSome(head string, pipelines ...string) error {
	var changes []publish.Change
	for _, name := range pipelines {
		changes = append(changes, change(s.t, name, name, configMap("x", fmt.Sprint(s.values[name]))))
	}
	result, err := s.of(head).Publish(ctx, changes)
	if err == nil {
		for _, outcome := range result.Outcomes {
			err = errors.Join(err, outcome.Err)
		}
		if w := result.Waiting; w.State == v1alpha1.PullRequestClosed && s.closed[w.Request.Number] == nil {
			s.t.Fatalf("%d is taken for closed by a person", w.Request.Number)
		}
	}
	for _, name := range pipelines {
		s.published[name] = s.values[name]
		s.failed[name] = err != nil // a daemon tries these again, and no others
	}
	s.check()
	return err
}

// held is what a branch has of a group, one line for each pipeline.
func (s *story) held(branch string, pipelines []string) (lines []string) {
	for _, name := range pipelines {
		content := ""
		if file := name + "/shop/configmap-x.yaml"; s.tip(branch) != "" && s.repo.Git("ls-tree", branch, file) != "" {
			content = s.file(branch, file) + "\n"
		}
		lines = append(lines, content)
	}
	return lines
}

// check looks at what must hold after every step.
func (s *story) check() {
	s.t.Helper()
	all := s.host.Requests()
	open := map[string]int{}
	for _, r := range all {
		if r.State == pullrequest.StateOpen {
			open[r.Head]++
		}
		for _, note := range s.notes[r.Number] {
			if !strings.Contains(r.Body, note) {
				s.t.Fatalf("a person's note %q is gone from %d: %s", note, r.Number, r.Body)
			}
		}
	}
	for head, count := range open {
		if count > 1 {
			s.t.Fatalf("%s has %d open pull requests", head, count)
		}
	}
	for ; s.seen < len(all); s.seen++ {
		s.checkNew(all[s.seen], all[:s.seen])
	}
}

// checkNew refuses a pull request that holds what a person has declined with the one before.
func (s *story) checkNew(r pullrequest.Request, before []pullrequest.Request) {
	s.t.Helper()
	for _, old := range slices.Backward(before) {
		if old.Head != r.Head {
			continue
		}
		if declined := s.closed[old.Number]; declined != nil && slices.Equal(declined, s.held(r.Head, groups[r.Head])) {
			s.t.Fatalf("%d holds what a person has closed with %d", r.Number, old.Number)
		}
		return
	}
}

// step does one thing at random.
func (s *story) step() {
	heads := slices.Sorted(maps.Keys(groups))
	head := heads[s.rand.IntN(len(heads))]
	pipelines := groups[head]
	one := pipelines[s.rand.IntN(len(pipelines))]
	newest := s.newest(head)
	isOpen := newest != nil && newest.State == pullrequest.StateOpen
	switch s.rand.IntN(12) {
	case 0, 1, 2:
		s.values[one] = 1 + s.rand.IntN(3) // also back to what it was
		_ = s.publishSome(head, one)
	case 3:
		for _, name := range pipelines {
			s.values[name] = 1 + s.values[name]%3
		}
		_ = s.publishSome(head, pipelines...)
	case 4, 5:
		_ = s.publishSome(head, one) // tried again
	case 6, 7:
		_ = s.publishSome(head) // a look
	case 8:
		if isOpen {
			s.merge(newest.Number)
			if s.rand.IntN(2) == 0 {
				s.repo.Git("update-ref", "-d", "refs/heads/"+head)
			}
		}
	case 9:
		if isOpen {
			s.closed[newest.Number] = s.held(head, pipelines)
			s.host.ClosedByPerson(newest.Number)
			if s.rand.IntN(2) == 0 {
				s.repo.Git("update-ref", "-d", "refs/heads/"+head)
			}
		}
	case 10:
		if isOpen {
			note := fmt.Sprintf("note %d", s.rand.IntN(1000))
			s.notes[newest.Number] = append(s.notes[newest.Number], note)
			s.host.Edit(newest.Number, func(r *pullrequest.Request) {
				r.Body += "\r\n" + note
				if s.rand.IntN(4) == 0 {
					r.Body = strings.Join(s.notes[newest.Number], "\n")
				}
				r.Labels = append(r.Labels, note)
			})
		}
	case 11:
		if s.tip("rendered") != "" {
			s.commitTo("rendered", fmt.Sprintf("others/%d.txt", s.rand.IntN(3)), fmt.Sprint(s.rand.IntN(1000)))
		}
	}
	s.check()
}

// run goes through a story, and looks at its end, when nothing goes wrong any more and all is tried again.
func (s *story) run(steps int) {
	for range steps {
		s.step()
	}
	s.calm = true
	for head, pipelines := range groups {
		s.process[head] = s.restarted(head)
		again := slices.DeleteFunc(slices.Clone(pipelines), func(name string) bool { return !s.failed[name] && s.published[name] == s.values[name] })
		if err := s.publishSome(head, again...); err != nil {
			s.t.Fatal(err)
		}
		written := s.host.Written()
		tip := s.tip(head)
		if err := s.publishSome(head); err != nil || s.host.Written() != written || s.tip(head) != tip {
			s.t.Fatalf("%s does not come to rest: %v", head, err)
		}
		s.checkEnd(head, pipelines)
	}
}

func (s *story) checkEnd(head string, pipelines []string) {
	s.t.Helper()
	var want []string
	for _, name := range pipelines {
		files := change(s.t, name, name, configMap("x", fmt.Sprint(s.values[name]))).Files
		want = append(want, string(files["shop/configmap-x.yaml"]))
	}
	newest := s.newest(head)
	switch {
	case slices.Equal(s.held("rendered", pipelines), want):
		if newest != nil && newest.State == pullrequest.StateOpen || s.tip(head) != "" {
			s.t.Fatalf("%s has nothing left, and is at %s with %+v", head, s.tip(head), newest)
		}
	case newest == nil || newest.State == pullrequest.StateMerged:
		s.t.Fatalf("the result of %s is lost: %+v", head, newest)
	case newest.State == pullrequest.StateOpen:
		got, base := s.held(head, pipelines), s.held("rendered", pipelines)
		for i, name := range pipelines {
			if got[i] != want[i] && (got[i] != base[i] || !s.wasDeclined(head, i, want[i])) {
				s.t.Fatalf("%s holds %q of %s, want %q", head, got[i], name, want[i])
			}
		}
		if s.repo.Git("rev-parse", head+"~1") != s.tip("rendered") {
			s.t.Fatalf("%s is not on the newest base", head)
		}
	default:
		declined, base := s.closed[newest.Number], s.held("rendered", pipelines)
		for i := range want {
			if want[i] != base[i] && (declined == nil || want[i] != declined[i]) && !s.wasDeclined(head, i, want[i]) {
				s.t.Fatalf("%s: %s is lost, as %d is closed, which held %q", head, pipelines[i], newest.Number, declined)
			}
		}
	}
}

// wasDeclined reports whether a person has closed a pull request that held this of a pipeline of a group, by its position.
func (s *story) wasDeclined(head string, pipeline int, content string) bool {
	for _, r := range s.host.Requests() {
		if declined := s.closed[r.Number]; r.Head == head && declined != nil && declined[pipeline] == content {
			return true
		}
	}
	return false
}

func TestPullRequestsOfARandomStory(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newStory(t, seed).run(60) })
	}
}
