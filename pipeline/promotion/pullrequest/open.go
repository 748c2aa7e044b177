// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Address returns the provider of a repository and the address of its host's API, which the credentials are sent
// to. It does not contact the host. The errors never quote the repository's URL.
func Address(provider, repository, api string) (kind, at string, err error) {
	u, err := giturl.Parse(repository)
	if err != nil {
		return "", "", fmt.Errorf("reading the repository's URL: %w", err)
	}
	if provider == "" {
		if provider = u.KindOf(); provider == "" {
			return "", "", fmt.Errorf("its URL does not tell what kind of host %s is; give the provider, one of %s", u.Hostname(), strings.Join(giturl.Kinds(), ", "))
		}
	}
	if at = u.RepositoryURL(provider, api); at == "" {
		return "", "", fmt.Errorf("the URL is not one of a repository of %s", provider)
	}
	return provider, at, nil
}

// openers open the hosts of giturl.Kinds.
var openers = map[string]func(a *api, c Credentials) Host{
	giturl.GitHub: openGitHub, giturl.GitLab: openGitLab, giturl.Gitea: openGitea,
	giturl.BitbucketCloud: openBitbucketCloud, giturl.BitbucketServer: openBitbucketServer, giturl.AzureDevOps: openAzure,
}

// Open returns the repository at a host. It does not contact the host; the first call does.
func Open(o Options) (Host, error) {
	provider, at, err := Address(o.Provider, o.Repository, o.API)
	if err != nil {
		return nil, err
	}
	if o.Credentials.App != nil && provider != giturl.GitHub {
		return nil, fmt.Errorf("the credentials are those of a GitHub App, and the host is one of %s", provider)
	}
	server, err := url.Parse(at)
	if err != nil || server.Host == "" || server.Scheme != "https" && server.Scheme != "http" {
		return nil, errors.New("the URL of the API must start with https:// or http://")
	}
	u, err := giturl.Parse(o.Repository)
	if err != nil {
		return nil, err
	}
	client, err := newClient(o.Dialer, o.Credentials.CA)
	if err != nil {
		return nil, err
	}
	_, path := u.Web()
	c := o.Credentials
	a := &api{root: strings.TrimSuffix(at, u.RepositoryURL(provider, "/")), at: at, server: server.Host, repository: path, client: client, isFor: o.IsFor, now: time.Now}
	a.marks = sha256.Sum256(slices.Concat([]byte("marks "+c.Token+c.Password), appKey(c)))
	return openers[provider](a, c), nil
}

func appKey(c Credentials) []byte {
	if c.App == nil {
		return nil
	}
	return c.App.Key
}

// authorizeWithHeader returns an authorize that sets the header Authorization.
func authorizeWithHeader(value string) func(r *http.Request) error {
	return func(r *http.Request) error {
		r.Header.Set("Authorization", value)
		return nil
	}
}

func basicAuthorization(userAndPassword string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(userAndPassword))
}

// bearerAuthorization uses a token, or the password in which a secret for Git may have the token.
func bearerAuthorization(c Credentials) func(r *http.Request) error {
	token := c.Token
	if token == "" {
		token = c.Password
	}
	return authorizeWithHeader("Bearer " + token)
}

// bearerOrBasic uses a token, or a user and a password, which may be combined as USER:PASSWORD.
func bearerOrBasic(c Credentials) func(r *http.Request) error {
	switch {
	case c.Token == "":
		return authorizeWithHeader(basicAuthorization(c.Username + ":" + c.Password))
	case strings.Contains(c.Token, ":"):
		return authorizeWithHeader(basicAuthorization(c.Token))
	}
	return authorizeWithHeader("Bearer " + c.Token)
}
