// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server/access"
)

// TestSessionsEnd has sessions end by their lifetime, by signing out, and by making room, the one that would end first.
func TestSessionsEnd(t *testing.T) {
	alice := access.Principal{Kind: access.BySignIn, Name: "alice", Grants: access.Everything()}
	over := newSessions(-time.Second)
	id, err := over.storeNewSession(session{who: alice})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := over.principalOfSession(id); ok {
		t.Error("a session that has ended is found")
	}
	lasting := newSessions(time.Hour)
	first, err := lasting.storeNewSession(session{who: alice, subject: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	if who, ok := lasting.principalOfSession(first); !ok || who.Name != "alice" {
		t.Errorf("%v, %v", who, ok)
	}
	if _, ok := lasting.principalOfSession(""); ok {
		t.Error("a session without a name is found")
	}
	last := ""
	for i := range maxSessions {
		if last, err = lasting.storeNewSession(session{who: alice, subject: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if len(lasting.all) != maxSessions {
		t.Errorf("there are %d sessions", len(lasting.all))
	}
	if _, ok := lasting.principalOfSession(first); ok {
		t.Error("the oldest did not make room")
	}
	lasting.remove(last)
	if _, ok := lasting.principalOfSession(last); ok {
		t.Error("a session lives on after signing out")
	}
}

// TestSignInsTakeTooLong opens a sign-in that was begun long ago, one of another process, and one twice.
func TestSignInsTakeTooLong(t *testing.T) {
	s, err := newAttempts()
	if err != nil {
		t.Fatal(err)
	}
	a := newAttempt("/")
	sealed, err := s.seal(a)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.openSealedAttempt(sealed, a.State); err != nil || got.Verifier != a.Verifier || got.Nonce != a.Nonce {
		t.Errorf("%+v, %v", got, err)
	}
	if !s.markAttemptUsed(a) || s.markAttemptUsed(a) {
		t.Error("it can be used other than once")
	}
	if _, err := s.openSealedAttempt(sealed, a.State); !errors.Is(err, ErrForged) {
		t.Errorf("used: %v", err)
	}
	a = newAttempt("/")
	a.Until = time.Now().Add(-time.Second)
	if sealed, err = s.seal(a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.openSealedAttempt(sealed, a.State); !errors.Is(err, ErrForged) {
		t.Errorf("too late: %v", err)
	}
	other, err := newAttempts()
	if err != nil {
		t.Fatal(err)
	}
	a = newAttempt("/")
	if sealed, err = other.seal(a); err != nil {
		t.Fatal(err)
	}
	if _, err := s.openSealedAttempt(sealed, a.State); !errors.Is(err, ErrForged) {
		t.Errorf("of another process: %v", err)
	}
}

// TestOneOwnerEndsNoOtherSessions signs in with one token, or as one person, again and again: only their own sessions
// make room, whatever name the person has chosen.
func TestOneOwnerEndsNoOtherSessions(t *testing.T) {
	for owner, of := range map[string]func(name, called string) session{
		"token": func(name, _ string) session { return session{token: access.HashToken(name)} },
		"person": func(name, called string) session {
			return session{subject: name, who: access.Principal{Kind: access.BySignIn, Name: name + " (" + called + ")"}}
		},
	} {
		s := newSessions(time.Hour)
		begin := func(name, called string) string {
			id, err := s.storeNewSession(of(name, called))
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		other, first := begin("other", ""), begin("many", "")
		for i := range maxOfOne {
			begin("many", fmt.Sprint(i))
		}
		if _, ok := s.activeSession(first); ok || len(s.all) != maxOfOne+1 {
			t.Errorf("%s: %d sessions, and the first is still there: %v", owner, len(s.all), ok)
		}
		if _, ok := s.activeSession(other); !ok {
			t.Errorf("%s: the session of another has ended", owner)
		}
	}
}

// TestNamesOfPeopleAreShort: they choose them at the provider, and each session and each line of the log has one.
func TestNamesOfPeopleAreShort(t *testing.T) {
	c := claims{values: map[string]any{"name": "Ann\u202e\n" + strings.Repeat("x", 1<<20)}}
	got := c.displayNameFor("4711" + strings.Repeat("y", 1<<20))
	if len(got) > 700 || !strings.Contains(got, "(Ann<U+202E> x") || !strings.HasPrefix(got, "4711y") {
		t.Errorf("%d bytes: %.300q", len(got), got)
	}
}
