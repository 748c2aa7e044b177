// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/time/rate"
)

// Who signs the tokens of push subscriptions, and where its keys are (cloud.google.com/pubsub/docs/authenticate-push-subscriptions).
const (
	googleIssuer = "https://accounts.google.com"
	googleKeys   = "https://www.googleapis.com/oauth2/v3/certs"
)

// TokenVerifier checks the tokens that Google's Pub/Sub sends with each message. It is safe for concurrent use.
type TokenVerifier struct {
	audience, email string
	keys            oidc.KeySet
}

// Keys are fetched when a token names one that is not known. Anybody can send such tokens.
const (
	keyFetchInterval = 10 * time.Second
	keyFetchTimeout  = 10 * time.Second
)

// NewTokenVerifier returns a verifier of tokens for an audience, which is the subscription's own, by the service account of an email
// address. Keys are fetched with the transport from keysURL, "" for Google's, and kept as long as they are good.
func NewTokenVerifier(audience, email, keysURL string, transport http.RoundTripper) (*TokenVerifier, error) {
	if audience == "" || !strings.Contains(email, "@") {
		return nil, errors.New("it needs the audience of the subscription's token and the email address of its service account")
	}
	if keysURL == "" {
		keysURL = googleKeys
	}
	client := &http.Client{Timeout: keyFetchTimeout, Transport: &rarelyAsking{transport, rate.NewLimiter(rate.Every(keyFetchInterval), 2)}}
	return &TokenVerifier{audience, email, oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client), keysURL)}, nil
}

// verifyBearerToken checks the signature, issuer, audience, time and service account of a delivery's bearer token.
func (v *TokenVerifier) verifyBearerToken(h http.Header, now time.Time) error {
	raw, ok := strings.CutPrefix(h.Get("Authorization"), "Bearer ")
	if !ok {
		return fmt.Errorf("%w: Authorization holds no bearer token", ErrSignature)
	}
	ctx, cancel := context.WithTimeout(context.Background(), keyFetchTimeout)
	defer cancel()
	token, err := oidc.NewVerifier(googleIssuer, v.keys, &oidc.Config{ClientID: v.audience, Now: func() time.Time { return now }}).Verify(ctx, raw)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := token.Claims(&claims); err != nil {
		return fmt.Errorf("%w: %w", ErrSignature, err)
	}
	if !claims.Verified || claims.Email != v.email {
		return fmt.Errorf("%w: the token is not of the service account", ErrSignature)
	}
	return nil
}

// rarelyAsking refuses requests that come too often.
type rarelyAsking struct {
	next  http.RoundTripper
	limit *rate.Limiter
}

// RoundTrip implements http.RoundTripper.
func (r *rarelyAsking) RoundTrip(request *http.Request) (*http.Response, error) {
	if !r.limit.Allow() {
		return nil, errors.New("the keys were asked for a moment ago")
	}
	return r.next.RoundTrip(request)
}
