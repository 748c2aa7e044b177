// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/verify"
)

// askingToWait is a server that cannot take anything, and names when to come again. It returns how often it was asked.
func askingToWait(t *testing.T, after string) (*httptest.Server, *int) {
	calls := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls++
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(s.Close)
	return s, &calls
}

// TestAServerCannotAskForADay has it ask callers who have set no bound.
func TestAServerCannotAskForADay(t *testing.T) {
	s, calls := askingToWait(t, "86400")
	endpoint := &v1alpha1.Endpoint{URL: s.URL}
	for name, send := range map[string]func(ctx context.Context) error{
		"of a run": func(ctx context.Context) error {
			return notifier(nil).Send(ctx, []v1alpha1.Notification{{CloudEvent: endpoint}}, published)
		},
		"of a cluster": func(ctx context.Context) error {
			return notifier(nil).Verified(ctx, endpoint, "", Verified{Cluster: "prod", At: time.Now(), Report: &verify.Report{}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			*calls = 0
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			defer time.AfterFunc(2*time.Minute, cancel).Stop() // ends what would wait for a day
			if err := send(ctx); err == nil || ctx.Err() != nil || *calls != 1 {
				t.Errorf("%d calls, error %v", *calls, err)
			}
		})
	}
}

// boundSecrets notes whether who reads a secret has to be done at some time.
type boundSecrets struct{ bound bool }

func (s *boundSecrets) Secret(ctx context.Context, _, _ string, _ secret.Purpose) (map[string][]byte, error) {
	_, s.bound = ctx.Deadline()
	return map[string][]byte{"token": []byte("t")}, nil
}

// TestTellingOfAClusterIsBounded as the next look at the cluster waits for it.
func TestTellingOfAClusterIsBounded(t *testing.T) {
	s, _ := sink(t, 200)
	n, found := &boundSecrets{}, Verified{Cluster: "prod", At: time.Now(), Report: &verify.Report{}}
	if err := New(n, nil).Verified(t.Context(), &v1alpha1.Endpoint{URL: s.URL, SecretRef: ref("x")}, "team", found); err != nil || !n.bound {
		t.Errorf("bound %v, error %v", n.bound, err)
	}
}

// TestAStatusThatGaveWayIsNoFailure has a newer one when an older one is to be tried again: an alert counts failures.
func TestAStatusThatGaveWayIsNoFailure(t *testing.T) {
	s, got := sink(t, 403, 504)
	n := notifier(secrets{"team/host": "t"})
	n.wait = longestWait
	var observed []error
	n.Observe = func(_ string, err error) { observed = append(observed, err) }
	send := func(replaced bool) error {
		r, newer := published, make(chan struct{})
		r.Replaced = newer
		if replaced {
			close(newer)
		}
		return n.Send(t.Context(), []v1alpha1.Notification{{CommitStatus: &v1alpha1.CommitStatus{Provider: "Gitea", URL: s.URL, SecretRef: *ref("host")}}}, r)
	}
	if err := send(false); err == nil || errors.Is(err, ErrReplaced) || len(observed) != 1 {
		t.Errorf("a status that fails: %v, observed %v", err, observed)
	}
	if err := send(true); !errors.Is(err, ErrReplaced) || len(observed) != 1 || len(*got) != 2 {
		t.Errorf("a status that gave way: %v, observed %v, %d calls", err, observed, len(*got))
	}
}

// TestNothingIsTriedAgainInAHurry nor counted twice; a status that gave way is still told from one that failed.
func TestNothingIsTriedAgainInAHurry(t *testing.T) {
	s, got := sink(t, 503)
	n := notifier(secrets{"team/host": "t"})
	n.wait = longestWait
	hurry, newer := make(chan struct{}), make(chan struct{})
	close(hurry)
	r := published
	r.Hurry, r.Replaced = hurry, newer
	endpoint := &v1alpha1.Endpoint{URL: s.URL, SecretRef: ref("host")}
	status := v1alpha1.Notification{CommitStatus: &v1alpha1.CommitStatus{Provider: "Gitea", URL: s.URL, SecretRef: *ref("host")}}
	for i, to := range []v1alpha1.Notification{{FluxReceiver: endpoint}, {CloudEvent: endpoint}, status} {
		if err := n.Send(t.Context(), []v1alpha1.Notification{to}, r); !errors.As(err, new(*answerError)) || len(*got) != i+1 {
			t.Errorf("%d: %d calls, error %v", i, len(*got), err)
		}
	}
	close(newer)
	if err := n.Send(t.Context(), []v1alpha1.Notification{status}, r); !errors.Is(err, ErrReplaced) || len(*got) != 4 {
		t.Errorf("a status that gave way: %d calls, error %v", len(*got), err)
	}
}
