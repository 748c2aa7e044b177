// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// downServer is an API server that has one pipeline, and can be made not to answer.
type downServer struct {
	*httptest.Server
	refuses, throttles atomic.Bool
	watches            atomic.Int64 // that were begun
}

func newDownServer(t *testing.T) *downServer {
	s := &downServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		query := r.URL.Query()
		switch {
		case s.throttles.Load():
			answer(t, w, http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)
		case query.Get("sendInitialEvents") != "":
			answer(t, w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid)
		case query.Get("watch") != "":
			w.WriteHeader(http.StatusOK)
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Error(err)
			}
			s.watches.Add(1)
			<-r.Context().Done()
		default:
			items := []any{}
			if strings.HasSuffix(r.URL.Path, "/"+pipelines.Resource) {
				items = append(items, inVersion("web", "7").Object)
			}
			list := map[string]any{"apiVersion": "prerig.dev/v1alpha1", "kind": "List", "metadata": map[string]any{"resourceVersion": "7"}, "items": items}
			if err := json.NewEncoder(w).Encode(list); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func answer(t *testing.T, w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.WriteHeader(code)
	status := metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason}
	if err := json.NewEncoder(w).Encode(status); err != nil {
		t.Error(err)
	}
}

// client returns one whose connections are refused while the server is to refuse them.
func (s *downServer) client(t *testing.T) *Client {
	client, err := dynamic.NewForConfig(&rest.Config{Host: s.URL, QPS: -1, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		if s.refuses.Load() {
			return nil, &net.OpError{Op: "dial", Net: network, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &Client{dynamic: client, host: s.URL}
}

// TestServerThatDoesNotAnswerIsNoticed has an API server go while its objects are followed. An informer tells nobody of that: for it, a
// server that refuses connections, or has too many requests, is one to ask again.
func TestServerThatDoesNotAnswerIsNoticed(t *testing.T) {
	for name, down := range map[string]func(s *downServer) *atomic.Bool{
		"it refuses connections":   func(s *downServer) *atomic.Bool { return &s.refuses },
		"it has too many requests": func(s *downServer) *atomic.Bool { return &s.throttles },
	} {
		t.Run(name, func(t *testing.T) {
			s := newDownServer(t)
			w := newWatcher(s.client(t), []string{metav1.NamespaceAll}, slog.New(slog.DiscardHandler))
			w.mendEvery, w.checkEvery = 10*time.Millisecond, 50*time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := w.startAndSync(ctx); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the objects are not watched", func() bool { return s.watches.Load() >= 2 })
			down(s).Store(true)
			s.CloseClientConnections()
			eventually(t, "nobody notices that it is down", func() bool { return w.Problem() != nil })
			if all, err := w.Pipelines(); err == nil {
				t.Errorf("what is known is taken for what is there: %v", all)
			}
			down(s).Store(false)
			eventually(t, "nobody notices that it is up", func() bool { return w.Problem() == nil })
			if all, err := w.Pipelines(); err != nil || len(all) != 1 {
				t.Errorf("afterwards there are %v, %v", all, err)
			}
		})
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}
