// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// proxied puts a handler in front of a registry.
func proxied(t *testing.T, registry string, front func(next http.Handler) http.Handler) string {
	t.Helper()
	target, err := url.Parse("http://" + registry)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
		},
		ErrorLog: quiet(),
	}
	return serve(t, front(proxy))
}

// TestFlaky has a registry that fails half of the requests: in turn with an error of the server, a connection that
// is cut, an answer that is cut short, and too many requests.
func TestFlaky(t *testing.T) {
	behind := inProcess(t)
	var n, failed atomic.Int64
	host := proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			i := n.Add(1)
			if i%2 == 0 {
				next.ServeHTTP(w, r)
				return
			}
			failed.Add(1)
			switch (i / 2) % 4 {
			case 0:
				w.WriteHeader(http.StatusBadGateway)
			case 1:
				panic(http.ErrAbortHandler)
			case 2:
				w.Header().Set("Content-Length", "1000")
				w.Write([]byte("{"))
			case 3:
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(http.StatusTooManyRequests)
			}
		})
	})
	var images []string
	want := map[string]string{}
	for i := range 20 {
		repo := fmt.Sprintf("/app%d:1", i)
		want[host+repo] = pushImage(t, behind+repo, int64(100*i+1), "linux/amd64")
		images = append(images, host+repo)
	}
	for round := range 3 {
		lock, err := Pin(t.Context(), "mesh", images, quick())
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := map[string]string{}
		for _, l := range lock.Spec.Images {
			got[l.Image] = l.Digest
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	if failed.Load() < 60 {
		t.Errorf("only %d requests of %d failed", failed.Load(), n.Load())
	}
	t.Logf("%d requests, of these %d failed", n.Load(), failed.Load())
}

// TestDown gives up after the attempts, and says so.
func TestDown(t *testing.T) {
	var n atomic.Int64
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n.Add(1)
		panic(http.ErrAbortHandler)
	}))
	o := quick()
	o.Retry.Attempts = 4
	_, err := Pin(t.Context(), "mesh", []string{host + "/app:1"}, o)
	if err == nil || !strings.Contains(err.Error(), "(tried 4 times)") {
		t.Errorf("error %v", err)
	}
}

// TestSlow has a registry whose answers take longer than the time for a request, at first, and then for ever.
func TestSlow(t *testing.T) {
	behind := inProcess(t)
	digest := pushImage(t, behind+"/app:1", 1, "linux/amd64")
	var slow atomic.Int64
	slow.Store(3)
	done := make(chan struct{})
	host := proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if slow.Add(-1) >= 0 {
				select {
				case <-r.Context().Done():
				case <-done:
				}
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	t.Cleanup(func() { close(done) })
	o := quick()
	o.Timeout = time.Second
	lock, err := Pin(t.Context(), "mesh", []string{host + "/app:1"}, o)
	if err != nil || lock.Spec.Images[0].Digest != digest {
		t.Fatalf("slow at first: %v", err)
	}
	slow.Store(1 << 30)
	o.Retry.Attempts = 3
	start := time.Now()
	_, err = Pin(t.Context(), "mesh", []string{host + "/app:1"}, o)
	if err == nil || !strings.Contains(err.Error(), "did not respond within 1s (tried 3 times)") {
		t.Errorf("slow for ever: %v", err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s to give up", took)
	}
}

// TestCancel ends with the context, also while it waits for the next attempt.
func TestCancel(t *testing.T) {
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	o := quick()
	o.Retry = Retry{Attempts: 100, First: time.Hour, Max: time.Hour}
	gaveUp := errors.New("the user gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(gaveUp) })
	start := time.Now()
	_, err := Pin(ctx, "mesh", []string{host + "/a:1", host + "/b:1"}, o)
	if !errors.Is(err, gaveUp) || time.Since(start) > time.Minute {
		t.Errorf("error %v after %s", err, time.Since(start))
	}
	if _, err := Verify(ctx, v1alpha1.NewImageLock("mesh", []v1alpha1.LockedImage{{Image: host + "/a:1"}}), o); !errors.Is(err, gaveUp) {
		t.Errorf("verifying: %v", err)
	}
}

// TestHeadRefused has a registry that does not answer HEAD, as some do.
func TestHeadRefused(t *testing.T) {
	behind := inProcess(t)
	digest := pushImage(t, behind+"/app:1", 1, "linux/amd64")
	host := proxied(t, behind, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodHead {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			next.ServeHTTP(w, r)
		})
	})
	got, err := Verify(t.Context(), v1alpha1.NewImageLock("mesh", []v1alpha1.LockedImage{{Image: host + "/app:1", Digest: digest}}), quick())
	if err != nil || got[0].State != Current {
		t.Errorf("%+v, error %v", got, err)
	}
}

// TestHuge refuses an answer without end.
func TestHuge(t *testing.T) {
	host := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/" {
			return
		}
		chunk := make([]byte, 1<<20)
		for range 64 {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	}))
	_, err := Pin(t.Context(), "mesh", []string{host + "/app:1"}, quick())
	if err == nil || !strings.Contains(err.Error(), "is larger than 8 MiB") {
		t.Errorf("error %v", err)
	}
}

// TestUnreachableRegistry: the message names the registry and what to check, without the URL of a request.
func TestUnreachableRegistry(t *testing.T) {
	request := func(err error) error {
		return &url.Error{Op: "Get", URL: "https://registry.example.com/v2/", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
	}
	dns := request(&net.DNSError{Err: "no such host", Name: "registry.example.com", IsNotFound: true})
	const want = "the registry registry.example.com cannot be found (no such host); check its name, and whether this machine is online"
	if got := describeUnreachable(dns).Error(); got != want {
		t.Error(got)
	}
	if other := errors.New("denied"); !errors.Is(describeUnreachable(other), other) {
		t.Error("another error changed")
	}
}
