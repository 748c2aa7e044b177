// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/pulltest"
	"github.com/prerig/prerig/pipeline/notify"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/secret"
)

// tokens has the same token in every secret.
type tokens struct{}

func (tokens) Secret(context.Context, string, string, secret.Purpose) (map[string][]byte, error) {
	return map[string][]byte{"token": []byte("t")}, nil
}

// listener is who is told: it takes CloudEvents at /event, calls of Flux at /flux, and statuses of commits anywhere else.
type listener struct {
	mu         sync.Mutex
	heard      []string                     // types of events, "flux", and states with the commit's first letters
	answer     func(word string) (code int) // asked before something counts as heard, where it is not nil; 0 is success
	retryAfter string                       // goes with answers that are no success
}

func (l *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var sent struct{ State string }
	_ = json.Unmarshal(body, &sent)
	word := sent.State
	switch r.URL.Path {
	case "/event":
		word = strings.TrimPrefix(r.Header.Get("Ce-Type"), "dev.prerig.run.")
	case "/flux":
		word = "flux"
	}
	if l.answer != nil {
		if code := l.answer(word); code != 0 {
			w.Header().Set("Retry-After", l.retryAfter)
			w.WriteHeader(code)
			return
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, word)
}

// all waits until what was to be told is told, and returns what was heard since the last time.
func (l *listener) all(r *Runner) []string {
	r.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	heard := l.heard
	l.heard = nil
	return heard
}

// Ways to tell, as spec.notify has them, with LISTENER in place of the address.
const (
	tellCommit = "{commitStatus: {provider: Gitea, url: 'LISTENER', secretRef: {name: x}}}"
	tellEvent  = "{cloudEvent: {url: 'LISTENER/event'}}"
	tellFlux   = "{fluxReceiver: {url: 'LISTENER/flux', secretRef: {name: x}}}"
)

const publishByPullRequest = "[{git: {branch: rendered, pullRequest: {provider: Gitea, secretRef: {name: bot}}}}]"

// newTelling makes the pipeline shop, which publishes where it is said and tells a listener.
func newTelling(t *testing.T, l *listener, publish string, tell ...string) *proposing {
	t.Helper()
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	p := &proposing{works: &works{t: t, renderer: &renderer{}, git: gittest.New(t)}, host: &pulltest.Host{}}
	p.repository = p.git.Repository(t, "apps")
	p.host.Heads = p.tip
	p.run(map[string]string{"shop": fmt.Sprintf("apiVersion: prerig.dev/v1alpha1\nkind: RenderPipeline\nmetadata: {name: shop, labels: {wave: a}}\nspec:\n"+
		"  source: {git: {url: %s, ref: {branch: main}}}\n  build: {path: shop}\n  publish: %s\n  notify: [%s]\n",
		p.repository.URL, publish, strings.ReplaceAll(strings.Join(tell, ", "), "LISTENER", server.URL))})
	p.runner.Notifier = notify.New(tokens{}, nil)
	p.hostAnswers(true)
	if entry, _ := p.runner.Catalog.Get("shop"); entry.Err != nil {
		t.Fatal(entry.Err)
	}
	return p
}

// hostAnswers says whether the host of pull requests does from now on.
func (p *proposing) hostAnswers(up bool) {
	p.runner.Targets.Hosts = func(context.Context, string, *v1alpha1.GitPublish) (pullrequest.Host, error) {
		if !up {
			return nil, errors.New("the host answers 502")
		}
		return p.host, nil
	}
}

// publishes runs the pipeline for a new commit of the source.
func (p *proposing) publishes(text string) {
	p.t.Helper()
	p.repository.Commit(text, map[string]string{"shop/text": text})
	if err := p.do("shop", text, 1); err != nil {
		p.t.Fatal(err)
	}
}

// isReady checks what the condition says.
func (p *proposing) isReady(want string) {
	p.t.Helper()
	if c := p.state("shop").Condition(); string(c.Status) != want {
		p.t.Fatalf("Ready is %s: %s", c.Status, c.Message)
	}
}

// TestTheEndOfAFailureIsTold has things fail that need no render, and go well again: whoever was told must not believe for ever that
// it fails.
func TestTheEndOfAFailureIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		publish, tell string
		fail          func(p *proposing, fails bool)
		want          []string
	}{
		"a pull request that cannot be looked at": {publishByPullRequest, tellCommit, func(p *proposing, fails bool) { p.hostAnswers(!fails) },
			[]string{"success", "failure", "success"}},
		"a source that cannot be read": {"[{git: {branch: rendered}}]", tellEvent, func(p *proposing, fails bool) {
			if fails {
				p.repository.Git("branch", "-m", "main", "gone")
			} else {
				p.repository.Git("branch", "-m", "gone", "main")
			}
		}, []string{"published", "failed", "unchanged"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := &listener{}
			p := newTelling(t, l, c.publish, c.tell)
			p.publishes("one")
			heard := l.all(p.runner)
			look := func() {
				if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "look", Drift: true, Since: time.Now()}); err != nil && !errors.As(err, new(*queue.RetryError)) {
					t.Fatal(err)
				}
				heard = append(heard, l.all(p.runner)...)
			}
			c.fail(p, true)
			look()
			p.isReady("False")
			c.fail(p, false)
			for range 3 {
				look()
				p.isReady("True")
			}
			if !slices.Equal(heard, c.want) {
				t.Errorf("heard %q, want %q", heard, c.want)
			}
			if runs := p.state("shop").Runs; runs[0].Outcome != "Unchanged" || !strings.HasPrefix(runs[0].Message, "it works again") || p.renderer.renders.Load() != 1 {
				t.Errorf("the last run: %+v; %d renders", runs[0], p.renderer.renders.Load())
			}
		})
	}
}

