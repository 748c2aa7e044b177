// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/server/access"
)

// TestSessionsEnd has sessions end by their lifetime, by signing out, and by making room, the one that would end first.
func TestSessionsEnd(t *testing.T) {
	alice := access.Principal{Kind: access.BySignIn, Name: "alice", Grants: access.Everything()}
	over := newSessions(-time.Second)
	id, err := over.startUserSession(alice)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := over.principalOfSession(id); ok {
		t.Error("a session that has ended is found")
	}
	lasting := newSessions(time.Hour)
	first, err := lasting.startUserSession(alice)
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
	for range maxSessions {
		if last, err = lasting.startUserSession(alice); err != nil {
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

// TestOneTokenEndsNoOtherSessions signs in with one token again and again: only its own sessions make room.
func TestOneTokenEndsNoOtherSessions(t *testing.T) {
	s := newSessions(time.Hour)
	begin := func(token string) string {
		id, err := s.storeNewSession(session{token: access.HashToken(token)})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	other, first := begin("other"), begin("many")
	for range maxOfToken {
		begin("many")
	}
	if _, ok := s.activeSession(first); ok || len(s.all) != maxOfToken+1 {
		t.Errorf("%d sessions, and the first of the token is still there: %v", len(s.all), ok)
	}
	if _, ok := s.activeSession(other); !ok {
		t.Error("that of another token has ended")
	}
}
