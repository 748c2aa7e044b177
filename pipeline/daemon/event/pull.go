// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// PullChange is a pull request (GitLab: a merge request) that was opened, closed, opened again or got other commits. What became of it,
// and where its head is, is asked of the host: deliveries come late, twice and in any order.
type PullChange struct {
	// URLs are the sender's URLs of the target repository.
	URLs []string `json:"urls"`
	// Number is what people call it by.
	Number int64 `json:"number"`
	// Base is the target branch, without refs/heads/; empty if the sender omits it.
	Base string `json:"base,omitempty"`
	// Head is the name of the source branch, even if it is in a fork; empty if the sender omits it.
	Head string `json:"head,omitempty"`
	// Decided reports whether it was closed, merged or reopened, which is how people act on a pull request that
	// Prerig has opened.
	Decided bool `json:"decided,omitempty"`
}

// changesForURLs returns the change of a pull request whose repository has these URLs.
func (c PullChange) changesForURLs(urls ...string) ([]Change, error) {
	if c.URLs = distinctWords(urls...); len(c.URLs) == 0 {
		return nil, errors.New("reading a pull request: the payload has no URL of the repository")
	}
	if c.Number <= 0 {
		return nil, errors.New("reading a pull request: the payload has no number")
	}
	c.Base, c.Head = branchName(c.Base), branchName(c.Head)
	return []Change{{Pull: &c}}, nil
}

// isOver reports whether a state is a host's name for a closed or merged pull request. Without a state, it is open.
func isOver(state string) bool {
	return !slices.Contains([]string{"", "open", "opened", "active", "notset"}, strings.ToLower(state))
}

// pullActions are the names in GitHub, Gitea and Forgejo of the relevant actions on a pull request: others are
// about labels, reviewers and texts. A change of the target branch is an edit.
var pullActions = []string{"opened", "reopened", "closed", "synchronize", "synchronized", "edited"}

