// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

func settingStatus(in *Incoming) string {
	return fmt.Sprintf("setting the status of pull request %d", in.Number)
}

// wordForState returns how a host calls a state.
func (s CommitStatus) wordForState(pending, success, failure string) string {
	switch s.State {
	case CommitPending:
		return pending
	case CommitSuccess:
		return success
	}
	return failure
}

// commonStatus is what GitHub, GitLab and Gitea take, each with its own word for a failure.
func (s CommitStatus) commonStatus(failure string) map[string]string {
	body := map[string]string{"state": s.wordForState("pending", "success", failure), "context": s.Context, "description": s.Description}
	if s.Page != "" {
		body["target_url"] = s.Page
	}
	return body
}

func statusPath(in *Incoming) string { return "/statuses/" + url.PathEscape(in.HeadCommit) }

func (g *gitHub) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	_, err := g.call(ctx, settingStatus(in), http.MethodPost, statusPath(in), s.commonStatus("failure"), nil)
	return err
}

func (g *gitea) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	_, err := g.call(ctx, settingStatus(in), http.MethodPost, statusPath(in), s.commonStatus("failure"), nil)
	return err
}

// setStatus accepts that GitLab rejects a state which the status already has.
func (g *gitLab) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	_, err := g.call(ctx, settingStatus(in), http.MethodPost, statusPath(in), s.commonStatus("failed"), nil)
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusBadRequest && strings.Contains(e.Message, "Cannot transition status") {
		return nil
	}
	return err
}

// bitbucketStatus is what both take. The key names the status within so many characters, and a page is needed.
func (s CommitStatus) bitbucketStatus(in *Incoming, longest int) map[string]string {
	key := s.Context
	if len(key) > longest {
		sum := sha256.Sum256([]byte(key))
		key = "prerig-" + hex.EncodeToString(sum[:16])
	}
	return map[string]string{
		"key": key, "state": s.wordForState("INPROGRESS", "SUCCESSFUL", "FAILED"), "name": s.Context, "description": s.Description, "url": cmp.Or(s.Page, in.URL),
	}
}

func (b *bitbucketCloud) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	path := "/commit/" + url.PathEscape(in.HeadCommit) + "/statuses/build"
	_, err := b.call(ctx, settingStatus(in), http.MethodPost, path, s.bitbucketStatus(in, 40), nil)
	return err
}

func (b *bitbucketServer) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	path := "/commits/" + url.PathEscape(in.HeadCommit) + "/builds"
	_, err := b.call(ctx, settingStatus(in), http.MethodPost, path, s.bitbucketStatus(in, 255), nil)
	return err
}

// setStatus sets the status of the pull request, which branch policies ask for, and not that of the commit.
func (a *azure) setStatus(ctx context.Context, in *Incoming, s CommitStatus) error {
	genre, name, found := strings.Cut(s.Context, "/")
	if !found {
		genre, name = "prerig", s.Context
	}
	body := map[string]any{
		"state": s.wordForState("pending", "succeeded", "failed"), "description": s.Description, "context": map[string]string{"genre": genre, "name": name},
	}
	if s.Page != "" {
		body["targetUrl"] = s.Page
	}
	_, err := a.call(ctx, settingStatus(in), http.MethodPost, azurePull(in.Number)+"/statuses", body, nil)
	return err
}
