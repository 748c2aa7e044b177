// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package event

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// PullChange is a pull request (GitLab: a merge request) that was opened, closed, opened again or got other commits. What became of it,
// and where its head is, is asked of the host: deliveries come late, twice and in any order.
type PullChange struct {
	// URLs under which the sender knows the repository that it goes to.
	URLs []string `json:"urls"`
	// Number is what people call it by.
	Number int64 `json:"number"`
	// Base is the branch that it goes to, without refs/heads/; empty where the sender does not say.
	Base string `json:"base,omitempty"`
}

// pullChanges returns the change of a pull request.
func pullChanges(number int64, base string, urls ...string) ([]Change, error) {
	if urls = distinctWords(urls...); len(urls) == 0 {
		return nil, errors.New("reading a pull request: the payload has no URL of the repository")
	}
	if number <= 0 {
		return nil, errors.New("reading a pull request: the payload has no number")
	}
	return []Change{{Pull: &PullChange{URLs: urls, Number: number, Base: branchName(base)}}}, nil
}

// pullActions are what GitHub, Gitea and Forgejo call what matters of a pull request: others are about labels, reviewers and texts. Who
// changes the branch that one goes to edits it.
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
			Base struct{ Ref string }
		} `json:"pull_request"`
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	if !slices.Contains(pullActions, p.Action) {
		return nil, nil
	}
	r := p.Repository
	return pullChanges(p.Number, p.PullRequest.Base.Ref, r.CloneURL, r.SSHURL, r.HTMLURL)
}

// parseGiteaEvents reads pushes and pull requests of Gitea, Forgejo and Gogs, which name the event in the first of the headers that is
// there.
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

// parseMergeRequest reads a merge request of GitLab. An update without the commit that was there before is one of texts or labels, or of
// the branch that it goes to.
func parseMergeRequest(body []byte) ([]Change, error) {
	var p struct {
		Attributes struct {
			IID          int64
			Action       string
			OldRev       string
			TargetBranch string          `json:"target_branch"`
			Target       json.RawMessage // system hooks of old versions have something else there
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
	return pullChanges(a.IID, a.TargetBranch, p.Project.GitHTTPURL, p.Project.GitSSHURL, p.Project.WebURL, target.HTTPURL, target.SSHURL, target.WebURL)
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
			ID          int64
			Destination struct{ Branch struct{ Name string } }
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
	return pullChanges(p.PullRequest.ID, p.PullRequest.Destination.Branch.Name, urls...)
}

// parseServerPull reads a pull request of Bitbucket Data Center.
func parseServerPull(body []byte) ([]Change, error) {
	var p struct {
		PullRequest struct {
			ID    int64
			ToRef struct {
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
	return pullChanges(p.PullRequest.ID, to.ID, urls...)
}

// azurePulls are the events of Azure DevOps; completed and abandoned ones are updated.
var azurePulls = []string{"git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged"}

// parseAzurePull reads a pull request of Azure DevOps.
func parseAzurePull(body []byte) ([]Change, error) {
	var p struct {
		Resource struct {
			PullRequestID int64
			TargetRefName string
			Repository    struct{ RemoteURL, SSHURL, WebURL string }
		}
	}
	if err := json.Unmarshal(body, &p); err != nil {
		return nil, fmt.Errorf("reading a pull request: %w", err)
	}
	r := p.Resource.Repository
	changes, err := pullChanges(p.Resource.PullRequestID, p.Resource.TargetRefName, append([]string{r.RemoteURL, r.SSHURL, r.WebURL}, azureURLs(r.RemoteURL)...)...)
	if err != nil {
		return nil, fmt.Errorf("%w (send all resource details)", err)
	}
	return changes, nil
}
