// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// URL is the URL of a repository, taken apart.
type URL struct {
	*url.URL
	// Short means that it was written in ssh's short form, user@host:path. Its scheme is ssh then.
	Short bool
}

// errNoHost is about a text that names no host, such as a local path.
var errNoHost = errors.New("the URL names no host")

// Parse reads the URL of a repository, also in ssh's short form. The error never quotes it.
func Parse(raw string) (URL, error) {
	short := false
	if host, path, ok := strings.Cut(raw, ":"); ok && !strings.Contains(raw, "://") && !strings.Contains(host, "/") {
		raw, short = "ssh://"+host+"/"+strings.TrimPrefix(path, "/"), true
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return URL{}, errNoHost
	}
	return URL{u, short}, nil
}

var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418"}

// DefaultPort returns the port of a scheme where a URL names none, "" for one that is not known.
func DefaultPort(scheme string) string { return defaultPorts[scheme] }

// Normal returns the form in which URLs of repositories are compared: host/path without scheme, user, default port,
// query and a final .git or slash. The host and the path are in lower case, as Git hosts compare them so.
func Normal(raw string) string {
	s := strings.TrimSpace(raw)
	if u, err := Parse(s); err == nil {
		host := u.Hostname()
		if port := u.Port(); port != "" && port != defaultPorts[u.Scheme] {
			host += ":" + port
		}
		if other, ok := alternativeHosts[strings.ToLower(u.Hostname())]; ok && u.Scheme == "ssh" && u.Port() == alternativePort {
			host = other
		}
		s = host + "/" + strings.Trim(u.Path, "/")
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(s, "/")), ".git")
}

// Same reports whether two URLs are of one repository, however they are written.
func Same(a, b string) bool { return Normal(a) == Normal(b) }

// SameServer reports whether two URLs lead to one server in the same way, so that the credentials of one may be
// sent to the other: scheme, host and port are equal, and in ssh's short form the user too.
func SameServer(a, b string) bool {
	one, errOne := Parse(a)
	two, errTwo := Parse(b)
	if errOne != nil || errTwo != nil || one.Short != two.Short {
		return false
	}
	if one.Short {
		return one.User != nil && two.User != nil && one.User.String() == two.User.String() && one.Host == two.Host
	}
	return one.Scheme == two.Scheme && one.Host == two.Host
}

// Resolve returns the URL of a submodule, which may be relative to that of the repository that it is in.
func Resolve(base, to string) string {
	if !strings.HasPrefix(to, "./") && !strings.HasPrefix(to, "../") {
		return to
	}
	if u, err := Parse(base); err == nil && !u.Short {
		u.Path = path.Join(u.Path, to)
		return u.String()
	}
	host, dir, _ := strings.Cut(base, ":")
	return host + ":" + strings.TrimPrefix(path.Join("/", dir, to), "/")
}

var shortRule = lazyregexp.New(`^[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:[^/].*$`)

// Check returns the problems of a user-provided URL of a repository to fetch from or push to, or nil if it is
// valid. It never quotes the URL.
func Check(raw string) (problems []string) {
	if shortRule.MatchString(raw) {
		return nil
	}
	if strings.ContainsAny(raw, " \t\r\n") {
		return []string{"must not contain a space; remove it, or write it as %20"}
	}
	u, err := Parse(raw)
	if err != nil || u.Short || !slices.Contains([]string{"https", "http", "ssh"}, u.Scheme) {
		return []string{"must start with https://, http:// or ssh://, or be of the form user@host:path"}
	}
	if _, has := u.User.Password(); has || (u.User != nil && u.Scheme != "ssh") {
		problems = append(problems, "must not contain credentials; give them with secretRef")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		problems = append(problems, "must not have a query or a fragment")
	}
	return problems
}
