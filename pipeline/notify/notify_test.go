// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	"github.com/google/go-cmp/cmp"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/tcptest"
	"github.com/prerig/prerig/pipeline/secret"
)

type secrets map[string]string

func (s secrets) Secret(_ context.Context, namespace, name string, _ secret.Purpose) (map[string][]byte, error) {
	return map[string][]byte{"token": []byte(s[namespace+"/"+name])}, nil
}

// request is what arrived.
type request struct {
	Path   string
	Header http.Header
	Body   string
}

// sink answers with the statuses in turn, the last one for ever.
func sink(t *testing.T, statuses ...int) (*httptest.Server, *[]request) {
	var got []request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, request{r.URL.EscapedPath(), r.Header, string(body)})
		w.WriteHeader(statuses[min(len(got), len(statuses))-1])
	}))
	t.Cleanup(s.Close)
	return s, &got
}

func notifier(s secrets) *Notifier {
	n := New(s, nil)
	n.wait = time.Millisecond
	return n
}

var published = Run{
	Namespace: "team", Name: "shop", SourceURL: "https://git.example/org/sub/apps.git", Commit: strings.Repeat("a", 40),
	Run:  v1alpha1.Run{ID: "run-1", Revision: "main@sha1:aaa", Outcome: "Published", Message: "12 objects"},
	Page: "https://prerig.example/runs/run-1", Changed: true,
}

func ref(name string) *meta.LocalObjectReference { return &meta.LocalObjectReference{Name: name} }

func TestFluxReceiverGetsASignedCallWhenSomethingWasPublished(t *testing.T) {
	s, got := sink(t, 503, 200)
	to := []v1alpha1.Notification{{FluxReceiver: &v1alpha1.Endpoint{URL: s.URL + "/hook/abc", SecretRef: ref("flux")}}}
	n := notifier(secrets{"team/flux": "key"})
	if err := n.Send(t.Context(), to, published); err != nil {
		t.Fatal(err)
	}
	if len(*got) != 2 {
		t.Fatalf("%d calls, want one that is refused and one more", len(*got))
	}
	mac := hmac.New(sha256.New, []byte("key"))
	mac.Write([]byte((*got)[1].Body))
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); (*got)[1].Header.Get("X-Signature") != want {
		t.Errorf("X-Signature is %q, want %q", (*got)[1].Header.Get("X-Signature"), want)
	}
	partly := published // published at one of two places
	partly.Run.Outcome = "Failed"
	if err := n.Send(t.Context(), to, partly); err != nil || len(*got) != 3 {
		t.Errorf("a run that has changed something and failed: %d calls, error %v", len(*got), err)
	}
	unchanged := published
	unchanged.Run.Outcome, unchanged.Changed = "Unchanged", false
	if err := n.Send(t.Context(), to, unchanged); err != nil || len(*got) != 3 {
		t.Errorf("a run without a change called Flux: %d calls, error %v", len(*got), err)
	}
}

func TestCloudEvent(t *testing.T) {
	s, got := sink(t, 202)
	to := []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: s.URL}}}
	if err := notifier(nil).Send(t.Context(), to, published); err != nil {
		t.Fatal(err)
	}
	h := (*got)[0].Header
	attributes := []string{h.Get("Ce-Specversion"), h.Get("Ce-Id"), h.Get("Ce-Source"), h.Get("Ce-Type")}
	if diff := cmp.Diff([]string{"1.0", "run-1", "/prerig.dev/pipelines/team/shop", "dev.prerig.run.published"}, attributes); diff != "" {
		t.Error(diff)
	}
}

func TestCommitStatus(t *testing.T) {
	for provider, want := range map[string]struct{ path, header, value, good, bad string }{ // what waits is pending at all of them
		"GitHub": {"/repos/org/sub/apps/statuses/" + published.Commit, "Authorization", "Bearer tok", "success", "failure"},
		"Gitea":  {"/repos/org/sub/apps/statuses/" + published.Commit, "Authorization", "token tok", "success", "failure"},
		"GitLab": {"/projects/org%2Fsub%2Fapps/statuses/" + published.Commit, "Private-Token", "tok", "success", "failed"},
	} {
		t.Run(provider, func(t *testing.T) {
			s, got := sink(t, 201)
			to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: provider, URL: s.URL, SecretRef: *ref("host")}}}
			failed := published
			failed.Run.Outcome, failed.Run.Message = "Failed", strings.Repeat("é", 500)
			waits := published
			waits.Run.Outcome, waits.Waits = "Unchanged", true
			for _, r := range []Run{published, failed, waits} {
				if err := notifier(secrets{"team/host": "tok\n"}).Send(t.Context(), to, r); err != nil {
					t.Fatal(err)
				}
			}
			for i, state := range []string{want.good, want.bad, "pending"} {
				r := (*got)[i]
				var body map[string]string
				if err := json.Unmarshal([]byte(r.Body), &body); err != nil {
					t.Fatal(err)
				}
				if r.Path != want.path || r.Header.Get(want.header) != want.value || body["state"] != state {
					t.Errorf("call %d: path %s, header %q, body %v", i, r.Path, r.Header.Get(want.header), body)
				}
				if len([]rune(body["description"])) > maxDescription || body["context"] != "prerig/team/shop" || body["target_url"] != published.Page {
					t.Errorf("call %d: body %v", i, body)
				}
			}
		})
	}
}

