// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
)

// attemptLifetime is how long signing in at the provider may take.
const attemptLifetime = 10 * time.Minute

// attempt is a sign-in in progress. The browser stores it, so that starting many uses no memory of ours.
type attempt struct {
	// State and Nonce bind the way back and the ID token to it, Verifier the code (PKCE).
	State, Nonce, Verifier string
	// To is the path to go on to.
	To    string
	Until time.Time
}

func newAttempt(to string) attempt {
	return attempt{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), To: to, Until: time.Now().Add(attemptLifetime)}
}

// attempts seals what browsers keep, and knows which were used.
type attempts struct {
	key [32]byte

	mu   sync.Mutex
	used map[string]time.Time // by state, until they have ended anyway
}

func newAttempts() (*attempts, error) {
	a := &attempts{used: map[string]time.Time{}}
	if _, err := rand.Read(a.key[:]); err != nil {
		return nil, fmt.Errorf("making a key for sign-ins: %w", err)
	}
	return a, nil
}

func (s *attempts) hmacOfText(text string) string {
	mac := hmac.New(sha256.New, s.key[:])
	mac.Write([]byte(text))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (s *attempts) seal(a attempt) (string, error) {
	text, err := json.Marshal(a)
	if err != nil {
		return "", err
	}
	encoded := base64.RawURLEncoding.EncodeToString(text)
	return encoded + "." + s.hmacOfText(encoded), nil
}

// openSealedAttempt returns the attempt that a browser kept, if the provider has sent it back with its state and it was
// not used yet.
func (s *attempts) openSealedAttempt(sealed, state string) (a attempt, err error) {
	encoded, sum, _ := strings.Cut(sealed, ".")
	if !hmac.Equal([]byte(sum), []byte(s.hmacOfText(encoded))) {
		return a, ErrForged
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return a, ErrForged
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, ErrForged
	}
	now := time.Now()
	if a.State == "" || !hmac.Equal([]byte(a.State), []byte(state)) || now.After(a.Until) {
		return attempt{}, ErrForged
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.used[a.State]; ok {
		return attempt{}, ErrForged
	}
	return a, nil
}

// markAttemptUsed marks an attempt as used, and reports whether it was unused. Only attempts that the provider accepts
// are recorded, so that others cannot fill the memory.
func (s *attempts) markAttemptUsed(a attempt) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for state, until := range s.used {
		if now.After(until) {
			delete(s.used, state)
		}
	}
	_, before := s.used[a.State]
	s.used[a.State] = a.Until
	return !before
}
