// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"net/url"
	"slices"
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
	GitHub          = "GitHub"
	GitLab          = "GitLab"
	Gitea           = "Gitea"
	BitbucketCloud  = "BitbucketCloud"
	BitbucketServer = "BitbucketServer"
	AzureDevOps     = "AzureDevOps"
)

// hostAPI is where a kind of host has its API.
type hostAPI struct {
	kind string
	// base returns the API's URL.
	base func(u URL) string
	// status is where the status of a commit of the repository goes, below base; "" where the URL is none of the kind's.
	status func(u URL, commit string) string
}

var apis = []hostAPI{
	{GitHub, func(u URL) string {
		host, _ := u.Web()
		if host == "github.com" {
			return "https://api.github.com"
		}
		return "https://" + host + "/api/v3" // GitHub Enterprise Server has it below the host itself
	}, func(u URL, commit string) string {
		_, repository := u.Web()
		return "/repos/" + repository + "/statuses/" + commit
	}},
	{GitLab, func(u URL) string {
		host, _ := u.Web()
		return "https://" + host + "/api/v4"
	}, func(u URL, commit string) string {
		_, repository := u.Web()
		return "/projects/" + url.PathEscape(repository) + "/statuses/" + commit
	}},
	{Gitea, func(u URL) string { return u.webServer() + "/api/v1" }, func(u URL, commit string) string {
		_, repository := u.Web()
		return "/repos/" + repository + "/statuses/" + commit
	}},
	{BitbucketCloud, func(URL) string { return "https://api.bitbucket.org/2.0" }, func(u URL, commit string) string {
		_, repository := u.Web()
		return "/repositories/" + repository + "/commit/" + commit + "/statuses/build"
	}},
	{BitbucketServer, bitbucketServerBase, bitbucketServerStatus},
	{AzureDevOps, azureBase, azureStatus},
}

// webServer returns the URL of the server of a repository's pages: plain http only where the repository is read so.
func (u URL) webServer() string {
	host, _ := u.Web()
	if u.Scheme == "http" {
		return "http://" + host
	}
	return "https://" + host
}

// scmMark stands before the project in URLs over https of Bitbucket Data Center, and after the path that the server may be below.
const scmMark = "scm/"

func bitbucketServerBase(u URL) string {
	base := u.webServer()
	if _, path := u.Web(); u.Scheme != "ssh" {
		if before, _, found := strings.Cut("/"+path, "/"+scmMark); found {
			base += before
		}
	}
	return base + "/rest/api/latest"
}

// bitbucketServerStatus is of the API of build statuses since 7.4 (developer.atlassian.com, "Bitbucket Data Center REST API").
func bitbucketServerStatus(u URL, commit string) string {
	_, path := u.Web()
	if _, after, found := strings.Cut("/"+path, "/"+scmMark); found {
		path = after
	}
	project, repository, ok := strings.Cut(path, "/")
	if !ok || strings.Contains(repository, "/") {
		return ""
	}
	return "/projects/" + url.PathEscape(project) + "/repos/" + url.PathEscape(repository) + "/commits/" + commit + "/builds"
}

// azureProject takes the URL of a repository of Azure DevOps apart: into the URL of the organisation or collection, the project and
// the repository, which all may be names with spaces.
func azureProject(u URL) (organisation, project, repository string, ok bool) {
	host, path := u.Web()
	parts := strings.Split(path, "/")
	if u.Scheme == "ssh" && len(parts) == 4 && parts[0] == "v3" {
		// Of Azure DevOps Services alone.
		return "https://dev.azure.com/" + url.PathEscape(parts[1]), parts[2], parts[3], true
	}
	at := slices.Index(parts, "_git")
	if at < 0 || at != len(parts)-2 {
		return "", "", "", false
	}
	repository, project = parts[at+1], parts[at+1]
	above, names := parts[:at], 1 // of the organisation or collection
	if strings.HasSuffix(host, ".visualstudio.com") {
		names = 0
		if len(above) > 0 && above[0] == "DefaultCollection" {
			above = above[1:]
		}
	}
	// A repository that is named as its project may be written without it.
	if len(above) > names {
		project, above = above[len(above)-1], above[:len(above)-1]
	}
	organisation = u.webServer()
	for _, part := range above {
		organisation += "/" + url.PathEscape(part)
	}
	return organisation, project, repository, true
}

func azureBase(u URL) string {
	organisation, _, _, _ := azureProject(u)
	return organisation
}

// azureStatus is of the API of Git statuses (learn.microsoft.com, "Statuses - Create").
func azureStatus(u URL, commit string) string {
	_, project, repository, ok := azureProject(u)
	if !ok {
		return ""
	}
	return "/" + url.PathEscape(project) + "/_apis/git/repositories/" + url.PathEscape(repository) + "/commits/" + commit + "/statuses?api-version=7.0"
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
// the one that follows from the repository's URL. It returns "" for a kind that is not known, and for a URL that is none of the kind's.
func (u URL) StatusURL(kind, base, commit string) string {
	for _, one := range apis {
		if one.kind != kind {
			continue
		}
		status := one.status(u, commit)
		if status == "" {
			return ""
		}
		if base == "" {
			base = one.base(u)
		}
		return strings.TrimSuffix(base, "/") + status
	}
	return ""
}

// WebPage returns the page of a commit, or the server's first page where the first is not known.
func (u URL) WebPage(repository, commit string) string {
	if page := CommitPage(repository, commit); page != "" {
		return page
	}
	return u.webServer()
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
