// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package signin lets people sign in to the page at an OpenID Connect provider: the authorization code flow with PKCE, state and
// nonce. Their groups become roles; a session in memory, known by a cookie, keeps them for a bounded time.
package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/internal/process/trust"
	"github.com/prerig/prerig/pipeline/server/access"
)

// Grant assigns a role to the members of a group.
type Grant struct {
	Group string
	access.Grant
}

// Options of a Provider.
type Options struct {
	// Issuer is the URL of the provider, as it names itself.
	Issuer string
	// ClientID is ours at the provider.
	ClientID string
	// ClientSecret returns our client secret at the provider. Nil makes us a public client, for which PKCE is
	// sufficient.
	ClientSecret func() string
	// CAFile holds certificates of authorities that the provider is checked against beside those of the system; "" holds none.
	CAFile string
	// Scopes are asked for; openid always is.
	Scopes []string
	// GroupsClaim is the claim with the groups of a user, in the ID token or otherwise in the user info.
	GroupsClaim string
	// Grants lists what groups may do. A user without a listed group may not sign in.
	Grants []Grant
	// Session is how long a session lasts.
	Session time.Duration
	// ExternalURL is the URL of the page. The provider sends people back to /auth/callback below it. With https, cookies are sent by
	// TLS only.
	ExternalURL string
}

// callbackPath is where the provider sends people back to.
const callbackPath = "/auth/callback"

// callTimeout bounds each request to the provider, and callsAtOnce how many sign-ins ask it at the same time: anybody can begin one.
const (
	callTimeout = 10 * time.Second
	callsAtOnce = 16
)

// Provider signs people in. It is safe for concurrent use.
type Provider struct {
	o        Options
	client   *http.Client
	sessions *sessions
	attempts *attempts
	calls    chan struct{}

	mu    sync.Mutex
	found *oidc.Provider // nil until it has answered once
}

// New returns a Provider. It is not asked yet, so that a daemon starts without it.
func New(o Options) (*Provider, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if o.CAFile != "" {
		text, err := os.ReadFile(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates for the OpenID Connect provider: %w", err)
		}
		trusted, ok := trust.Authorities(text)
		if !ok {
			return nil, fmt.Errorf("reading the certificates for the OpenID Connect provider: %s holds none in PEM form", o.CAFile)
		}
		transport.TLSClientConfig = trusted
	}
	attempts, err := newAttempts()
	if err != nil {
		return nil, err
	}
	return &Provider{
		o: o, client: &http.Client{Transport: egress.BoundAnswers(&providerTransport{transport, o.Issuer}, maxAnswer), Timeout: callTimeout, CheckRedirect: sameServer},
		sessions: newSessions(o.Session), attempts: attempts, calls: make(chan struct{}, callsAtOnce),
	}, nil
}

// usesTLS reports whether the page is reached by TLS.
func (p *Provider) usesTLS() bool { return strings.HasPrefix(p.o.ExternalURL, "https://") }

// ErrBusy is the cause of an error while too many people sign in at once.
var ErrBusy = errors.New("too many people sign in at this moment; try it again")

// discoverProviderOnce asks the provider about itself, once.
func (p *Provider) discoverProviderOnce(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	found := p.found
	p.mu.Unlock()
	if found != nil {
		return found, nil
	}
	select {
	case p.calls <- struct{}{}:
		defer func() { <-p.calls }()
	default:
		return nil, ErrBusy
	}
	found, err := oidc.NewProvider(oidc.ClientContext(ctx, p.client), p.o.Issuer)
	if err != nil {
		return nil, fmt.Errorf("asking the OpenID Connect provider about itself: %w", err)
	}
	for _, endpoint := range []string{found.Endpoint().AuthURL, found.Endpoint().TokenURL} {
		if err := checkEndpoint(endpoint); err != nil {
			return nil, err // and it is asked again, as one description is used until the daemon ends
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found = found
	return found, nil
}

// checkEndpoint returns an error where an endpoint of the provider's description is no address that browsers, or we, are sent to.
// That nothing of ours is sent unencrypted is for providerTransport to see.
func checkEndpoint(endpoint string) error {
	parsed, err := url.Parse(endpoint)
	if err != nil || parsed.Host == "" || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return fmt.Errorf("reading the description of the OpenID Connect provider: its endpoint %s is no address of a server", foreign.Quote(endpoint))
	}
	return nil
}

func (p *Provider) oauth2Config(found *oidc.Provider) *oauth2.Config {
	secret := ""
	if p.o.ClientSecret != nil {
		secret = p.o.ClientSecret()
	}
	return &oauth2.Config{
		ClientID: p.o.ClientID, ClientSecret: secret, Endpoint: found.Endpoint(), RedirectURL: p.o.ExternalURL + callbackPath,
		Scopes: append([]string{oidc.ScopeOpenID}, p.o.Scopes...),
	}
}

// Begin returns the URL at the provider to redirect to, and the cookie that binds the browser to the attempt. to is
// the path of our page to return to.
func (p *Provider) Begin(ctx context.Context, to string) (address string, cookie *http.Cookie, err error) {
	found, err := p.discoverProviderOnce(ctx)
	if err != nil {
		return "", nil, err
	}
	a := newAttempt(LocalPath(to))
	sealed, err := p.attempts.seal(a)
	if err != nil {
		return "", nil, err
	}
	address = p.oauth2Config(found).AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier))
	return address, p.newSecureCookie(attemptCookie, sealed, attemptLifetime), nil
}