// parsePull reads a pull request of GitHub and those who have its form.
func parsePull(body []byte) ([]Change, error) {
	var p struct {
		Action     string
		Number     int64
		Repository struct {
			CloneURL string `json:"clone_url"`
			SSHURL   string `json:"ssh_url"`
			HTMLURL  string `json:"html_url"`
		}
		PullRequest struct {
			State string
			Base  struct{ Ref string }
			Head  struct{ Ref, Label string }
		} `json:"pull_request"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	if !slices.Contains(pullActions, p.Action) {
		return nil, nil
	}
	r, pull := p.Repository, p.PullRequest
	head := pull.Head.Ref
	if strings.HasPrefix(head, "refs/pull/") {
		head = pull.Head.Label // Gitea's form for a deleted branch
	}
	c := PullChange{Number: p.Number, Base: pull.Base.Ref, Head: head, Decided: isOver(pull.State) || p.Action == "closed" || p.Action == "reopened"}
	return c.changesForURLs(r.CloneURL, r.SSHURL, r.HTMLURL)
}

// parseGiteaEvents reads pushes and pull requests of Gitea, Forgejo and Gogs, which name the event in the first
// header present.
func parseGiteaEvents(headers ...string) bodyParser {
	push := parsePush(headers...)
	return func(h http.Header, body []byte) ([]Change, error) {
		for _, header := range headers {
			switch h.Get(header) {
			case "":
				continue
			case "pull_request", "pull_request_sync":
				return parsePull(body)
			}
			break
		}
		return push(h, body)
	}
}

// parseMergeRequest reads a merge request of GitLab. An update without the previous commit changes texts or labels,
// or the target branch.
func parseMergeRequest(body []byte) ([]Change, error) {
	var p struct {
		Attributes struct {
			IID          int64
			Action       string
			OldRev       string
			State        string
			SourceBranch string          `json:"source_branch"`
			TargetBranch string          `json:"target_branch"`
			Target       json.RawMessage // system hooks of old versions have another value here
		} `json:"object_attributes"`
		Project struct {
			GitHTTPURL string `json:"git_http_url"`
			GitSSHURL  string `json:"git_ssh_url"`
			WebURL     string `json:"web_url"`
		}
		Changes struct {
			TargetBranch json.RawMessage `json:"target_branch"`
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a merge request: %w", err)
	}
	a := p.Attributes
	switch {
	case slices.Contains([]string{"open", "reopen", "close", "merge"}, a.Action):
	case a.Action == "update" && (a.OldRev != "" || len(p.Changes.TargetBranch) > 0):
	default:
		return nil, nil
	}
	var target struct {
		HTTPURL string `json:"git_http_url"`
		SSHURL  string `json:"git_ssh_url"`
		WebURL  string `json:"web_url"`
	}
	_ = json.Unmarshal(a.Target, &target)
	c := PullChange{Number: a.IID, Base: a.TargetBranch, Head: a.SourceBranch, Decided: isOver(a.State) || a.Action == "merge" || a.Action == "reopen"}
	return c.changesForURLs(p.Project.GitHTTPURL, p.Project.GitSSHURL, p.Project.WebURL, target.HTTPURL, target.SSHURL, target.WebURL)
}

// cloudPulls are the events of Bitbucket Cloud, serverPulls those of Bitbucket Data Center.
var (
	cloudPulls  = []string{"pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected"}
	serverPulls = []string{"pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted", "pr:reopened"}
)

// parseCloudPull reads a pull request of Bitbucket Cloud.
func parseCloudPull(body []byte) ([]Change, error) {
	var p struct {
		PullRequest struct {
			ID                  int64
			State               string
			Source, Destination struct{ Branch struct{ Name string } }
		}
		Repository struct {
			FullName string `json:"full_name"`
			Links    struct{ HTML struct{ Href string } }
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	urls := []string{p.Repository.Links.HTML.Href}
	if p.Repository.FullName != "" {
		urls = append(urls, "https://bitbucket.org/"+p.Repository.FullName)
	}
	pull := p.PullRequest
	c := PullChange{Number: pull.ID, Base: pull.Destination.Branch.Name, Head: pull.Source.Branch.Name, Decided: isOver(pull.State)}
	return c.changesForURLs(urls...)
}

// parseServerPull reads a pull request of Bitbucket Data Center.
func parseServerPull(body []byte) ([]Change, error) {
	var p struct {
		EventKey    string
		PullRequest struct {
			ID      int64
			State   string
			FromRef struct{ ID string }
			ToRef   struct {
				ID         string
				Repository struct {
					Links struct {
						Clone []struct{ Href string }
						Self  []struct{ Href string }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	to := p.PullRequest.ToRef
	var urls []string
	for _, l := range to.Repository.Links.Clone {
		urls = append(urls, l.Href)
	}
	for _, l := range to.Repository.Links.Self {
		urls = append(urls, bitbucketClone(l.Href)...)
	}
	decided := isOver(p.PullRequest.State) || slices.Contains([]string{"pr:reopened", "pr:deleted"}, p.EventKey)
	c := PullChange{Number: p.PullRequest.ID, Base: to.ID, Head: p.PullRequest.FromRef.ID, Decided: decided}
	return c.changesForURLs(urls...)
}

// azurePulls are the events of Azure DevOps; completed and abandoned ones are updated.
var azurePulls = []string{"git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged"}

// parseAzurePull reads a pull request of Azure DevOps.
func parseAzurePull(body []byte) ([]Change, error) {
	var p struct {
		Resource struct {
			PullRequestID int64
			SourceRefName string
			TargetRefName string
			Status        string
			Repository    struct{ RemoteURL, SSHURL, WebURL string }
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	r := p.Resource.Repository
	c := PullChange{Number: p.Resource.PullRequestID, Base: p.Resource.TargetRefName, Head: p.Resource.SourceRefName, Decided: isOver(p.Resource.Status)}
	changes, err := c.changesForURLs(append([]string{r.RemoteURL, r.SSHURL, r.WebURL}, azureURLs(r.RemoteURL)...)...)
	if err != nil {
		return nil, fmt.Errorf("%w (send all resource details)", err)
	}
	return changes, nil
}
