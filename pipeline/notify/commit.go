// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Git hosts limit the text of a status: GitHub to 140 characters.
const maxDescription = 140

// commitStatus sets the status of the source's commit. A source that is not Git has none.
func (n *Notifier) commitStatus(ctx context.Context, c *v1alpha1.CommitStatus, r Run) error {
	if r.Commit == "" {
		return nil
	}
	token, err := n.token(ctx, r.Namespace, &c.SecretRef)
	if err != nil {
		return err
	}
	host, repository, err := split(r.SourceURL)
	if err != nil {
		return err
	}
	name := c.Context
	if name == "" {
		name = "prerig/" + r.Pipeline()
	}
	h := http.Header{"Content-Type": {"application/json"}}
	var at string
	var body map[string]string
	switch c.Provider {
	case "GitHub":
		at = base(c.URL, gitHubAPI(host)) + "/repos/" + repository + "/statuses/" + r.Commit
		h.Set("Authorization", "Bearer "+string(token))
		h.Set("Accept", "application/vnd.github+json")
		body = status(r, name, map[bool]string{true: "success", false: "failure"})
	case "Gitea":
		at = base(c.URL, "https://"+host+"/api/v1") + "/repos/" + repository + "/statuses/" + r.Commit
		h.Set("Authorization", "token "+string(token))
		body = status(r, name, map[bool]string{true: "success", false: "failure"})
	case "GitLab":
		at = base(c.URL, "https://"+host+"/api/v4") + "/projects/" + url.PathEscape(repository) + "/statuses/" + r.Commit
		h.Set("Private-Token", string(token))
		body = status(r, name, map[bool]string{true: "success", false: "failed"})
	default:
		return fmt.Errorf("the provider %q is not known", c.Provider)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return n.post(ctx, at, h, data)
}

// status gives what all hosts take, each with its own word for the state.
func status(r Run, name string, words map[bool]string) map[string]string {
	good := r.Run.Outcome == "Published" || r.Run.Outcome == "Unchanged"
	text := r.Run.Message
	if runes := []rune(text); len(runes) > maxDescription {
		text = string(runes[:maxDescription-1]) + "…"
	}
	body := map[string]string{"state": words[good], "context": name, "description": text}
	if r.Page != "" {
		body["target_url"] = r.Page
	}
	return body
}

// webHosts are the hosts of those that big Git hosts answer ssh on besides their own.
var webHosts = map[string]string{"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com"}

// split gives the host and the path of a repository's URL, also of the form user@host:path.
func split(s string) (host, repository string, err error) {
	host, repository, err = parts(s)
	host = strings.ToLower(host)
	if web, ok := webHosts[host]; ok {
		host = web
	}
	return host, repository, err
}

func parts(s string) (host, repository string, err error) {
	if user, rest, ok := strings.Cut(s, "@"); ok && !strings.Contains(user, "/") && strings.Contains(rest, ":") && !strings.Contains(s, "://") {
		host, path, _ := strings.Cut(rest, ":")
		return host, strings.TrimSuffix(strings.Trim(path, "/"), ".git"), nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		return "", "", fmt.Errorf("the URL of the source names no host")
	}
	host = u.Host
	if u.Scheme == "ssh" {
		host = u.Hostname()
	}
	return host, strings.TrimSuffix(strings.Trim(u.Path, "/"), ".git"), nil
}

// gitHubAPI is where GitHub's API is: for GitHub Enterprise Server below the host itself.
func gitHubAPI(host string) string {
	if host == "github.com" {
		return "https://api.github.com"
	}
	return "https://" + host + "/api/v3"
}

func base(given, otherwise string) string {
	if given != "" {
		return strings.TrimSuffix(given, "/")
	}
	return otherwise
}