// TestAResultThatWaitsForItsWaveIsNotToldAsPublished holds a result back, and lets it go.
func TestAResultThatWaitsForItsWaveIsNotToldAsPublished(t *testing.T) {
	l := &listener{}
	p := newTelling(t, l, strings.Replace(publishByPullRequest, "bot}", "bot}, groupBy: Label, label: wave, waves: {order: [a, b]}", 1), tellCommit)
	const held = "waits for the rollout of 1234 to finish"
	turn := publish.Turn{Open: true, Held: held}
	p.runner.Targets.Turn = func(_ context.Context, _ *v1alpha1.GitPublish, _, revision string) (publish.Turn, error) {
		if revision == "" {
			return publish.Turn{Open: true}, nil
		}
		return turn, nil
	}
	p.publishes("one")
	if got := p.state("shop").Runs[0].Message; got != "1 object; "+held {
		t.Errorf("got %s", got)
	}
	heard := l.all(p.runner)
	turn.Held = ""
	if err := p.do("shop", "its turn", 1); err != nil {
		t.Fatal(err)
	}
	if heard = append(heard, l.all(p.runner)...); !slices.Equal(heard, []string{"pending", "success"}) {
		t.Errorf("heard %q", heard)
	}
}

// TestANewerRunIsToldAfterAnOlderOne has the first try of telling a failure take until the pipeline has published.
func TestANewerRunIsToldAfterAnOlderOne(t *testing.T) {
	for name, c := range map[string]struct {
		tell string
		want []string
	}{
		"statuses of one commit": {tellCommit, []string{"success"}},
		"events":                 {tellEvent, []string{"failed", "published"}},
	} {
		t.Run(name, func(t *testing.T) {
			later, once := make(chan struct{}), sync.Once{}
			l := &listener{answer: func(word string) (code int) {
				if strings.HasPrefix(word, "fail") {
					once.Do(func() {
						<-later
						code = http.StatusGatewayTimeout
					})
				}
				return code
			}}
			p := newTelling(t, l, publishByPullRequest, c.tell)
			p.hostAnswers(false)
			p.repository.Commit("one", map[string]string{"shop/text": "one"})
			if err := p.do("shop", "1", 1); !errors.As(err, new(*queue.RetryError)) {
				t.Fatal(err)
			}
			p.hostAnswers(true)
			if err := p.do("shop", "1", 1); err != nil {
				t.Fatal(err)
			}
			p.isReady("True")
			close(later)
			if heard := l.all(p.runner); !slices.Equal(heard, c.want) {
				t.Errorf("heard %q, want %q", heard, c.want)
			}
		})
	}
}

// TestNoticesAreBounded has one receiver hang, and another that is told meanwhile.
func TestNoticesAreBounded(t *testing.T) {
	var s notices
	hangs, told := make(chan struct{}), make(chan struct{})
	var sent []string
	notice := func(id string, send func()) *notice {
		n := &notice{log: slog.New(slog.DiscardHandler), send: func() error { send(); return nil }}
		n.run.Run.ID = id
		return n
	}
	for i := range 3 * maxNotices {
		id := fmt.Sprint(i)
		s.enqueueNotice(queueKey{"shop", "one"}, notice(id, func() {
			<-hangs
			sent = append(sent, id)
		}))
	}
	s.enqueueNotice(queueKey{"shop", "other"}, notice("other", func() { close(told) }))
	<-told
	close(hangs)
	s.sending.Wait()
	if len(sent) != maxNotices+1 || sent[0] != "0" || sent[1] != fmt.Sprint(2*maxNotices) || sent[maxNotices] != fmt.Sprint(3*maxNotices-1) || len(s.queues) != 0 {
		t.Errorf("sent %v, %d queues are left", sent, len(s.queues))
	}
}

