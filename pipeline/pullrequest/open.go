// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prerig/prerig/pipeline/giturl"
)

// Address returns the provider of a repository and the URL of its host's API, which is what the credentials are sent to. It contacts
// nothing. The errors never quote the repository's URL.
func Address(provider, repository, api string) (kind, url string, err error) {
	u, err := giturl.Parse(repository)
	if err != nil {
		return "", "", fmt.Errorf("reading the repository's URL: %w", err)
	}
	if provider == "" {
		if provider = u.KindOf(); provider == "" {
			return "", "", fmt.Errorf("its URL does not tell what kind of host %s is; give the provider, one of %s", u.Hostname(), strings.Join(giturl.Kinds(), ", "))
		}
	}
	if url = u.RepositoryURL(provider, api); url == "" {
		return "", "", fmt.Errorf("the URL is not one of a repository of %s", provider)
	}
	return provider, url, nil
}

// opener returns the repository at a kind of host.
type opener func(o Options, u giturl.URL, at string) (Host, error)

var openers = map[string]opener{}

// Open returns the repository at a host. It contacts nothing; the first call does.
func Open(o Options) (Host, error) {
	provider, at, err := Address(o.Provider, o.Repository, o.API)
	if err != nil {
		return nil, err
	}
	if o.Credentials.App != nil && provider != giturl.GitHub {
		return nil, fmt.Errorf("the credentials are those of a GitHub App, and the host is one of %s", provider)
	}
	u, err := giturl.Parse(o.Repository)
	if err != nil {
		return nil, err
	}
	open, ok := openers[provider]
	if !ok {
		return nil, errors.New("pull requests at " + provider + " are not supported")
	}
	return open(o, u, at)
}