func TestErrorsNeverTellTheURLOfAHook(t *testing.T) {
	to := []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: "http://127.0.0.1:1/very-secret-path"}}}
	err := notifier(nil).Send(t.Context(), to, published)
	if err == nil || strings.Contains(err.Error(), "very-secret") {
		t.Errorf("got error %v", err)
	}
}

func TestRefusalIsNotRepeated(t *testing.T) {
	s, got := sink(t, 403)
	to := []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: s.URL}}}
	if err := notifier(nil).Send(t.Context(), to, published); err == nil || len(*got) != 1 {
		t.Errorf("%d calls, error %v; want one call and an error", len(*got), err)
	}
}

// TestAServerIsLeftAloneForAsLongAsItAsks, and not asked again where that is longer than there is time.
func TestAServerIsLeftAloneForAsLongAsItAsks(t *testing.T) {
	for after, calls := range map[string]int{"1": 2, "3600": 1, "Fri, 31 Dec 9999 23:59:59 GMT": 1, "soon": 2} {
		var came []time.Time
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if came = append(came, time.Now()); len(came) == 1 {
				w.Header().Set("Retry-After", after)
				w.WriteHeader(http.StatusTooManyRequests)
			}
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := notifier(nil).Send(ctx, []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: s.URL}}}, published)
		cancel()
		s.Close()
		if len(came) != calls || (err == nil) != (calls == 2) || after == "1" && came[1].Sub(came[0]) < time.Second {
			t.Errorf("Retry-After %q: called at %v, error %v", after, came, err)
		}
	}
}

// TestRedirectionsAreFollowedWithinAServerOnly has a server send a call elsewhere. One that becomes a question is answered
// with success and has told nobody, and a token must not go to a server that the pipeline does not name.
func TestRedirectionsAreFollowedWithinAServerOnly(t *testing.T) {
	for name, c := range map[string]struct {
		code          int
		other, follow bool
	}{
		"moved, another method": {code: http.StatusMovedPermanently},
		"see other":             {code: http.StatusSeeOther},
		"renamed repository":    {code: http.StatusTemporaryRedirect, follow: true},
		"permanently renamed":   {code: http.StatusPermanentRedirect, follow: true},
		"another server":        {code: http.StatusPermanentRedirect, other: true},
	} {
		t.Run(name, func(t *testing.T) {
			elsewhere, got := sink(t, 200)
			calls := 0
			var here *httptest.Server
			here = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, "/new") {
					elsewhere.Config.Handler.ServeHTTP(w, r)
					return
				}
				calls++
				to := here.URL
				if c.other {
					to = elsewhere.URL
				}
				http.Redirect(w, r, to+"/new-secret-path", c.code)
			}))
			defer here.Close()
			to := []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: "GitLab", URL: here.URL, SecretRef: *ref("host")}}}
			err := notifier(secrets{"team/host": "tok"}).Send(t.Context(), to, published)
			if c.follow {
				if err != nil || len(*got) != 1 || !strings.Contains((*got)[0].Body, "success") || (*got)[0].Header.Get("Private-Token") != "tok" {
					t.Errorf("error %v, got %v", err, *got)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "redirection") || strings.Contains(err.Error(), "secret-path") || len(*got) > 0 || calls != 1 {
				t.Errorf("after %d calls: error %v, got %v", calls, err, *got)
			}
		})
	}
}

// A server that takes notifications is not quoted, neither its body nor the words of its status, and its address may not be one that
// hands out credentials.
func TestAnswersToNotificationsAreNotQuoted(t *testing.T) {
	const marker = "INTERNAL-MARKER-AKIA"
	for _, status := range []int{400, 401, 403, 404, 500, 599} {
		address := tcptest.Serve(t, func(conn net.Conn) {
			_, _ = http.ReadRequest(bufio.NewReader(conn))
			fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nConnection: close\r\nX-Marker: %s\r\n\r\n%s", status, marker, marker, marker)
		})
		to := []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: "http://" + address + "/x"}}}
		err := notifier(nil).Send(t.Context(), to, published)
		if err == nil || !strings.Contains(err.Error(), strconv.Itoa(status)) || strings.Contains(err.Error(), marker) {
			t.Errorf("%d: got %v", status, err)
		}
	}
}

func TestMetadataTakesNoNotification(t *testing.T) {
	for _, url := range []string{"http://169.254.169.254/latest", "http://[fd00:ec2::254]/", "http://[::ffff:a9fe:a9fe]/"} {
		err := notifier(nil).Send(t.Context(), []v1alpha1.Notification{{CloudEvent: &v1alpha1.Endpoint{URL: url}}}, published)
		if !egress.IsRefused(err) || !strings.Contains(err.Error(), "egress.allow") {
			t.Errorf("%s: got %v", url, err)
		}
	}
}
