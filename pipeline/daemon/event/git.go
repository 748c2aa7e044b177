// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// bodyParser reads the changes from a delivery's body. No changes and no error means that the delivery needs no
// action.
type bodyParser func(h http.Header, body []byte) ([]Change, error)

// pushPayload is the payload that GitHub, Gitea, Forgejo and GitLab have in common, with the repository's URLs of each.
type pushPayload struct {
	Ref        string
	Before     string
	After      string
	Repository struct {
		CloneURL   string `json:"clone_url"`
		SSHURL     string `json:"ssh_url"`
		GitURL     string `json:"git_url"`
		HTMLURL    string `json:"html_url"`
		GitHTTPURL string `json:"git_http_url"`
		GitSSHURL  string `json:"git_ssh_url"`
	}
	Project struct {
		GitHTTPURL string `json:"git_http_url"`
		GitSSHURL  string `json:"git_ssh_url"`
		WebURL     string `json:"web_url"`
	}
}

// isZeroCommit is the commit of a reference that does not exist, before it was made or after it was deleted.
func isZeroCommit(commit string) bool { return strings.Trim(commit, "0") == "" }

func (p pushPayload) toChanges() ([]Change, error) {
	urls := distinctWords(p.Repository.CloneURL, p.Repository.SSHURL, p.Repository.GitURL, p.Repository.HTMLURL,
		p.Repository.GitHTTPURL, p.Repository.GitSSHURL, p.Project.GitHTTPURL, p.Project.GitSSHURL, p.Project.WebURL)
	if len(urls) == 0 {
		return nil, fmt.Errorf("reading a push: the payload has no URL of the repository")
	}
	if p.Ref == "" {
		return nil, fmt.Errorf("reading a push: the payload has no ref")
	}
	return []Change{{Git: gitChange(urls, p.Ref, p.Before, p.After)}}, nil
}

func gitChange(urls []string, ref, before, after string) *GitChange {
	c := &GitChange{URLs: urls, Ref: ref, Before: before, After: after, Deleted: after != "" && isZeroCommit(after)}
	if isZeroCommit(before) {
		c.Before = ""
	}
	if c.Deleted {
		c.After = ""
	}
	return c
}

// parsePush reads the push of a host that names the event in the first header present; other events yield no
// change.
func parsePush(headers ...string) bodyParser {
	return func(h http.Header, body []byte) ([]Change, error) {
		for _, header := range headers {
			switch h.Get(header) {
			case "":
				continue
			case "push":
				return readPush(body)
			}
			break
		}
		return nil, nil
	}
}

func readPush(body []byte) ([]Change, error) {
	var p pushPayload
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a push: %w", err)
	}
	return p.toChanges()
}

// parseForms also accepts bodies that are forms: the JSON is then the value of payload, and the signature covers
// the form. GitHub sends forms by default, and Gitea and Forgejo can be configured to.
func parseForms(parse bodyParser) bodyParser {
	return func(h http.Header, body []byte) ([]Change, error) {
		if kind, _, err := mime.ParseMediaType(h.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
			return parse(h, body)
		}
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return nil, fmt.Errorf("reading a form: %w", err)
		}
		payload := []byte(form.Get("payload"))
		if err := checkLists(payload); err != nil {
			return nil, err
		}
		return parse(h, payload)
	}
}

// parseGitLab reads the pushes and merge requests of hooks of projects and groups, and of system hooks, which name the event in the body.
func parseGitLab(h http.Header, body []byte) ([]Change, error) {
	switch h.Get("X-Gitlab-Event") {
	case "Push Hook", "Tag Push Hook":
		return readPush(body)
	case "Merge Request Hook":
		return parseMergeRequest(body)
	case "System Hook":
		var p struct {
			EventName  string `json:"event_name"`
			ObjectKind string `json:"object_kind"`
		}
		if err := json.Unmarshal(body, &p); err != nil {
			return nil, fmt.Errorf("reading a system hook: %w", err)
		}
		if p.EventName == "push" || p.EventName == "tag_push" {
			return readPush(body)
		}
		if p.ObjectKind == "merge_request" {
			return parseMergeRequest(body)
		}
	}
	return nil, nil
}

// parseGitHub reads pushes, pull requests, and packages that were published to GitHub's registry.
func parseGitHub(h http.Header, body []byte) ([]Change, error) {
	switch h.Get("X-GitHub-Event") {
	case "package", "registry_package":
		return parseGitHubPackage(h, body)
	case "pull_request":
		return parsePull(body)
	}
	return parsePush("X-GitHub-Event")(h, body)
}

