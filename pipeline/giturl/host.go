// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"net/url"
	"strings"
)

// alternativeHosts are the hosts on which the big Git hosts answer ssh besides their own, at alternativePort, for those who
// can reach no other port. Payloads of webhooks name only the host's own.
var alternativeHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}

const alternativePort = "443"

// Web returns the host of a repository's web pages and API, with its port, and the path of the repository there.
func (u URL) Web() (host, repository string) {
	host = strings.ToLower(u.Host)
	if u.Scheme == "ssh" {
		host = strings.ToLower(u.Hostname()) // its port is that of ssh
	}
	if other, ok := alternativeHosts[host]; ok {
		host = other
	}
	return host, strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git")
}

// Kinds of hosts whose API Prerig knows.
const (
	GitHub = "GitHub"
	GitLab = "GitLab"
	Gitea  = "Gitea"
)

// hostAPI is where a kind of host has its API.
type hostAPI struct {
	kind string
	// base returns the API's URL.
	base func(host string) string
	// statuses is where the statuses of a repository's commits are, below base.
	statuses func(repository string) string
}

var apis = []hostAPI{
	{GitHub, func(host string) string {
		if host == "github.com" {
			return "https://api.github.com"
		}
		return "https://" + host + "/api/v3" // GitHub Enterprise Server has it below the host itself
	}, func(repository string) string { return "/repos/" + repository + "/statuses/" }},
	{GitLab, func(host string) string { return "https://" + host + "/api/v4" }, func(repository string) string {
		return "/projects/" + url.PathEscape(repository) + "/statuses/"
	}},
	{Gitea, func(host string) string { return "https://" + host + "/api/v1" }, func(repository string) string {
		return "/repos/" + repository + "/statuses/"
	}},
}

// Kinds returns the kinds of hosts that StatusURL knows.
func Kinds() []string {
	var out []string
	for _, one := range apis {
		out = append(out, one.kind)
	}
	return out
}

// StatusURL returns where a host of a kind takes the status of a commit of a repository. base is the URL of its API, "" for
// the one that follows from the repository's host. It returns "" for a kind that is not known.
func (u URL) StatusURL(kind, base, commit string) string {
	host, repository := u.Web()
	for _, one := range apis {
		if one.kind != kind {
			continue
		}
		if base == "" {
			base = one.base(host)
		}
		return strings.TrimSuffix(base, "/") + one.statuses(repository) + commit
	}
	return ""
}

// CommitPage returns the page of a commit at its host. It is "" where nothing is known of it: for repositories over ssh, and
// for what is no commit's hash.
func CommitPage(repository, commit string) string {
	u, err := Parse(repository)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || len(commit) != 40 || strings.Trim(commit, "0123456789abcdef") != "" {
		return ""
	}
	middle := "/commit/"
	switch {
	case strings.Contains(u.Host, "gitlab"):
		middle = "/-/commit/"
	case u.Host == "bitbucket.org":
		middle = "/commits/"
	}
	page := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git") + middle + commit}
	return page.String()
}
