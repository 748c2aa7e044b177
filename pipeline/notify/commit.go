// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/giturl"
	"github.com/prerig/prerig/pipeline/secret"
)

// Git hosts limit the text of a status: GitHub to 140 characters.
const maxDescription = 140

// statusHost is what a kind of host wants with a status: the headers of a request, and its word for a failure.
type statusHost struct {
	header  func(token string) map[string]string
	failure string
}

var hosts = map[string]statusHost{
	giturl.GitHub: {func(token string) map[string]string {
		return map[string]string{"Authorization": "Bearer " + token, "Accept": "application/vnd.github+json"}
	}, "failure"},
	giturl.GitLab: {func(token string) map[string]string { return map[string]string{"Private-Token": token} }, "failed"},
	giturl.Gitea:  {func(token string) map[string]string { return map[string]string{"Authorization": "token " + token} }, "failure"},
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
	at := repository.StatusURL(c.Provider, c.URL, r.Commit)
	token, err := n.readToken(ctx, r.Namespace, &c.SecretRef, secret.At(at))
	if err != nil {
		return err
	}
	name := c.Context
	if name == "" {
		name = "prerig/" + r.Pipeline()
	}
	host, ok := hosts[c.Provider]
	if !ok {
		return fmt.Errorf("the provider %q is not known", c.Provider)
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for key, value := range host.header(string(token)) {
		h.Set(key, value)
	}
	body := statusBody(r, name, map[bool]string{true: "success", false: host.failure})
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return n.postWithRetries(ctx, at, h, data)
}

// statusBody returns what all hosts take, each with its own word for the state.
func statusBody(r Run, name string, words map[bool]string) map[string]string {
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
