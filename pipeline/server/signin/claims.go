// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/server/access"
)

// claims are what is known about a user.
type claims struct {
	values map[string]any
	groups []string
}

// readClaims reads the ID token, and the user info for what that lacks: most providers keep groups out of ID tokens.
func (p *Provider) readClaims(ctx context.Context, found *oidc.Provider, token *oidc.IDToken, tokens oauth2.TokenSource) (claims, error) {
	c := claims{values: map[string]any{}}
	if err := token.Claims(&c.values); err != nil {
		return c, fmt.Errorf("reading the ID token: %w", err)
	}
	if _, ok := c.values[p.o.GroupsClaim]; !ok && found.UserInfoEndpoint() != "" {
		info, err := found.UserInfo(ctx, tokens)
		if err != nil {
			return c, errors.New("asking the OpenID Connect provider for user info: it refuses")
		}
		if info.Subject != token.Subject {
			return c, errors.New("reading user info: its subject is not that of the ID token")
		}
		further := map[string]any{}
		if err := info.Claims(&further); err != nil {
			return c, fmt.Errorf("reading user info: %w", err)
		}
		for key, value := range further {
			if _, ok := c.values[key]; !ok {
				c.values[key] = value
			}
		}
	}
	switch groups := c.values[p.o.GroupsClaim].(type) {
	case string:
		c.groups = []string{groups}
	case []any:
		for _, group := range groups {
			if name, ok := group.(string); ok {
				c.groups = append(c.groups, name)
			}
		}
	}
	return c, nil
}

// displayNameFor returns a user's name for the log: the subject, which the provider assigns permanently, followed by a
// human-readable name if known.
func (c claims) displayNameFor(subject string) string {
	const most = 255 // as long as a subject may be (OpenID Connect Core 1.0, 2)
	subject = foreign.Text(subject, most)
	for _, claim := range []string{"email", "preferred_username", "name"} {
		if called, ok := c.values[claim].(string); ok && called != "" {
			return subject + " (" + foreign.Text(called, most) + ")"
		}
	}
	return subject
}

// grantsOf returns what people of some groups may do.
func (p *Provider) grantsOf(groups []string) []access.Grant {
	var out []access.Grant
	for _, g := range p.o.Grants {
		if slices.Contains(groups, g.Group) {
			out = append(out, g.Grant)
		}
	}
	return out
}
