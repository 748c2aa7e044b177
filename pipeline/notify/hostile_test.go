// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/secret"
)

// hostileTarget has a notifier with a token, and a notification to each kind of target at a server.
func hostileTarget(t *testing.T, server string, rules egress.Rules, token string) (*Notifier, map[string]v1alpha1.Notification) {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "team", "host"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "team", "host", "token"), []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	n := New(secret.Dir{Path: dir}, egress.NewDialer(rules))
	n.wait = time.Millisecond
	return n, map[string]v1alpha1.Notification{
		"status": {CommitStatus: &v1alpha1.CommitStatus{Provider: "Gitea", URL: server + "/api/v1", SecretRef: *ref("host")}},
		"flux":   {FluxReceiver: &v1alpha1.Endpoint{URL: server + "/hook/secret-path", SecretRef: ref("host")}},
		"event":  {CloudEvent: &v1alpha1.Endpoint{URL: server + "/hook/secret-path", SecretRef: ref("host")}},
	}
}

// TestHostileTargetsOfNotifications has targets that redirect to other servers and schemes, answer without an end, or not at all. None
// gets the token elsewhere, and none of it costs more than some requests.
func TestHostileTargetsOfNotifications(t *testing.T) {
	var strayed, sent atomic.Int64
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strayed.Add(1) }))
	t.Cleanup(elsewhere.Close)
	redirect := func(status int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", to)
			w.WriteHeader(status)
		}
	}
	endless := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			for r.Context().Err() == nil && sent.Load() < 1<<30 {
				n, err := w.Write(make([]byte, 64<<10))
				if sent.Add(int64(n)); err != nil {
					return
				}
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"307 to another server":      redirect(307, elsewhere.URL+"/x"),
		"308 to another server":      redirect(308, elsewhere.URL+"/x"),
		"302 to another server":      redirect(302, elsewhere.URL+"/x"),
		"without a scheme":           redirect(307, "//"+strings.TrimPrefix(elsewhere.URL, "http://")+"/x"),
		"with a user":                redirect(307, strings.Replace(elsewhere.URL, "http://", "http://a:b@", 1)),
		"to a metadata service":      redirect(307, "http://169.254.169.254/latest/meta-data"),
		"to its mapped address":      redirect(307, "http://[::ffff:169.254.169.254]/"),
		"to a file":                  redirect(307, "file:///etc/passwd"),
		"to a scheme of its own":     redirect(307, "gopher://"+strings.TrimPrefix(elsewhere.URL, "http://")),
		"to nowhere":                 redirect(307, ""),
		"to what is no URL":          redirect(307, "http://%zz"),
		"to itself":                  func(w http.ResponseWriter, r *http.Request) { redirect(307, r.URL.Path)(w, r) },
		"to a longer path each time": func(w http.ResponseWriter, r *http.Request) { redirect(307, r.URL.Path+"/x")(w, r) },
		"an answer without an end":   endless(200),
		"a refusal without an end":   endless(500),
		"many headers":               func(w http.ResponseWriter, _ *http.Request) { manyHeaders(w) },
		"a wait of centuries": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "99999999999")
			w.WriteHeader(503)
		},
		"a connection that is closed": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		var calls atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			_, _ = io.Copy(io.Discard, r.Body)
			answer(w, r)
		}))
		n, targets := hostileTarget(t, server.URL, egress.Rules{}, "secret-token")
		for kind, to := range targets {
			run := published
			run.Changed, run.SourceURL = true, "https://git.example/org/apps.git"
			began := time.Now()
			err := n.Send(t.Context(), []v1alpha1.Notification{to}, run)
			if strayed.Load() > 0 || calls.Swap(0) > 30 || time.Since(began) > 30*time.Second {
				t.Errorf("%s, %s: %d calls elsewhere, %d calls in %s", name, kind, strayed.Swap(0), calls.Load(), time.Since(began))
			}
			if err != nil && (strings.Contains(err.Error(), "secret-") || len(err.Error()) > 1000) {
				t.Errorf("%s, %s: it tells %.300v", name, kind, err)
			}
		}
		if got := sent.Swap(0); got > 64<<20 {
			t.Errorf("%s: %d MiB were read", name, got>>20)
		}
		server.CloseClientConnections()
		server.Close()
	}
}

func manyHeaders(w http.ResponseWriter) {
	for i := range 5000 {
		w.Header().Set(fmt.Sprintf("X-%d", i), strings.Repeat("x", 1000))
	}
}

// TestNotificationsForgeNoHeaders puts line breaks and control characters where headers come from: tokens, names of runs and
// pipelines, and outcomes.
func TestNotificationsForgeNoHeaders(t *testing.T) {
	for _, text := range []string{"a\r\nX-Forged: 1", "a\nX-Forged: 1", "a\x00b", "a\r\n\r\nGET / HTTP/1.1\r\nX-Forged: 1"} {
		var forged atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Forged") != "" || r.Method != http.MethodPost {
				forged.Add(1)
			}
		}))
		n, targets := hostileTarget(t, server.URL, egress.Rules{}, "secret-"+text)
		for kind, to := range targets {
			run := published
			run.Changed, run.SourceURL, run.Name = true, "https://git.example/org/apps.git", text
			run.Run.ID, run.Run.Outcome, run.Run.Message, run.Commit = text, text, text, strings.Repeat("a", 40)
			err := n.Send(t.Context(), []v1alpha1.Notification{to}, run)
			if forged.Swap(0) > 0 || err != nil && strings.Contains(err.Error(), "secret-") {
				t.Errorf("%s with %q: %v", kind, text, err)
			}
		}
		server.Close()
	}
}

// TestNotificationsStayWithinEgress has targets at addresses that the daemon does not connect to, in other notations, too.
func TestNotificationsStayWithinEgress(t *testing.T) {
	for _, at := range []string{
		"http://169.254.169.254", "http://[::ffff:a9fe:a9fe]", "http://[64:ff9b::a9fe:a9fe]", "http://[2002:a9fe:a9fe::1]", "http://[fd00:ec2::254]",
		"http://0xa9.0xfe.0xa9.0xfe", "http://2852039166", "http://169.254.43518",
	} {
		n, targets := hostileTarget(t, at, egress.Rules{}, "secret-token")
		n.client.Timeout = 3 * time.Second
		n.tries = 1
		for kind, to := range targets {
			run := published
			run.Changed, run.SourceURL = true, "https://git.example/org/apps.git"
			if err := n.Send(t.Context(), []v1alpha1.Notification{to}, run); err == nil {
				t.Errorf("%s was sent to %s", kind, at)
			}
		}
	}
}
