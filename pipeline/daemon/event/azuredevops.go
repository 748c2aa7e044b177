// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// azurePush is the part of a service hook's git.push that matters (learn.microsoft.com, "Service hooks events").
type azurePush struct {
	EventType string
	Resource  struct {
		RefUpdates []struct{ Name, OldObjectID, NewObjectID string }
		Repository struct {
			RemoteURL string
			SSHURL    string
			WebURL    string
		}
	}
}

// parseAzureDevOps reads pull requests, and a git.push, which may move several references.
func parseAzureDevOps(_ http.Header, body []byte) ([]Change, error) {
	var p azurePush
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a service hook's event: %w", err)
	}
	if slices.Contains(azurePulls, p.EventType) {
		return parseAzurePull(body)
	}
	if p.EventType != "git.push" {
		return nil, nil
	}
	r := p.Resource.Repository
	urls := distinctWords(append([]string{r.RemoteURL, r.SSHURL, r.WebURL}, azureURLs(r.RemoteURL)...)...)
	if len(urls) == 0 {
		return nil, fmt.Errorf("reading a push: the payload has no URL of the repository (send all resource details)")
	}
	var out []Change
	for _, u := range p.Resource.RefUpdates {
		out = append(out, Change{Git: gitChange(urls, u.Name, u.OldObjectID, u.NewObjectID)})
	}
	return out, nil
}

// azureURLs returns the other URLs of a repository of Azure DevOps Services: by https at the two hosts of an
// organisation, and by ssh at theirs. The URL of a repository with the name of its project may omit the project. It
// returns none for a self-hosted server, whose ssh URL is in the payload.
func azureURLs(remote string) (out []string) {
	u, err := url.Parse(remote)
	if err != nil {
		return nil
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	organisation, old := strings.CutSuffix(strings.ToLower(u.Hostname()), ".visualstudio.com")
	switch {
	case old:
	case strings.EqualFold(u.Hostname(), "dev.azure.com") && len(parts) > 1:
		organisation, parts = parts[0], parts[1:]
	default:
		return nil
	}
	if strings.EqualFold(parts[0], "DefaultCollection") {
		parts = parts[1:]
	}
	var project, repository string
	switch {
	case len(parts) == 3 && parts[1] == "_git":
		project, repository = parts[0], parts[2]
	case len(parts) == 2 && parts[0] == "_git":
		project, repository = parts[1], parts[1]
	default:
		return nil
	}
	paths := []string{"/" + project + "/_git/" + repository}
	if project == repository {
		paths = append(paths, "/_git/"+repository)
	}
	for _, path := range paths {
		for _, base := range []*url.URL{
			{Scheme: "https", Host: "dev.azure.com", Path: "/" + organisation + path},
			{Scheme: "https", Host: organisation + ".visualstudio.com", Path: path},
			{Scheme: "https", Host: organisation + ".visualstudio.com", Path: "/DefaultCollection" + path},
		} {
			out = append(out, base.String())
		}
	}
	ssh := "/v3/" + organisation + "/" + project + "/" + repository
	for _, base := range []*url.URL{
		{Scheme: "ssh", User: url.User("git"), Host: "ssh.dev.azure.com", Path: ssh},
		{Scheme: "ssh", User: url.User(organisation), Host: organisation + ".visualstudio.com", Path: ssh},
		{Scheme: "ssh", User: url.User(organisation), Host: "vs-ssh.visualstudio.com", Path: ssh},
	} {
		out = append(out, base.String())
	}
	return out
}
