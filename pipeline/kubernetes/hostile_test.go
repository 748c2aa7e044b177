// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/internal/storetest"
)

// TestMain has the memory of a daemon from package deploy.
func TestMain(m *testing.M) {
	debug.SetMemoryLimit(1 << 30)
	os.Exit(m.Run())
}

// hostileServer is an API server whose watches and lists answer, with a client that has a token.
func hostileServer(t *testing.T, list, watch http.HandlerFunc) *Client {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // no token is sent without TLS
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Has("sendInitialEvents"): // as servers answer that do not know it
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","message":"m","code":422}`)
		case !strings.HasSuffix(r.URL.Path, "/renderpipelines"):
			if r.URL.Query().Get("watch") == "true" {
				silent(w, r)
				return
			}
			fmt.Fprint(w, `{"kind":"InjectionPolicyList","apiVersion":"prerig.dev/v1alpha1","metadata":{"resourceVersion":"1"},"items":[]}`)
		case r.URL.Query().Get("watch") == "true":
			watch(w, r)
		default:
			list(w, r)
		}
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	name := filepath.Join(t.TempDir(), "config")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: %q, insecure-skip-tls-verify: true}}]\nusers: [{name: a, user: {token: secret-token}}]\n"+
		"contexts: [{name: a, context: {cluster: a, user: a}}]\ncurrent-context: a\n", server.URL)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := Connect(name, "test")
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func onePipeline(namespace, version string) string {
	return fmt.Sprintf(`{"apiVersion":"prerig.dev/v1alpha1","kind":"RenderPipeline","metadata":{"name":"web","namespace":%q,"resourceVersion":%q,"uid":"u"},"spec":{}}`,
		namespace, version)
}

func listOf(next string, items ...string) string {
	return fmt.Sprintf(`{"kind":"RenderPipelineList","apiVersion":"prerig.dev/v1alpha1","metadata":{"resourceVersion":"5","continue":%q},"items":[%s]}`,
		next, strings.Join(items, ","))
}

