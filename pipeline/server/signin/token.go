// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"net/http"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/server/access"
)

// tokenCookie is the name of the cookie of who has signed in with a token.
const tokenCookie = "prerig-token-session"

// TokenSessions are the sessions of people who have signed in to the page with a token. The token is not kept: a session has its hash,
// and ends with it. It is safe for concurrent use.
type TokenSessions struct {
	tokens   *access.Tokens
	sessions *sessions
}

// NewTokenSessions returns sessions that last for a time, or until their token ends.
func NewTokenSessions(tokens *access.Tokens, lifetime time.Duration) *TokenSessions {
	return &TokenSessions{tokens: tokens, sessions: newSessions(lifetime)}
}

// Begin starts the session of a token's owner, and returns its cookie. ok is false if the token is unknown.
func (s *TokenSessions) Begin(r *http.Request, secret string) (who access.Principal, cookie *http.Cookie, ok bool, err error) {
	hash := access.HashToken(strings.TrimSpace(secret))
	who, ok = s.tokens.FindHash(hash)
	if !ok {
		return who, nil, false, nil
	}
	id, err := s.sessions.storeNewSession(session{who: who, token: hash})
	if err != nil {
		return who, nil, false, err
	}
	return who, tokenSessionCookie(isOverTLS(r), id, int(s.sessions.lifetime.Seconds())), true, nil
}

// Who returns who has the session of a request's cookie and the session's name. It asks for the token again, which may have ended or
// have another role by now.
func (s *TokenSessions) Who(r *http.Request) (who access.Principal, id string, ok bool) {
	for _, secure := range []bool{true, false} {
		if !secure && r.TLS != nil {
			break // another name of the same site could have set it
		}
		cookie, err := r.Cookie(tokenCookieName(secure))
		if err != nil {
			continue
		}
		if one, found := s.sessions.activeSession(cookie.Value); found {
			if who, ok = s.tokens.FindHash(one.token); ok {
				return who, cookie.Value, true
			}
		}
	}
	return access.Principal{}, "", false
}

// End ends the session of a request and returns the cookies that take its cookie away.
func (s *TokenSessions) End(r *http.Request) (out []*http.Cookie) {
	for _, secure := range []bool{true, false} {
		if cookie, err := r.Cookie(tokenCookieName(secure)); err == nil {
			s.sessions.remove(cookie.Value)
			out = append(out, tokenSessionCookie(secure, "", -1))
		}
	}
	return out
}

// isOverTLS reports whether the browser that submits a form reaches the page over TLS: directly, or at a proxy, as
// the form's origin shows.
func isOverTLS(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(r.Header.Get("Origin"), "https://")
}

func tokenCookieName(secure bool) string {
	if secure {
		return "__Host-" + tokenCookie
	}
	return tokenCookie
}

// tokenSessionCookie returns a cookie that scripts cannot read and that browsers do not send with requests
// initiated by another site.
func tokenSessionCookie(secure bool, value string, age int) *http.Cookie {
	return &http.Cookie{
		Name: tokenCookieName(secure), Value: value, Path: "/", MaxAge: age, HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode,
	}
}
