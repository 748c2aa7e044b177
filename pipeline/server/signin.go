// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"strings"

	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/server/signin"
)

// guard identifies who asks, lets through what their roles permit, and signs users in and out: with tokens, and at a
// provider. What is nil is not offered.
type guard struct {
	pages    *pageWriter
	tokens   *access.Tokens
	sessions *signin.TokenSessions
	provider *signin.Provider
	// externalURL is the URL by which people reach the page; "" is not known.
	externalURL string
	audit       *access.Audit
}

// addSignIn adds the addresses of the ways to sign in.
func (g *guard) addSignIn(mux *http.ServeMux) {
	mux.HandleFunc("POST /auth/sign-out", g.signOut)
	if g.tokens != nil || g.provider != nil {
		mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
			g.showSignIn(w, r, http.StatusOK, signInData{To: signin.LocalPath(r.URL.Query().Get("to"))})
		})
	}
	if g.tokens != nil {
		mux.HandleFunc("POST /auth/token", g.signInWithToken)
	}
	if g.provider != nil {
		mux.HandleFunc("GET /auth/sign-in", g.beginSignIn)
		mux.HandleFunc("GET /auth/callback", g.finishSignIn)
	}
}

// signInData is the sign-in page.
type signInData struct {
	Message, To string
	// Provider and Token report which sign-in methods are available.
	Provider, Token bool
	// Clear reports whether the input is sent unencrypted.
	Clear bool
	// Again has the browser ask once more: it leaves the cookie of a session out where the way here began at another site.
	Again bool
}

// showSignIn writes the sign-in page.
func (g *guard) showSignIn(w http.ResponseWriter, r *http.Request, code int, data signInData) {
	data.Provider, data.Token = g.provider != nil, g.tokens != nil
	data.Clear = r.TLS == nil && !isLocal(r.Host) && g.externalURL != "" && !strings.HasPrefix(g.externalURL, "https://")
	g.pages.pageWith(w, r, code, "signin", "Sign in", data)
}

// askWhoItIs answers an unauthenticated request: people get a page, programs a challenge for a token.
func (g *guard) askWhoItIs(w http.ResponseWriter, r *http.Request) {
	people := strings.Contains(r.Header.Get("Accept"), "text/html")
	if g.provider == nil && !people {
		w.Header().Set("WWW-Authenticate", `Basic realm="prerig", charset="UTF-8"`)
	} else {
		w.Header().Set("WWW-Authenticate", `Bearer realm="prerig"`)
	}
	switch {
	case people && isReadOnlyRequest(r):
		g.showSignIn(w, r, http.StatusUnauthorized, signInData{To: r.URL.RequestURI(), Again: r.Header.Get("Sec-Fetch-Site") == "cross-site"})
		return
	case people:
		g.showSignIn(w, r, http.StatusUnauthorized, signInData{To: "/", Message: "Nothing was done: you are not signed in, or not any more."})
		return
	}
	http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
}

// signInWithToken begins the session of who has a token.
func (g *guard) signInWithToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn)
	to := signin.LocalPath(r.PostFormValue("to"))
	if crossSite(r) != nil {
		recordAuditLine(g.audit, r, "sign-in", nil, access.Refused, "another site made the browser ask for it")
		http.Error(w, "another site made the browser ask for this", http.StatusForbidden)
		return
	}
	who, cookie, ok, err := g.sessions.Begin(r, r.PostFormValue("token"))
	switch {
	case err != nil:
		g.failSignIn(w, r, who, err)
	case !ok:
		recordAuditLine(g.audit, r, "sign-in", nil, access.Refused, "the token is missing or wrong")
		g.showSignIn(w, r, http.StatusUnauthorized, signInData{To: to, Message: "This token is not known here, or has ended."})
	case !who.MaySomewhere(access.Read):
		g.audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: access.Refused, Reason: "this needs the role " + string(access.Read)})
		g.showSignIn(w, r, http.StatusForbidden, signInData{To: to, Message: "This token is for reading metrics only."})
	default:
		g.audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: access.Done})
		setSecurityHeaders(w, "")
		http.SetCookie(w, cookie)
		http.Redirect(w, r, to, http.StatusSeeOther)
	}
}

// maxSignIn bounds the form with a token, in bytes.
const maxSignIn = 8 << 10

// beginSignIn redirects to the provider.
func (g *guard) beginSignIn(w http.ResponseWriter, r *http.Request) {
	address, cookie, err := g.provider.Begin(r.Context(), r.URL.Query().Get("to"))
	if err != nil {
		g.failSignIn(w, r, access.Principal{}, err)
		return
	}
	setSecurityHeaders(w, "")
	http.SetCookie(w, cookie)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// finishSignIn handles the callback from the provider.
func (g *guard) finishSignIn(w http.ResponseWriter, r *http.Request) {
	who, cookie, to, err := g.provider.Finish(r)
	if err != nil {
		g.failSignIn(w, r, who, err)
		return
	}
	g.audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: access.Done})
	setSecurityHeaders(w, "")
	http.SetCookie(w, g.provider.Forget())
	http.SetCookie(w, cookie)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// failSignIn answers a failed sign-in. The provider's message is only logged.
func (g *guard) failSignIn(w http.ResponseWriter, r *http.Request, who access.Principal, err error) {
	code, outcome, message := http.StatusBadGateway, access.Failed, "Signing in did not work; the reason is in the daemon's log."
	switch {
	case errors.Is(err, signin.ErrForged):
		code, outcome, message = http.StatusBadRequest, access.Refused, errorAsSentence(signin.ErrForged)
	case errors.Is(err, signin.ErrNoGroup):
		code, outcome, message = http.StatusForbidden, access.Refused, errorAsSentence(signin.ErrNoGroup)
	case errors.Is(err, signin.ErrBusy):
		code, outcome, message = http.StatusServiceUnavailable, access.Refused, errorAsSentence(signin.ErrBusy)
		w.Header().Set("Retry-After", "5")
	}
	g.audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: outcome, Reason: err.Error()})
	g.showSignIn(w, r, code, signInData{Message: message, To: "/"})
}

func errorAsSentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// signOut ends a session.
func (g *guard) signOut(w http.ResponseWriter, r *http.Request) {
	// Cookies do not come along from another site, and yet what is answered would take them away.
	if requestOf(r).session || isBrowserRequest(r) {
		if crossSite(r) != nil {
			recordAuditLine(g.audit, r, "sign-out", nil, access.Refused, "another site made the browser ask for it")
			http.Error(w, "another site made the browser ask for this", http.StatusForbidden)
			return
		}
		recordAuditLine(g.audit, r, "sign-out", nil, access.Done, "")
	}
	setSecurityHeaders(w, "")
	if g.provider != nil {
		http.SetCookie(w, g.provider.End(r))
	}
	if g.sessions != nil {
		for _, cookie := range g.sessions.End(r) {
			http.SetCookie(w, cookie)
		}
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// crossSite returns an error for a modifying request that another site's page made a browser send. Browsers send
// where a request is from; a client that does not is not a browser, and has no session.
func crossSite(r *http.Request) error {
	if !isBrowserRequest(r) {
		return errors.New("the browser does not say which site the request is from")
	}
	return http.NewCrossOriginProtection().Check(r)
}

// signedIn returns who has signed in, as the page shows it.
func signedIn(r *http.Request) string {
	if who := requestOf(r); who.session {
		return who.Name
	}
	return ""
}
