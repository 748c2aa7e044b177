// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/server"
)

// TestWaitingForARequest has a pipeline go through what the daemon tells of it, one answer after the other; the last one
// stays. The wait ends with the answer that says that the request, or one in its place, is handled.
func TestWaitingForARequest(t *testing.T) {
	type told struct{ last, open string }
	const token = "2026-11-21T10:00:00.000000000Z-a"
	cases := map[string]struct {
		told []told
		ends bool
	}{
		"handled":                            {[]told{{"", token}, {"", token}, {token, ""}}, true},
		"an annotation that sorts after it":  {[]told{{"please", token}}, false},
		"an annotation that sorts before it": {[]told{{"", token}, {"2020", ""}}, true},
		"a later one before it was handled":  {[]told{{"", "z"}, {"", "z"}, {"z", ""}}, true},
		"a later one after it was handled":   {[]told{{"", token}, {token, "z"}}, true},
		"a later one with an earlier clock":  {[]told{{"", "1999"}, {"1999", ""}}, true},
		"an earlier one with a later clock":  {[]told{{"2999", token}}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			asked := 0
			daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				now := c.told[min(asked, len(c.told)-1)]
				asked++
				p := server.Pipeline{Name: "team/web", State: server.StateReady, OpenRequest: now.open, Status: v1alpha1.RenderPipelineStatus{}}
				p.Status.LastHandledReconcileAt = now.last
				_ = json.NewEncoder(w).Encode([]server.Pipeline{p})
			}))
			defer daemon.Close()
			var out bytes.Buffer
			d := &daemonClient{url: daemon.URL, state: t.TempDir()}
			longest := time.Minute
			if !c.ends {
				longest = time.Second
			}
			err := awaitAllHandled(t.Context(), Streams{Out: &out, Err: &out}, d, server.Answer{Token: token, Pipelines: []string{"team/web"}}, longest, "text")
			if c.ends && (err != nil || asked != len(c.told)) {
				t.Errorf("after %d answers of %d: %v", asked, len(c.told), err)
			}
			if !c.ends && (err == nil || !strings.Contains(err.Error(), "waiting for 1 of 1 pipelines")) {
				t.Errorf("it ended with %v after %d answers", err, asked)
			}
		})
	}
}

// TestLooksLeaveTheDaemonItsTime: a look at very many pipelines takes a while, and one after the other would take all of its processor.
func TestLooksLeaveTheDaemonItsTime(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 250 * time.Millisecond, 10 * time.Millisecond: 250 * time.Millisecond, 300 * time.Millisecond: 2700 * time.Millisecond, time.Minute: 5 * time.Second,
	} {
		if got := pollDelayAfter(took); got != want {
			t.Errorf("after a look of %s it waits %s, not %s", took, got, want)
		}
	}
}

// TestAPipelineOnHoldIsNotReady waits for one that the daemon does not run.
func TestAPipelineOnHoldIsNotReady(t *testing.T) {
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode([]server.Pipeline{{Name: "team/web", State: server.StateSuspended}})
	}))
	defer daemon.Close()
	var out bytes.Buffer
	d := &daemonClient{url: daemon.URL, state: t.TempDir()}
	answer := server.Answer{Token: "t", Pipelines: []string{"team/web"}}
	err := awaitAllHandled(t.Context(), Streams{Out: &out, Err: &out}, d, answer, time.Minute, "text")
	if want := "on hold or suspended, and not run: team/web"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v", err)
	}
}
