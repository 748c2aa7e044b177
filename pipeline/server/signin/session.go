// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prerig/prerig/pipeline/server/access"
)

// Names of cookies. By TLS they begin with __Host-, which browsers take from this host only.
const (
	sessionCookie = "prerig-session"
	attemptCookie = "prerig-sign-in"
)

// maxSessions bounds the memory of sessions. Beyond it the one that ends first makes room.
const maxSessions = 10_000

// sessions are those who have signed in. They end with the process.
type sessions struct {
	lifetime time.Duration

	mu  sync.Mutex
	all map[[sha256.Size]byte]session
}

type session struct {
	who   access.Principal
	until time.Time
	// token is the token that was used to sign in, or subject is who has at the provider.
	token   access.TokenHash
	subject string
}

func newSessions(lifetime time.Duration) *sessions {
	return &sessions{lifetime: lifetime, all: map[[sha256.Size]byte]session{}}
}

// storeNewSession starts a session and returns its ID, of 256 random bits. Only the hash is stored: the time of a
// lookup reveals nothing about an ID.
func (s *sessions) storeNewSession(one session) (id string, err error) {
	random := make([]byte, 32)
	if _, err := rand.Read(random); err != nil {
		return "", fmt.Errorf("beginning a session: %w", err)
	}
	id = base64.RawURLEncoding.EncodeToString(random)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.makeRoomFor(one)
	s.makeRoom()
	one.until = time.Now().Add(s.lifetime)
	s.all[sha256.Sum256([]byte(id))] = one
	return id, nil
}

// maxOfOne bounds the sessions of one token or person, so that these cannot sign out others.
const maxOfOne = 20

// makeRoomFor removes the session of a token or person that ends first where these have too many.
func (s *sessions) makeRoomFor(next session) {
	count := 0
	var first [sha256.Size]byte
	for hash, one := range s.all {
		if one.token != next.token || one.subject != next.subject {
			continue
		}
		if count++; count == 1 || one.until.Before(s.all[first].until) {
			first = hash
		}
	}
	if count >= maxOfOne {
		delete(s.all, first)
	}
}

// makeRoom removes expired sessions if the limit is reached, or the next to expire if none has.
func (s *sessions) makeRoom() {
	if len(s.all) < maxSessions {
		return
	}
	now := time.Now()
	var first [sha256.Size]byte
	for hash, one := range s.all {
		if now.After(one.until) {
			delete(s.all, hash)
			continue
		}
		if next, ok := s.all[first]; !ok || one.until.Before(next.until) {
			first = hash
		}
	}
	if len(s.all) >= maxSessions {
		delete(s.all, first)
	}
}

func (s *sessions) principalOfSession(id string) (access.Principal, bool) {
	one, ok := s.activeSession(id)
	return one.who, ok
}

func (s *sessions) activeSession(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[sha256.Sum256([]byte(id))]
	if id == "" || !ok || time.Now().After(one.until) {
		return session{}, false
	}
	return one, true
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sha256.Sum256([]byte(id)))
}

// newSecureCookie returns a cookie that scripts cannot read and that other sites' forms do not send. A negative
// lifetime deletes it.
func (p *Provider) newSecureCookie(name, value string, lifetime time.Duration) *http.Cookie {
	age := int(lifetime.Seconds())
	if lifetime < 0 {
		age = -1
	}
	return &http.Cookie{
		Name: p.cookieName(name), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: p.usesTLS(),
		// Lax and not Strict: the way back from the provider begins at another site.
		SameSite: http.SameSiteLaxMode,
	}
}

func (p *Provider) cookieName(name string) string {
	if p.usesTLS() {
		return "__Host-" + name
	}
	return name
}

func (p *Provider) readCookie(r *http.Request, name string) string {
	cookie, err := r.Cookie(p.cookieName(name))
	if err != nil {
		return ""
	}
	return cookie.Value
}