// TestFluxIsToldOfWhatOneOfTwoPlacesGot has another place fail for good.
func TestFluxIsToldOfWhatOneOfTwoPlacesGot(t *testing.T) {
	l := &listener{}
	p := newTelling(t, l, "[{git: {branch: rendered}}, {git: {branch: foreign}}]", tellFlux)
	p.repository.Commit("zero", map[string]string{"x": "0"})
	p.repository.Git("branch", "foreign", "main")
	for _, text := range []string{"one", "two"} {
		p.publishes(text)
		if heard := l.all(p.runner); p.state("shop").Runs[0].Outcome != "Failed" || !slices.Equal(heard, []string{"flux"}) {
			t.Errorf("%s: heard %q after %+v", text, heard, p.state("shop").Runs[0].Run)
		}
		if err := p.do("shop", "again", 1); err != nil || len(l.all(p.runner)) != 0 {
			t.Errorf("it is told of what is published already, or: %v", err)
		}
	}
}

// TestFluxIsToldOfWhatAKilledRunHasPushed ends the process between the push and the saving of the state, of the first run and of a later one.
func TestFluxIsToldOfWhatAKilledRunHasPushed(t *testing.T) {
	l := &listener{}
	p := newTelling(t, l, "[{git: {branch: rendered}}]", tellFlux)
	var kill context.CancelFunc
	p.git.Wrap(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "git-receive-pack") {
				h.ServeHTTP(w, r)
				return
			}
			h.ServeHTTP(httptest.NewRecorder(), r)
			kill() // before anything is answered
			w.WriteHeader(http.StatusBadGateway)
		})
	})
	for _, text := range []string{"one", "two"} {
		p.repository.Commit(text, map[string]string{"shop/text": text})
		before := p.tip("rendered")
		var ctx context.Context
		ctx, kill = context.WithCancel(t.Context())
		err := p.runner.Do(ctx, queue.Job{Pipeline: "shop", Cause: text, Batch: 1, Since: time.Now()})
		kill()
		if heard := l.all(p.runner); !errors.Is(err, context.Canceled) || p.tip("rendered") == before || len(heard) != 0 {
			t.Fatalf("a run that was killed: %v, heard %q", err, heard)
		}
		if err := p.do("shop", text, 1); err != nil {
			t.Fatal(err)
		}
		if heard := l.all(p.runner); p.state("shop").Runs[0].Outcome != "Unchanged" || !slices.Equal(heard, []string{"flux"}) {
			t.Errorf("%s: heard %q after %+v", text, heard, p.state("shop").Runs[0].Run)
		}
		if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: "forced", Force: true, Since: time.Now()}); err != nil || len(l.all(p.runner)) != 0 {
			t.Errorf("it is told of what is published already, or: %v", err)
		}
	}
}

// TestAFailureThatWasNotToldIsToldWhenItComesAgain has one of two receivers refuse what it is told of a failure, and take it later.
func TestAFailureThatWasNotToldIsToldWhenItComesAgain(t *testing.T) {
	var refuses atomic.Bool
	refuses.Store(true)
	l := &listener{answer: func(word string) int {
		if word == "failure" && refuses.Load() {
			return http.StatusForbidden // which is not tried again
		}
		return 0
	}}
	p := newTelling(t, l, "[{git: {branch: rendered}}]", tellCommit, tellEvent)
	fail := func(cause string) []string {
		if err := p.runner.Do(t.Context(), queue.Job{Pipeline: "shop", Cause: cause, Force: true, Since: time.Now()}); err != nil {
			t.Fatal(err)
		}
		return l.all(p.runner)
	}
	p.repository.Commit("one", map[string]string{"shop/text": "broken"})
	for i, step := range []struct {
		does func()
		want []string
	}{
		{func() {}, []string{"failed"}},
		{func() {}, nil},
		{func() { refuses.Store(false) }, []string{"failure"}},
		{func() {}, nil},
		{func() { p.runner.notices.told = nil }, nil}, // another process
		{func() { p.forgetTold() }, nil},              // a state of an earlier version
	} {
		step.does()
		if heard := fail(fmt.Sprint(i)); !slices.Equal(heard, step.want) {
			t.Errorf("step %d: heard %q, want %q", i, heard, step.want)
		}
	}
	if runs := p.state("shop").Runs; len(runs) != 1 || runs[0].Repeats == 0 {
		t.Errorf("it is not one failure: %+v", runs)
	}
}

// forgetTold stores a state as versions did that did not keep who was told.
func (p *proposing) forgetTold() {
	p.t.Helper()
	state, revision, err := p.runner.Store.Load(p.t.Context(), "shop")
	if err == nil {
		state.Told = status.Told{}
		_, err = p.runner.Store.Save(p.t.Context(), "shop", state, revision)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}
