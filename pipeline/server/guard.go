// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"

	"github.com/prerig/prerig/pipeline/server/access"
)

// Access is what unauthenticated users of an address may do.
type Access struct {
	// Trusted lets everybody do everything: a socket that only its owner can open.
	Trusted bool
	// Loopback lets everybody look, if asked by a name of this machine.
	Loopback bool
	// Insecure lets everybody look.
	Insecure bool
}

// request is what the guard knows of who asks.
type request struct {
	access.Principal
	// password reports whether they sent a token as a password, which browsers also send with requests that other
	// pages trigger.
	password bool
	// session reports whether a cookie identifies them, which browsers send along too.
	session bool
	// attempted reports whether they sent any credential.
	attempted bool
	// credential names what forms of the page are bound to: a session, or the socket. Without it the page has no buttons.
	credential string
}

type requestKey struct{}

func requestOf(r *http.Request) request {
	found, _ := r.Context().Value(requestKey{}).(request)
	return found
}

// requestPrincipal returns who asks.
func requestPrincipal(r *http.Request) access.Principal { return requestOf(r).Principal }

// identifyPrincipal finds out who asks, for the handlers behind it.
func (g *guard) identifyPrincipal(at Access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if at.Loopback && !at.Trusted && !isLocal(r.Host) || at.Trusted && isForeign(r.Host) {
			// A page from elsewhere whose name was made to point here, or to where a socket is forwarded to, must not read ours.
			http.Error(w, "this address is only for names of this machine", http.StatusMisdirectedRequest)
			return
		}
		ctx := context.WithValue(r.Context(), requestKey{}, g.identifyRequester(at, r))
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, whoKey{}, func() request { return g.identifyRequester(at, r) })))
	})
}

// identifyRequester: a token is a bearer token, or for browsers the password of any user.
func (g *guard) identifyRequester(at Access, r *http.Request) request {
	if at.Trusted {
		found := request{Principal: access.Principal{Kind: access.BySocket, Name: r.RemoteAddr, Grants: access.Everything()}}
		if isLocal(r.Host) { // a browser may come through a forwarded socket, and a page from elsewhere with it
			found.credential = "socket"
		}
		return found
	}
	var found request
	secret, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	found.attempted = r.Header.Get("Authorization") != ""
	if !bearer {
		if g.hasSession(r, &found) { // rather than a password that the browser still knows
			return found
		}
		_, secret, found.password = r.BasicAuth()
	}
	if secret != "" && g.tokens != nil {
		if who, ok := g.tokens.Find(secret); ok {
			found.Principal = who
			return found
		}
	}
	if isReadOnlyRequest(r) && (at.Loopback || at.Insecure) {
		found.Principal = access.Principal{Kind: access.Anonymous, Grants: []access.Grant{{Role: access.Read}}}
	}
	return found
}

// hasSession reports whether a cookie identifies the requester.
func (g *guard) hasSession(r *http.Request, found *request) bool {
	if g.provider != nil {
		if who, ok := g.provider.Who(r); ok {
			found.Principal, found.session, found.credential = who, true, "session "+g.provider.Session(r)
			return true
		}
	}
	if g.sessions != nil {
		if who, id, ok := g.sessions.Who(r); ok {
			found.Principal, found.session, found.credential = who, true, "session "+id
			return true
		}
	}
	return false
}

// isReadOnlyRequest reports whether a request is read-only.
func isReadOnlyRequest(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// requireSomeRole lets through who may do what needs a role with some pipelines at least. With which ones is for the
// handler to see.
func (g *guard) requireSomeRole(needed access.Role, next http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := requestOf(r)
		switch {
		case who.Kind == "":
			if who.attempted || !isReadOnlyRequest(r) {
				recordAuditLine(g.audit, r, r.Method+" "+r.URL.Path, nil, access.Refused, "the token is missing or wrong")
			}
			g.askWhoItIs(w, r)
		case !isReadOnlyRequest(r) && who.password:
			recordAuditLine(g.audit, r, r.Method+" "+r.URL.Path, nil, access.Refused, "the token came as a password")
			http.Error(w, "changes need the token as a bearer token", http.StatusForbidden)
		case !isReadOnlyRequest(r) && (who.session || isBrowserRequest(r)) && crossSite(r) != nil:
			recordAuditLine(g.audit, r, r.Method+" "+r.URL.Path, nil, access.Refused, "another site made the browser ask for it")
			http.Error(w, "another site made the browser ask for this", http.StatusForbidden)
		case !who.MaySomewhere(needed):
			reason := "this needs the role " + string(needed)
			if needed == access.Metrics {
				reason = "metrics are about all pipelines: they need the role metrics, or one that is not bound to namespaces"
			}
			recordAuditLine(g.audit, r, r.Method+" "+r.URL.Path, nil, access.Refused, reason)
			if who.session {
				g.pages.writeFailurePage(w, r, http.StatusForbidden, errorAsSentence(errors.New(reason)))
				return
			}
			http.Error(w, reason, http.StatusForbidden)
		default:
			next(w, r)
		}
	})
}

// recordAuditLine writes a line of who did what, or tried to.
func recordAuditLine(audit *access.Audit, r *http.Request, action string, pipelines []string, outcome, reason string) {
	audit.Write(access.Record{
		Who: requestPrincipal(r), Address: r.RemoteAddr, Action: action, Pipelines: pipelines, Outcome: outcome, Reason: reason,
	})
}

func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// isForeign reports whether a host can be a third-party name that was made to point here: it has a dot. Clients of
// a socket may use any name.
func isForeign(host string) bool {
	return !isLocal(host) && strings.Contains(strings.TrimSuffix(host, "."), ".")
}

// Loopback reports whether an address is of this machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && host != "" && isLocal(host)
}