// parseBitbucketCloud reads pull requests, and a repo:push, which may move several references.
func parseBitbucketCloud(h http.Header, body []byte) ([]Change, error) {
	if slices.Contains(cloudPulls, h.Get("X-Event-Key")) {
		return parseCloudPull(body)
	}
	if h.Get("X-Event-Key") != "repo:push" {
		return nil, nil
	}
	type target struct {
		Type, Name string
		Target     struct{ Hash string }
	}
	var p struct {
		Push struct {
			Changes []struct{ Old, New *target }
		}
		Repository struct {
			FullName string `json:"full_name"`
			Links    struct {
				HTML  struct{ Href string }
				Clone []struct{ Href string }
			}
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a push: %w", err)
	}
	urls := []string{p.Repository.Links.HTML.Href}
	for _, c := range p.Repository.Links.Clone {
		urls = append(urls, c.Href)
	}
	if p.Repository.FullName != "" {
		urls = append(urls, "https://bitbucket.org/"+p.Repository.FullName)
	}
	if urls = distinctWords(urls...); len(urls) == 0 {
		return nil, fmt.Errorf("reading a push: the payload has no URL of the repository")
	}
	var out []Change
	for _, c := range p.Push.Changes {
		named, before, after := c.New, "", strings.Repeat("0", 40)
		if c.Old != nil {
			before = c.Old.Target.Hash
		}
		if c.New != nil {
			after = c.New.Target.Hash
		} else {
			named = c.Old
		}
		if named == nil {
			continue
		}
		prefix := "refs/heads/"
		if named.Type == "tag" {
			prefix = "refs/tags/"
		}
		out = append(out, Change{Git: gitChange(urls, prefix+named.Name, before, after)})
	}
	return out, nil
}

// parseBitbucketServer reads pull requests, and a repo:refs_changed, of Bitbucket Data Center.
func parseBitbucketServer(h http.Header, body []byte) ([]Change, error) {
	if slices.Contains(serverPulls, h.Get("X-Event-Key")) {
		return parseServerPull(body)
	}
	if h.Get("X-Event-Key") != "repo:refs_changed" {
		return nil, nil
	}
	var p struct {
		Changes []struct {
			Ref              struct{ ID string }
			FromHash, ToHash string
		}
		Repository struct {
			Slug    string
			Project struct{ Key string }
			Links   struct {
				Clone []struct{ Href string }
				Self  []struct{ Href string }
			}
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a push: %w", err)
	}
	var urls []string
	for _, l := range p.Repository.Links.Clone {
		urls = append(urls, l.Href)
	}
	for _, l := range p.Repository.Links.Self {
		urls = append(urls, bitbucketClone(l.Href)...)
	}
	if urls = distinctWords(urls...); len(urls) == 0 {
		return nil, fmt.Errorf("reading a push: the payload has no URL of the repository")
	}
	var out []Change
	for _, c := range p.Changes {
		out = append(out, Change{Git: gitChange(urls, c.Ref.ID, c.FromHash, c.ToHash)})
	}
	return out, nil
}

// bitbucketClone returns the clone URL that belongs to a page such as https://host/projects/KEY/repos/slug/browse, or
// https://host/users/slug/repos/slug/browse of a personal repository, whose project is named after its owner: payloads of
// Data Center have no clone links unless its administrator switched them on.
func bitbucketClone(page string) []string {
	base, rest, ok := strings.Cut(page, "/projects/")
	personal := ""
	if !ok {
		if base, rest, ok = strings.Cut(page, "/users/"); !ok {
			return nil
		}
		personal = "~"
	}
	key, rest, ok := strings.Cut(rest, "/repos/")
	if !ok {
		return nil
	}
	key = personal + key
	slug, _, _ := strings.Cut(rest, "/")
	host := base
	if _, after, ok := strings.Cut(base, "://"); ok {
		host, _, _ = strings.Cut(after, "/")
	}
	return []string{base + "/scm/" + key + "/" + slug + ".git", "ssh://git@" + strings.Split(host, ":")[0] + ":7999/" + key + "/" + slug + ".git"}
}

func distinctWords(words ...string) []string {
	var out []string
	seen := map[string]bool{}
	for _, w := range words {
		if w != "" && !seen[w] {
			seen[w] = true
			out = append(out, w)
		}
	}
	return out
}

// branchName strips the prefix of branches.
func branchName(ref string) string { return strings.TrimPrefix(ref, "refs/heads/") }
