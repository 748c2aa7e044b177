// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/gittest"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
)

// waitFor waits until that many are in the next look.
func waitFor(t *testing.T, f *fetchGroup, n int) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(time.Millisecond) {
		waiting := 0
		f.mu.Lock()
		for _, queue := range f.keys {
			if queue.next != nil {
				waiting = queue.next.waiting
			}
		}
		f.mu.Unlock()
		if waiting == n {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("%d wait, want %d", waiting, n)
		}
	}
}

func TestLooksThatBeginLaterAreShared(t *testing.T) {
	for name, failure := range map[string]error{"that answer": nil, "that fail": errors.New("gone"), "that take too long": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			const n = 20
			f, looks, hold, begun := &fetchGroup{}, atomic.Int64{}, make(chan struct{}), make(chan struct{}, n)
			look := func(context.Context) (*Snapshot, error) {
				number := looks.Add(1)
				begun <- struct{}{}
				<-hold
				if number > 1 && failure != nil {
					return nil, failure
				}
				return &Snapshot{Revision: fmt.Sprint(number)}, nil
			}
			var all sync.WaitGroup
			all.Go(func() {
				if s, _, err := f.doShared(t.Context(), "k", look); err != nil || s.Revision != "1" {
					t.Errorf("the first: %+v, %v", s, err)
				}
			})
			<-begun
			before := time.Now()
			var failed, left atomic.Int64
			for range n {
				all.Go(func() {
					s, at, err := f.doShared(t.Context(), "k", look)
					switch {
					case errors.Is(err, errNotShared):
						left.Add(1)
					case err != nil:
						failed.Add(1)
					case s.Revision != "2" || at.Before(before):
						t.Errorf("look %s is that of an earlier time, %s", s.Revision, before.Sub(at))
					}
				})
			}
			waitFor(t, f, n)
			// Who goes takes nobody along.
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			if _, _, err := f.doShared(gone, "k", look); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			close(hold)
			all.Wait()
			wantFailed, wantLeft := int64(0), int64(0)
			switch {
			case errors.Is(failure, context.DeadlineExceeded):
				wantFailed = n
			case failure != nil:
				wantFailed, wantLeft = 1, n-1
			}
			if looks.Load() != 2 || failed.Load() != wantFailed || left.Load() != wantLeft {
				t.Errorf("%d looks, %d have failed, %d are to look themselves", looks.Load(), failed.Load(), left.Load())
			}
		})
	}
}

func TestALookThatPanicsIsAnError(t *testing.T) {
	f := &fetchGroup{}
	for range 2 {
		if _, _, err := f.doShared(t.Context(), "k", func(context.Context) (*Snapshot, error) { panic("odd") }); !errors.As(err, new(*fault.Error)) {
			t.Error(err)
		}
	}
}

// TestWhoeverWaitsLastEndsTheLook and no look begins for nobody.
func TestWhoeverWaitsLastEndsTheLook(t *testing.T) {
	f, looks, begun := &fetchGroup{}, atomic.Int64{}, make(chan struct{}, 10)
	look := func(ctx context.Context) (*Snapshot, error) {
		looks.Add(1)
		begun <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	first, endFirst := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	defer endFirst()
	defer endSecond()
	var all sync.WaitGroup
	all.Go(func() { _, _, _ = f.doShared(first, "k", look) })
	<-begun
	all.Go(func() { _, _, _ = f.doShared(second, "k", look) })
	waitFor(t, f, 1)
	endSecond()
	waitFor(t, f, 0)
	endFirst()
	all.Wait()
	if looks.Load() != 1 {
		t.Errorf("%d looks", looks.Load())
	}
	if s, _, err := f.doShared(t.Context(), "k", func(context.Context) (*Snapshot, error) { return &Snapshot{Revision: "x"}, nil }); err != nil || s.Revision != "x" {
		t.Errorf("afterwards: %+v, %v", s, err)
	}
}

// TestManyThatAreAskedForAtOnceAskTheServerOnce, or once more for those who came while it was asked.
func TestManyThatAreAskedForAtOnceAskTheServerOnce(t *testing.T) {
	const n = 12
	server := gittest.New(t)
	repository := server.Repository(t, "apps")
	commit := repository.Commit("first", map[string]string{"app/text": "one"})
	begun, hold := make(chan struct{}, 1), make(chan struct{})
	var asked atomic.Int64
	server.Intercept(func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/info/refs") && asked.Add(1) == 1 {
			begun <- struct{}{}
			<-hold
		}
		return false
	})
	shared := Share(New(Options{StateDir: t.TempDir()}))
	src := v1alpha1.Source{Git: &v1alpha1.GitSource{URL: repository.URL, Ref: v1alpha1.GitRef{Branch: "main"}}}
	var all sync.WaitGroup
	fetch := func() {
		all.Go(func() {
			if s, err := shared.Fetch(t.Context(), Scope{Namespace: "team"}, src, ""); err != nil || s.Revision != "main@sha1:"+commit || s.Resolved.IsZero() {
				t.Errorf("%+v, %v", s, err)
			}
		})
	}
	fetch()
	<-begun
	for range n - 1 {
		fetch()
	}
	waitFor(t, &shared.looks, n-1)
	close(hold)
	all.Wait()
	if got := asked.Load(); got > 2 {
		t.Errorf("the server was asked %d times for %d pipelines", got, n)
	}
}

// TestASourceThatDoesNotAnswerIsNamed: whoever waits may give up before the look that is shared does.
func TestASourceThatDoesNotAnswerIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	url := "http://" + listener.Addr().String() + "/silent.git"
	shared := Share(New(Options{StateDir: t.TempDir()}))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, _, err = shared.Newest(ctx, Scope{Namespace: "team"}, v1alpha1.Source{Git: &v1alpha1.GitSource{URL: url}})
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "fetching from "+url) {
		t.Errorf("got %v", err)
	}
}
