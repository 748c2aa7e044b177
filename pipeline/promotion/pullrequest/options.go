// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/prerig/prerig/pipeline/internal/process/egress"
)

// Options describe which repository is opened, and how.
type Options struct {
	// Provider is one of giturl.Kinds, "" where it follows from the repository's URL.
	Provider string
	// Repository is the URL of the repository, as Git accepts it.
	Repository string
	// API is the URL of the host's API, "" for the one that follows from the provider and the repository's URL.
	API string
	// Credentials of the one who acts at the host.
	Credentials Credentials
	// IsFor returns an error where the credentials are not for a URL that the host redirects to; nil allows all of
	// the host's API.
	IsFor func(ctx context.Context, url string) error
	// Dialer connects to the host; if nil, a dialer with the default rules is used.
	Dialer *egress.Dialer
}

// Credentials are a token, a user and password, or those of a GitHub App.
type Credentials struct {
	// Token is a personal, project or repository access token.
	Token string
	// Username and Password are what Bitbucket accepts for API tokens and app passwords.
	Username, Password string
	// App is the app, or nil if none is used.
	App *App
	// CA are certificate authorities in PEM form, trusted beside those of the system.
	CA []byte
}

// App is an installation of a GitHub App.
type App struct {
	// ID is the App's number or its client ID.
	ID string
	// Installation is the installation's number; 0 where it is found from the repository.
	Installation int64
	// Key is the App's private key in PEM form.
	Key []byte
}

// Keys of a secret. Those of a GitHub App are named as Flux names them.
const (
	KeyToken           = "token"
	KeyBearerToken     = "bearerToken"
	KeyUsername        = "username"
	KeyPassword        = "password"
	KeyAppID           = "githubAppID"
	KeyAppInstallation = "githubAppInstallationID"
	KeyAppKey          = "githubAppPrivateKey"
	KeyCA              = "ca.crt"
)

// ReadCredentials parses the keys of a secret. The error never contains a value.
func ReadCredentials(keys map[string][]byte) (Credentials, error) {
	text := func(key string) string { return strings.TrimSpace(string(keys[key])) }
	c := Credentials{Token: text(KeyToken), CA: keys[KeyCA]}
	if bearer := text(KeyBearerToken); bearer != "" {
		if c.Token != "" {
			return c, fmt.Errorf("the secret has both %s and %s", KeyToken, KeyBearerToken)
		}
		c.Token = bearer
	}
	if key := bytes.TrimSpace(keys[KeyAppKey]); len(key) > 0 || text(KeyAppID) != "" {
		return c, c.readApp(keys, text)
	}
	if c.Token == "" {
		c.Username, c.Password = text(KeyUsername), text(KeyPassword)
	}
	if c.Token == "" && c.Password == "" {
		return c, fmt.Errorf("the secret has none of %s, %s and %s", KeyToken, KeyPassword, KeyAppKey)
	}
	return c, nil
}

func (c *Credentials) readApp(keys map[string][]byte, text func(string) string) error {
	if c.Token != "" {
		return fmt.Errorf("the secret has both a token and the keys of a GitHub App")
	}
	c.App = &App{ID: text(KeyAppID), Key: bytes.TrimSpace(keys[KeyAppKey])}
	if c.App.ID == "" || len(c.App.Key) == 0 {
		return fmt.Errorf("a GitHub App needs both %s and %s", KeyAppID, KeyAppKey)
	}
	if number := text(KeyAppInstallation); number != "" {
		var err error
		if c.App.Installation, err = strconv.ParseInt(number, 10, 64); err != nil || c.App.Installation <= 0 {
			return errors.New(KeyAppInstallation + " must be a number")
		}
	}
	return nil
}
