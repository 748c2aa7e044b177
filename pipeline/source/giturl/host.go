// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package giturl

import (
	"net/url"
	"slices"
	"strings"
)

// alternativeHosts are the hosts on which the big Git hosts answer ssh besides their own, at alternativePort, for those
// who can reach no other port. Payloads of webhooks name only the host's own.
var alternativeHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com",
	"altssh.bitbucket.org": "bitbucket.org"}

const alternativePort = "443"

// Web returns the host of a repository's web pages and API, with its port, and the path of the repository on it.
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
	// repository returns the path of the repository below base, or "" if the URL does not belong to this kind;
	// status returns the path below that for the status of a commit.
	repository func(u URL) string
	status     func(commit string) string
}

func webURLBelow(parent string) func(u URL) string {
	return func(u URL) string {
		_, repository := u.Web()
		return parent + repository
	}
}

func statusBelow(format string) func(commit string) string {
	return func(commit string) string { return strings.ReplaceAll(format, "COMMIT", commit) }
}

var apis = []hostAPI{
	{GitHub, func(u URL) string {
		host, _ := u.Web()
		if host == "github.com" {
			return "https://api.github.com"
		}
		return "https://" + host + "/api/v3" // GitHub Enterprise Server has it below the host itself
	}, webURLBelow("/repos/"), statusBelow("/statuses/COMMIT")},
	{GitLab, func(u URL) string { return u.webServer() + "/api/v4" }, func(u URL) string {
		_, repository := u.Web()
		return "/projects/" + url.PathEscape(repository)
	}, statusBelow("/statuses/COMMIT")},
	{Gitea, func(u URL) string { return u.webServer() + "/api/v1" }, webURLBelow("/repos/"), statusBelow("/statuses/COMMIT")},
	{BitbucketCloud, func(URL) string { return "https://api.bitbucket.org/2.0" }, webURLBelow("/repositories/"), statusBelow("/commit/COMMIT/statuses/build")},
	// The API of build statuses is of 7.4 and later (developer.atlassian.com, "Bitbucket Data Center REST API").
	{BitbucketServer, bitbucketServerBase, bitbucketServerRepository, statusBelow("/commits/COMMIT/builds")},
	// learn.microsoft.com, "Statuses - Create".
	{AzureDevOps, azureBase, azureRepository, statusBelow("/commits/COMMIT/statuses?api-version=7.0")},
}

// webServer returns the URL of the server of a repository's pages: plain http only where the repository is read so.
func (u URL) webServer() string {
	host, _ := u.Web()
	if u.Scheme == "http" {
		return "http://" + host
	}
	return "https://" + host
}

// scmMark precedes the project in https URLs of Bitbucket Data Center, and follows the path that the server may be
// below.
const scmMark = "scm/"

func bitbucketServerBase(u URL) string {
	base := u.webServer()
	_, path := u.Web()
	if u.Scheme != "ssh" {
		if before, _, found := strings.Cut("/"+path, "/"+scmMark); found {
			base += before
		}
	}
	return base + "/rest/api/latest"
}

func bitbucketServerRepository(u URL) string {
	_, path := u.Web()
	if _, after, found := strings.Cut("/"+path, "/"+scmMark); found {
		path = after
	}
	project, repository, ok := strings.Cut(path, "/")
	if !ok || strings.Contains(repository, "/") {
		return ""
	}
	return "/projects/" + url.PathEscape(project) + "/repos/" + url.PathEscape(repository)
}

// azureProject splits the URL of an Azure DevOps repository into the URL of the organisation or collection, the
// project and the repository, which all may be names with spaces.
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

func azureRepository(u URL) string {
	_, project, repository, ok := azureProject(u)
	if !ok {
		return ""
	}
	return "/" + url.PathEscape(project) + "/_apis/git/repositories/" + url.PathEscape(repository)
}

// Kinds returns the kinds of hosts that StatusURL knows.
func Kinds() []string {
	var out []string
	for _, one := range apis {
		out = append(out, one.kind)
	}
	return out
}

// StatusURL returns the URL to which a host of a kind accepts the status of a commit. base is the URL of its API,
// or "" to derive it from the repository's URL. It returns "" for an unknown kind, and for a URL that does not
// belong to the kind.
func (u URL) StatusURL(kind, base, commit string) string {
	repository := u.RepositoryURL(kind, base)
	i := slices.IndexFunc(apis, func(one hostAPI) bool { return one.kind == kind })
	if repository == "" || i < 0 {
		return ""
	}
	return repository + apis[i].status(commit)
}

// RepositoryURL returns where the API of a host of a kind has a repository, and "" as StatusURL does.
func (u URL) RepositoryURL(kind, base string) string {
	i := slices.IndexFunc(apis, func(one hostAPI) bool { return one.kind == kind })
	if i < 0 {
		return ""
	}
	repository := apis[i].repository(u)
	if repository == "" {
		return ""
	}
	if base == "" {
		base = apis[i].base(u)
	}
	return strings.TrimSuffix(base, "/") + repository
}

// KindOf returns the kind of host that the URL of a repository implies, or "" if unknown.
func (u URL) KindOf() string {
	host, path := u.Web()
	name, _, _ := strings.Cut(host, ":")
	switch {
	case name == "bitbucket.org":
		return BitbucketCloud
	case name == "codeberg.org":
		return Gitea
	case name == "dev.azure.com", name == "ssh.dev.azure.com", strings.HasSuffix(name, ".visualstudio.com"),
		strings.Contains("/"+path, "/_git/"):
		return AzureDevOps
	case u.Scheme != "ssh" && strings.HasPrefix(path, scmMark):
		return BitbucketServer
	}
	for _, label := range strings.Split(name, ".") {
		if kind := namedKinds[label]; kind != "" {
			return kind
		}
	}
	return ""
}

// namedKinds are what hosts of a kind are often named.
var namedKinds = map[string]string{"github": GitHub, "ghe": GitHub, "gitlab": GitLab, "gitea": Gitea, "forgejo": Gitea}

// WebPage returns the page of a commit, or the server's first page where the first is not known.
func (u URL) WebPage(repository, commit string) string {
	if page := CommitPage(repository, commit); page != "" {
		return page
	}
	return u.webServer()
}

// CommitPage returns the web page of a commit at its host. It returns "" if unknown: for repositories over ssh, and
// for text that is not a commit hash.
func CommitPage(repository, commit string) string {
	u, err := Parse(repository)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || len(commit) != 40 ||
		strings.Trim(commit, "0123456789abcdef") != "" {
		return ""
	}
	middle := "/commit/"
	switch {
	case strings.Contains(u.Host, "gitlab"):
		middle = "/-/commit/"
	case u.Host == "bitbucket.org":
		middle = "/commits/"
	}
	page := url.URL{Scheme: u.Scheme, Host: u.Host,
		Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git") + middle + commit}
	return page.String()
}