// LocalPath returns a path that can only lead to our page.
func LocalPath(to string) string {
	if !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(to, "/auth/") {
		return "/"
	}
	return to
}

// ErrForged is the cause of an error about a callback from the provider that this browser has not initiated here,
// or has used before.
var ErrForged = errors.New("this sign-in was not begun in this browser, took too long, or was used before; sign in again")

// ErrNoGroup is the cause of an error about a user without any group that has a role.
var ErrNoGroup = errors.New("you are of no group that may look at this page; ask who runs it")

// Finish checks the way back from the provider and returns who it was, the cookie of their session and the path to go on to. On an
// error it returns who it was as far as that is known. The cause of the error is ErrForged, ErrNoGroup, ErrBusy, or the provider's.
func (p *Provider) Finish(r *http.Request) (who access.Principal, cookie *http.Cookie, to string, err error) {
	query := r.URL.Query()
	a, err := p.attempts.openSealedAttempt(p.readCookie(r, attemptCookie), query.Get("state"))
	if err != nil {
		return who, nil, "", err
	}
	if problem := query.Get("error"); problem != "" {
		return who, nil, "", fmt.Errorf("signing in: the provider answers %s", foreign.Quote(problem))
	}
	found, err := p.discoverProviderOnce(r.Context())
	if err != nil {
		return who, nil, "", err
	}
	select {
	case p.calls <- struct{}{}:
		defer func() { <-p.calls }()
	default:
		return who, nil, "", ErrBusy
	}
	one, err := p.exchangeCodeForSession(oidc.ClientContext(r.Context(), p.client), found, query.Get("code"), a)
	if err != nil {
		return one.who, nil, "", err
	}
	if !p.attempts.markAttemptUsed(a) {
		return one.who, nil, "", ErrForged
	}
	id, err := p.sessions.storeNewSession(one)
	if err != nil {
		return one.who, nil, "", err
	}
	return one.who, p.newSecureCookie(sessionCookie, id, p.o.Session), a.To, nil
}

// exchangeCodeForSession exchanges the code at the provider and returns the session of the person it represents.
func (p *Provider) exchangeCodeForSession(ctx context.Context, found *oidc.Provider, code string, a attempt) (one session, err error) {
	config := p.oauth2Config(found)
	tokens, err := config.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
	if err != nil {
		return one, fmt.Errorf("giving the code to the OpenID Connect provider: %w", withoutResponseBody(err))
	}
	raw, ok := tokens.Extra("id_token").(string)
	if !ok {
		return one, errors.New("reading the answer of the OpenID Connect provider: it has no ID token")
	}
	token, err := found.Verifier(&oidc.Config{ClientID: p.o.ClientID}).Verify(ctx, raw)
	if err != nil {
		return one, fmt.Errorf("verifying the ID token: %w", err)
	}
	if token.Nonce != a.Nonce {
		return one, fmt.Errorf("verifying the ID token: its nonce is of another sign-in: %w", ErrForged)
	}
	claims, err := p.readClaims(ctx, found, token, config.TokenSource(ctx, tokens))
	if err != nil {
		return one, err
	}
	one.subject = token.Subject
	one.who = access.Principal{Kind: access.BySignIn, Name: claims.displayNameFor(token.Subject), Grants: p.grantsOf(claims.groups)}
	if len(one.who.Grants) == 0 {
		return one, ErrNoGroup
	}
	return one, nil
}

// withoutResponseBody leaves out the body of an answer, which is the provider's to see.
func withoutResponseBody(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil {
		return fmt.Errorf("it answers %s %s", refused.Response.Status, refused.ErrorCode)
	}
	return err
}

// Who returns who has the session of a request's cookie.
func (p *Provider) Who(r *http.Request) (access.Principal, bool) {
	return p.sessions.principalOfSession(p.readCookie(r, sessionCookie))
}

// Session returns the name of the session that a request's cookie has, "" where it has none.
func (p *Provider) Session(r *http.Request) string { return p.readCookie(r, sessionCookie) }

// End ends the session of a request and returns the cookie that deletes the session cookie.
func (p *Provider) End(r *http.Request) *http.Cookie {
	p.sessions.remove(p.readCookie(r, sessionCookie))
	return p.newSecureCookie(sessionCookie, "", -1)
}

// Forget returns the cookie that deletes the sign-in cookie.
func (p *Provider) Forget() *http.Cookie { return p.newSecureCookie(attemptCookie, "", -1) }
