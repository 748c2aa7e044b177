// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// Address is a repository in one way of writing: https and ssh lead to the same one, plain http may lead elsewhere.
type Address struct {
	text       string // as it was written
	plain      bool   // http
	host, port string
	path       []string // without .git at its end
}

var (
	hostRule    = lazyregexp.New(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)
	portRule    = lazyregexp.New(`^[1-9][0-9]{0,4}$`)
	userRule    = lazyregexp.New(`^[A-Za-z0-9._-]+$`)
	segmentRule = lazyregexp.New(`^[A-Za-z0-9._~+-]+$`)
)

// IsUserName reports whether a text is a plain user name that ssh accepts.
func IsUserName(text string) bool { return userRule.MatchString(text) }

// ParseAddress parses the repository address that git would receive. It is strict: unusual spellings are rejected.
// The error never quotes the URL.
func ParseAddress(repository string) (Address, error) {
	a := Address{text: repository}
	scheme, rest, hasScheme := strings.Cut(repository, "://")
	var authority, dir, defaultPort string
	switch {
	case !hasScheme:
		var scp bool
		if authority, dir, scp = strings.Cut(repository, ":"); !scp || strings.Contains(authority, "/") {
			return a, errors.New("git would take it for a local path; write ssh:// or https:// in front")
		}
	case scheme == "https" || scheme == "http" || scheme == "ssh":
		authority, dir, _ = strings.Cut(rest, "/")
		a.plain = scheme == "http"
		defaultPort = defaultPorts[scheme]
	default:
		return a, fmt.Errorf("repositories are fetched over https and ssh, and never over %s", scheme)
	}
	user, host, hasUser := strings.Cut(authority, "@")
	if !hasUser {
		user, host = "", authority
	}
	if hasUser && !IsUserName(user) || strings.Contains(host, "@") {
		return a, errors.New("its URL holds a password or an odd user name; credentials belong to the pipeline (spec.build.remoteBases)")
	}
	host, port, hasPort := strings.Cut(strings.ToLower(host), ":")
	if !hostRule.MatchString(host) || strings.Contains(host, "..") || hasPort && !portRule.MatchString(port) {
		return a, errors.New("its host is not a plain host name")
	}
	a.host = host
	if port != defaultPort {
		a.port = port
	}
	return a, a.setPath(dir)
}

// setPath parses the path of a repository.
func (a *Address) setPath(dir string) error {
	dir = strings.TrimSuffix(strings.Trim(dir, "/"), ".git")
	a.path = strings.Split(dir, "/")
	for _, segment := range a.path {
		if segment == "." || segment == ".." || !segmentRule.MatchString(segment) {
			return errors.New("the path of its repository has an empty, relative or encoded part")
		}
	}
	return nil
}

// String returns one form for all ways to write the address: with https://, or http:// for plain HTTP, and without user
// and .git.
func (a *Address) String() string {
	scheme := "https://"
	if a.plain {
		scheme = "http://"
	}
	authority := a.host
	if a.port != "" {
		authority += ":" + a.port
	}
	return scheme + authority + "/" + strings.Join(a.path, "/")
}

func (a *Address) equalTo(b *Address) bool {
	return a.plain == b.plain && a.host == b.host && a.port == b.port && slices.Equal(a.path, b.path)
}
