// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Git hosts limit the text of a status: GitHub to 140 characters.
const maxDescription = 140

// commitState is the status of a commit.
type commitState struct {
	// waits reports whether the outcome is still unknown: the result of a run for the commit is not published.
	good, waits bool
	// name of the status, outcome of the run, and the page with details, which is "" if none exists
	name, text, page string
	// fallback is a page for hosts that want one in any case.
	fallback string
}

// statusHost is what a kind of host wants with a status.
type statusHost struct {
	header func(token string) map[string]string
	body   func(s commitState) any
}

var hosts = map[string]statusHost{
	giturl.GitHub: {func(token string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "Accept": "application/vnd.github+json"}
	}, commonBody("failure")},
	giturl.GitLab:          {func(token string) map[string]string { return map[string]string{"Private-Token": token} }, commonBody("failed")},
	giturl.Gitea:           {func(token string) map[string]string { return map[string]string{"Authorization": "token " + token} }, commonBody("failure")},
	giturl.BitbucketCloud:  {bearerOrBasic, func(s commitState) any { return s.bitbucketRequestBody(40) }},
	giturl.BitbucketServer: {bearerOrBasic, func(s commitState) any { return s.bitbucketRequestBody(255) }},
	giturl.AzureDevOps:     {basicToken, azureBody},
}

// bearerOrBasic accepts a token, or USER:PASSWORD as Bitbucket's app passwords and API tokens require.
func bearerOrBasic(token string) map[string]string {
	if strings.Contains(token, ":") {
		return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(token))}
	}
	return map[string]string{"Authorization": "Bearer " + token}
}

// basicToken returns the headers for personal access tokens in Azure DevOps: the token is a password without a
// user.
func basicToken(token string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte(":"+token))}
}

// commonBody is what GitHub, GitLab and Gitea take, each with its own word for a failure.
func commonBody(failure string) func(s commitState) any {
	return func(s commitState) any {
		body := map[string]string{"state": s.wordForState("pending", "success", failure), "context": s.name,
			"description": s.text}
		if s.page != "" {
			body["target_url"] = s.page
		}
		return body
	}
}

// bitbucketRequestBody returns the body that Bitbucket accepts. The key identifies the status among those of a commit,
// within that many characters, and a page is required.
func (s commitState) bitbucketRequestBody(longest int) any {
	key := s.name
	if len(key) > longest {
		sum := sha256.Sum256([]byte(key))
		key = "prerig-" + hex.EncodeToString(sum[:16])
	}
	return map[string]string{
		"key": key, "state": s.wordForState("INPROGRESS", "SUCCESSFUL", "FAILED"), "name": s.name,
		"url": cmp.Or(s.page, s.fallback), "description": s.text,
	}
}

// azureBody returns the body that Azure DevOps accepts: the genre and name of the context together identify a
// status.
func azureBody(s commitState) any {
	genre, name, _ := strings.Cut(s.name, "/")
	if name == "" {
		genre, name = "prerig", s.name
	}
	body := map[string]any{"state": s.wordForState("pending", "succeeded", "failed"), "description": s.text,
		"context": map[string]string{"genre": genre, "name": name}}
	if s.page != "" {
		body["targetUrl"] = s.page
	}
	return body
}

func (s commitState) wordForState(waits, good, bad string) string {
	switch {
	case s.waits:
		return waits
	case s.good:
		return good
	}
	return bad
}

// commitStatus sets the status of the source's commit. A source that is not Git has none.
func (n *Notifier) commitStatus(ctx context.Context, c *v1alpha1.CommitStatus, r Run) error {
	if r.Commit == "" {
		return nil
	}
	repository, err := giturl.Parse(r.SourceURL)
	if err != nil {
		return fmt.Errorf("reading the source's URL: %w", err)
	}
	host, ok := hosts[c.Provider]
	if !ok {
		return fmt.Errorf("the provider %q is not known", c.Provider)
	}
	at := repository.StatusURL(c.Provider, c.URL, r.Commit)
	if at == "" {
		return fmt.Errorf("the source's URL is not one of a repository of %s", c.Provider)
	}
	token, err := n.readToken(ctx, r.Namespace, &c.SecretRef, secret.At(at))
	if err != nil {
		return err
	}
	name := c.Context
	if name == "" {
		name = "prerig/" + r.Pipeline()
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for key, value := range host.header(string(token)) {
		h.Set(key, value)
	}
	text := r.Run.Message
	if runes := []rune(text); len(runes) > maxDescription {
		text = string(runes[:maxDescription-1]) + "…"
	}
	data, err := json.Marshal(host.body(commitState{
		good: r.Run.Outcome == "Published" || r.Run.Outcome == "Unchanged", waits: r.Waits, name: name, text: text,
		page:     r.Page,
		fallback: repository.WebPage(r.SourceURL, r.Commit),
	}))
	if err != nil {
		return err
	}
	err = n.postWithRetries(n.permitOf(ctx, r.Namespace, &c.SecretRef, false), at, h, data, stops{r.Replaced, r.Hurry})
	// GitLab refuses a state that the status has already, where that is pending.
	if e := (*answerError)(nil); c.Provider == giturl.GitLab && r.Waits && errors.As(err, &e) && e.code == http.StatusBadRequest && strings.Contains(e.text, "Cannot transition status") {
		return nil
	}
	return err
}
