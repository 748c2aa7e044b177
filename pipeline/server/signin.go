// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/prerig/prerig/pipeline/access"
	"github.com/prerig/prerig/pipeline/signin"
)

func (s *Server) routeSignIn(mux *http.ServeMux) {
	if s.SignIn == nil {
		return
	}
	mux.HandleFunc("GET /auth/sign-in", s.beginSignIn)
	mux.HandleFunc("GET /auth/callback", s.finishSignIn)
	mux.HandleFunc("POST /auth/sign-out", s.signOut)
}

// signInData is the page that leads to the provider.
type signInData struct{ Message, To string }

// askWhoItIs answers somebody who has not said who they are: people with a page, programs and where nobody can sign in with what a
// token needs.
func (s *Server) askWhoItIs(w http.ResponseWriter, r *http.Request) {
	if s.SignIn == nil {
		w.Header().Set("WWW-Authenticate", `Basic realm="prerig", charset="UTF-8"`)
	} else {
		w.Header().Set("WWW-Authenticate", `Bearer realm="prerig"`)
		if looks(r) && strings.Contains(r.Header.Get("Accept"), "text/html") {
			s.pageWith(w, r, http.StatusUnauthorized, s.pages.signin, "Sign in", signInData{To: r.URL.RequestURI()})
			return
		}
	}
	http.Error(w, "the token is missing or wrong", http.StatusUnauthorized)
}

// beginSignIn sends somebody to the provider.
func (s *Server) beginSignIn(w http.ResponseWriter, r *http.Request) {
	address, cookie, err := s.SignIn.Begin(r.Context(), r.URL.Query().Get("to"))
	if err != nil {
		s.failSignIn(w, r, access.Principal{}, err)
		return
	}
	setSecurityHeaders(w)
	http.SetCookie(w, cookie)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// finishSignIn takes somebody back from the provider.
func (s *Server) finishSignIn(w http.ResponseWriter, r *http.Request) {
	who, cookie, to, err := s.SignIn.Finish(r)
	if err != nil {
		s.failSignIn(w, r, who, err)
		return
	}
	s.Audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: access.Done})
	setSecurityHeaders(w)
	http.SetCookie(w, s.SignIn.Forget())
	http.SetCookie(w, cookie)
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// failSignIn answers a sign-in that did not work out. What the provider said is for the log.
func (s *Server) failSignIn(w http.ResponseWriter, r *http.Request, who access.Principal, err error) {
	code, outcome, message := http.StatusBadGateway, access.Failed, "Signing in did not work; the log of the daemon says why."
	switch {
	case errors.Is(err, signin.ErrForged):
		code, outcome, message = http.StatusBadRequest, access.Refused, sentence(signin.ErrForged)
	case errors.Is(err, signin.ErrNoGroup):
		code, outcome, message = http.StatusForbidden, access.Refused, sentence(signin.ErrNoGroup)
	case errors.Is(err, signin.ErrBusy):
		code, outcome, message = http.StatusServiceUnavailable, access.Refused, sentence(signin.ErrBusy)
		w.Header().Set("Retry-After", "5")
	}
	s.Audit.Write(access.Record{Who: who, Address: r.RemoteAddr, Action: "sign-in", Outcome: outcome, Reason: err.Error()})
	s.pageWith(w, r, code, s.pages.signin, "Sign in", signInData{Message: message, To: "/"})
}

func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

// signOut ends a session.
func (s *Server) signOut(w http.ResponseWriter, r *http.Request) {
	if who := requestOf(r); who.session {
		if crossSite(r) != nil {
			s.record(r, "sign-out", nil, access.Refused, "another site made the browser ask for it")
			http.Error(w, "another site made the browser ask for this", http.StatusForbidden)
			return
		}
		s.record(r, "sign-out", nil, access.Done, "")
	}
	setSecurityHeaders(w)
	http.SetCookie(w, s.SignIn.End(r))
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// crossSite returns an error for a request that changes something and that another site's page made a browser send. Browsers say
// where a request is from; what does not say so is no browser, and has no session.
func crossSite(r *http.Request) error {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
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

// maxForm bounds a form of the page, in bytes.
const maxForm = 8 << 10

// changeFromPage does what a button of a pipeline's page says.
func (s *Server) changeFromPage(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	name, action := r.PostFormValue("name"), r.PostFormValue("action")
	keys, code, err := s.findOperable(principal(r), Request{Pipelines: []string{name}})
	if err != nil {
		s.record(r, action, []string{name}, access.Refused, err.Error())
		s.writeFailurePage(w, r, code, sentence(err))
		return
	}
	switch action {
	case "reconcile":
		_, err = s.requestRuns(r.Context(), keys, false)
	case "suspend", "resume":
		err = s.setSuspended(r.Context(), keys, action == "suspend")
	default:
		s.writeFailurePage(w, r, http.StatusBadRequest, "There is no such button.")
		return
	}
	if err != nil {
		s.record(r, action, keys, access.Failed, err.Error())
		s.writeFailurePage(w, r, http.StatusServiceUnavailable, "It could not be stored; try it again.")
		return
	}
	s.record(r, action, keys, access.Done, "")
	setSecurityHeaders(w)
	http.Redirect(w, r, "/pipeline?name="+url.QueryEscape(name), http.StatusSeeOther)
}
