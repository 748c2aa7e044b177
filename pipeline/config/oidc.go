// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/livefile"
	"github.com/prerig/prerig/pipeline/server/access"
	"github.com/prerig/prerig/pipeline/server/signin"
)

// OIDC lets people sign in to the page at an OpenID Connect provider. Without an issuer, sign-in is disabled.
type OIDC struct {
	// Issuer is the URL of the provider, as it names itself.
	Issuer string `mapstructure:"issuer"`
	// ClientID is the daemon's id at the provider, ClientSecret a file with its secret; empty for a public client.
	ClientID     string `mapstructure:"client_id"`
	ClientSecret string `mapstructure:"client_secret"`
	// CA is a file with certificates that the provider is checked against, beside those of the system.
	CA string `mapstructure:"ca"`
	// Scopes are asked for, beside openid.
	Scopes []string `mapstructure:"scopes"`
	// GroupsClaim is the claim with the groups of a user.
	GroupsClaim string `mapstructure:"groups_claim"`
	// Session is how long a user stays signed in.
	Session time.Duration `mapstructure:"session"`
	// Grants assign roles to groups.
	Grants []GroupGrant `mapstructure:"grants"`
}

// GroupGrant assigns a role to the members of a group.
type GroupGrant struct {
	Group string `mapstructure:"group"`
	// Role is read, operate or administer.
	Role string `mapstructure:"role"`
	// Namespaces that it is for; none means all.
	Namespaces []string `mapstructure:"namespaces"`
}

func defaultOIDC() OIDC {
	return OIDC{Scopes: []string{"profile", "email"}, GroupsClaim: "groups", Session: 8 * time.Hour}
}

// maxSession bounds how long a user may stay signed in: permissions that the provider has revoked remain effective
// for that long.
const maxSession = 7 * 24 * time.Hour

func (o OIDC) validate(add addError, externalURL string) {
	if o.Issuer == "" {
		if o.ClientID != "" || len(o.Grants) > 0 {
			add("admin.oidc.issuer", "must be given where another key of admin.oidc is")
		}
		return
	}
	for key, value := range map[string]string{"admin.oidc.issuer": o.Issuer, "external_url": externalURL} {
		if !isSafeFromListeners(value) {
			add(key, "must be an https:// URL to sign in with; http:// does for this machine only")
		}
	}
	if o.ClientID == "" {
		add("admin.oidc.client_id", "must be given")
	}
	if o.GroupsClaim == "" {
		add("admin.oidc.groups_claim", "must be given")
	}
	if o.Session < time.Minute || o.Session > maxSession {
		add("admin.oidc.session", "must be from 1m to %s, found %s", maxSession, o.Session)
	}
	if _, err := o.parseGrants(); err != nil {
		add("admin.oidc.grants", "%v", err)
	}
}

// isSafeFromListeners reports whether what is sent to a URL cannot be read on the way.
func isSafeFromListeners(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Scheme == "https" || u.Scheme == "http" && (u.Hostname() == "localhost" || ip != nil && ip.IsLoopback())
}

// parseGrants returns the grants, or what is wrong with them.
func (o OIDC) parseGrants() ([]signin.Grant, error) {
	if len(o.Grants) == 0 {
		return nil, errors.New("must assign a role to a group, or no user can sign in")
	}
	var out []signin.Grant
	for i, g := range o.Grants {
		grant := signin.Grant{Group: g.Group, Grant: access.Grant{Role: access.Role(g.Role), Namespaces: g.Namespaces}}
		if g.Group == "" {
			return nil, fmt.Errorf("[%d].group must be given", i)
		}
		if grant.Role == access.Metrics {
			return nil, fmt.Errorf("[%d].role must be read, operate or administer: metrics are read with a token", i)
		}
		if err := grant.Check(); err != nil {
			return nil, fmt.Errorf("[%d].%w", i, err)
		}
		out = append(out, grant)
	}
	return out, nil
}

// SignIn returns the provider that lets people sign in, or nil if sign-in is disabled. The file of the secret is
// read again when it changes.
func (c *Config) SignIn(log *slog.Logger) (*signin.Provider, error) {
	o := c.Admin.OIDC
	if o.Issuer == "" {
		return nil, nil
	}
	grants, err := o.parseGrants()
	if err != nil {
		return nil, err
	}
	options := signin.Options{
		Issuer: o.Issuer, ClientID: o.ClientID, CAFile: o.CA, Scopes: o.Scopes, GroupsClaim: o.GroupsClaim,
		Grants: grants, Session: o.Session, ExternalURL: c.ExternalURL,
	}
	if o.ClientSecret != "" {
		secret, err := livefile.Open("the secret for the OpenID Connect provider", log, func() ([]byte, error) { return os.ReadFile(o.ClientSecret) },
			func(text []byte) (string, error) {
				secret := strings.TrimSpace(string(text))
				if secret == "" {
					return "", fmt.Errorf("%s is empty", o.ClientSecret)
				}
				return secret, nil
			})
		if err != nil {
			return nil, fmt.Errorf("reading the secret for the OpenID Connect provider: %w", err)
		}
		options.ClientSecret = secret.Get
	}
	return signin.New(options)
}
