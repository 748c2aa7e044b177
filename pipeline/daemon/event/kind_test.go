// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/daemon/event"
)

// memory is a store that everything matters to.
type memory map[string]bool

func (memory) Watches([]event.Change) bool { return true }

func (m memory) Put(_ context.Context, e event.Event) (bool, error) {
	before := m[e.ID]
	m[e.ID] = true
	return before, nil
}

// An event of the wrong kind at an address that exists, with the right secret, is no success that does nothing: it is refused, and what
// it looks like is told.
func TestEventOfTheWrongKindIsRefusedWithAHint(t *testing.T) {
	var receivers []event.Receiver
	for _, p := range event.Providers() {
		receivers = append(receivers, event.Receiver{Name: p, Provider: event.Provider(p), Insecure: true})
	}
	h, err := event.NewHandler(receivers, memory{})
	if err != nil {
		t.Fatal(err)
	}
	hinted := 0
	for _, r := range recordings(t) {
		for _, p := range event.Providers() {
			if event.Provider(p) == r.provider() {
				continue
			}
			request := httptest.NewRequest(http.MethodPost, "/hook/"+p, strings.NewReader(r.body))
			request.Header = r.header.Clone()
			answer := httptest.NewRecorder()
			h.ServeHTTP(answer, request)
			var reply struct{ Outcome, Error string }
			if err := json.Unmarshal(answer.Body.Bytes(), &reply); err != nil {
				t.Fatal(err)
			}
			switch {
			case reply.Outcome == "stored" || reply.Outcome == "duplicate":
				// Some understand each other: Gitea sends what GitHub does, too.
			case reply.Outcome == "ignored" && sameHeaders(r.header, event.Provider(p)):
			case answer.Code != http.StatusUnprocessableEntity || !strings.Contains(reply.Error, "looks like one of "+string(r.provider())):
				t.Errorf("%s at %s: answered with %d %s %s", r.name, p, answer.Code, reply.Outcome, reply.Error)
			default:
				hinted++
			}
		}
	}
	if hinted < 1000 {
		t.Errorf("%d were refused with a hint", hinted)
	}
}

// sameHeaders reports whether a delivery has the header of another provider too, whose form it is in, or is a CloudEvent.
func sameHeaders(h http.Header, p event.Provider) bool {
	return h.Get("X-"+string(p)+"-Event") != "" || p == event.CloudEvents && strings.Contains(h.Get("Content-Type"), "cloudevents")
}