func answerWith(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

// silent is a watch without events.
func silent(w http.ResponseWriter, r *http.Request) {
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// endless writes a text again and again, until the client has enough, and counts the bytes.
func endless(begin, text string, sent *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		n, err := io.WriteString(w, begin)
		for total := 0; err == nil && total < 2<<30; total += n {
			sent.Add(int64(n))
			n, err = io.WriteString(w, text)
		}
	}
}

// listCase is a list, and a part of the error about it, "" for one that is given up after some seconds.
type listCase struct {
	list http.HandlerFunc
	want string
}

func (c listCase) longest() time.Duration {
	if c.want == "" {
		return 5 * time.Second
	}
	return 2 * time.Minute
}

// TestListsOfAHostileAPIServerEnd has lists that go on without an end, in pages or in one of them. Each is an error, in bounded memory.
func TestListsOfAHostileAPIServerEnd(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	var sent, pages atomic.Int64
	for name, c := range map[string]listCase{
		"the same page again": {answerWith(listOf("again", onePipeline("shop", "1"))), ""},
		"other pages":         {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, listOf(fmt.Sprint(pages.Add(1)))) }, ""},
		"an endless name":     {endless(`{"kind":"RenderPipelineList","apiVersion":"prerig.dev/v1alpha1","metadata":{"resourceVersion":"`, long, &sent), "larger than such answers are"},
		"endless objects":     {endless(`{"kind":"RenderPipelineList","apiVersion":"prerig.dev/v1alpha1","items":[`, onePipeline("shop", long)+",", &sent), "larger than such answers are"},
		"empty elements":      {answerWith(listOf("", strings.Repeat("{},", 2<<20)+"{}")), "lists of more than"},
		"a refusal without an end": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			endless(`{"kind":"Status","message":"`, long, &sent)(w, r)
		}, "larger than such answers are"},
		"another type":      {answerWith(`[]`), "reading renderpipelines"},
		"an item of text":   {answerWith(listOf("", `"x"`)), "reading renderpipelines"},
		"a number of items": {answerWith(`{"kind":"RenderPipelineList","apiVersion":"prerig.dev/v1alpha1","items":7}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			client := hostileServer(t, c.list, silent)
			ctx, cancel := context.WithTimeout(t.Context(), c.longest())
			defer cancel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Watch(ctx, client, nil, slog.New(slog.DiscardHandler))
			runtime.ReadMemStats(&after)
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %.300v", err)
			}
			if sent.Swap(0) > 400<<20 || after.Sys > before.Sys+1<<30 {
				t.Errorf("%d MiB were read, and the process has %d MiB", sent.Load()>>20, after.Sys>>20)
			}
		})
	}
}

// TestEventsOfAHostileAPIServer has watches that flood, end at once, lie about what they are about, or send one event without an end.
// The objects that are known stay as they were, and requests are not made again and again at once.
func TestEventsOfAHostileAPIServer(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	event := func(kind, object string) string { return fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", kind, object) }
	failure := func(code int, reason string) string {
		return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"m","code":%d}`, reason, code)
	}
	then := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, text); silent(w, r) }
	}
	var sent atomic.Int64
	for name, watch := range map[string]http.HandlerFunc{
		"objects of another namespace":  then(event("ADDED", onePipeline("evil", "6"))),
		"an object without a namespace": then(event("ADDED", onePipeline("", "6"))),
		"an event without an end":       endless(`{"type":"ADDED","object":{"metadata":{"name":"`, long, &sent),
		"an event of empty elements":    endless(`{"type":"ADDED","object":{"spec":[`, strings.Repeat("{},", 1<<18), &sent),
		"410 for ever": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(410)
			fmt.Fprint(w, failure(410, "Expired"))
		},
		"410 in events":   answerWith(event("ERROR", failure(410, "Expired"))),
		"it ends at once": answerWith(""),
		"500 for ever":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"429 that asks to wait for ever": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "999999999")
			w.WriteHeader(429)
		},
		"events of unknown types":     then(strings.Repeat(event("EVIL", onePipeline("shop", "6")), 10)),
		"bookmarks that go back":      then(strings.Repeat(event("BOOKMARK", onePipeline("shop", "1")), 1000)),
		"bookmarks without a version": then(event("BOOKMARK", onePipeline("shop", ""))),
		"another kind":                then(event("ADDED", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"s","namespace":"evil"}}`)),
		"no object":                   then(`{"type":"ADDED","object":null}` + "\n"),
		"no JSON":                     then("<html>\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			client := hostileServer(t, answerWith(listOf("", onePipeline("shop", "5"))), func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				watch(w, r)
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			watcher, err := Watch(ctx, client, []string{"shop"}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(4 * time.Second)
			if n := calls.Load(); n > 30 {
				t.Errorf("it is asked %d times in 4 s", n)
			}
			objects, err := watcher.Pipelines()
			if err == nil && (len(objects) != 1 || objects[0].Namespace != "shop") {
				t.Errorf("got %+v", objects)
			}
		})
	}
	t.Cleanup(func() {
		if n := sent.Load(); n > 1<<30 {
			t.Errorf("%d MiB of events without an end were read", n>>20)
		}
	})
}

// TestAPIServersRedirectNoTokens: client-go adds the token to each request, that to which a redirect leads, too.
func TestAPIServersRedirectNoTokens(t *testing.T) {
	var got atomic.Value
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Store(r.Header.Get("Authorization"))
		fmt.Fprint(w, listOf(""))
	}))
	t.Cleanup(elsewhere.Close)
	for _, status := range []int{301, 302, 307, 308} {
		client := hostileServer(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL+r.URL.Path, status)
		}, silent)
		_, err := Watch(t.Context(), client, nil, slog.New(slog.DiscardHandler))
		if err == nil || !strings.Contains(err.Error(), "redirects to another server") || got.Load() != nil {
			t.Errorf("%d: the other server got %q; error %v", status, got.Swap(""), err)
		}
	}
}

// TestAStormOfConflictsIsRare has another writer that wins each time.
func TestAStormOfConflictsIsRare(t *testing.T) {
	object := newPipeline("web", "Orphan", false)
	r, client := newTestReporter(object)
	var writes atomic.Int64
	client.PrependReactor("update", "renderpipelines", func(clienttesting.Action) (bool, k8sruntime.Object, error) {
		writes.Add(1)
		return true, nil, apierrors.NewConflict(pipelines.GroupResource(), "web", nil)
	})
	_, r.Store = storetest.Open(t)
	r.RequestDigest = func(*v1alpha1.RenderPipeline) string { return "" }
	r.Removals = func() []prune.Removal { return nil }
	r.Watcher.storeObject(pipelines, object)
	openCatalog(t, r)
	held := func() bool { return true }
	r.TryLead = func(context.Context, string) (func() bool, func(), bool, error) { return held, func() {}, true, nil }
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	r.Run(ctx)
	if n := writes.Load(); n == 0 || n > 20 {
		t.Errorf("the status is written %d times in 5 s", n)
	}
}

// TestTextsForTheAPIServerAreValid cuts long texts in the middle of characters, and names at dots.
func TestTextsForTheAPIServerAreValid(t *testing.T) {
	text := "a" + strings.Repeat("€", maxMessage)
	own := conditionsOf(metav1.ConditionFalse, "Reason", text, "")
	for _, c := range mergeConditions(nil, own, 1) {
		if !utf8.ValidString(c.Message) || len(c.Message) > maxMessage {
			t.Errorf("the message of %s has %d bytes, valid: %v", c.Type, len(c.Message), utf8.ValidString(c.Message))
		}
	}
	object := newPipeline(strings.Repeat("a", maxEventName-1)+".b", "Orphan", false)
	event := newEvent(object, happened{id: "id", kind: "Normal", reason: "R", message: text, at: time.Now()})
	message, _ := event.Object["message"].(string)
	if !utf8.ValidString(message) || len(message) > maxEventMessage || strings.Contains(event.GetName(), "..") {
		t.Errorf("the event %s has a message of %d bytes, valid: %v", event.GetName(), len(message), utf8.ValidString(message))
	}
	if _, err := json.Marshal(event); err != nil {
		t.Error(err)
	}
}
