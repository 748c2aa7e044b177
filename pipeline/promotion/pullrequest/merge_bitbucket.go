// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

func stateOfBuild(state string) CheckState {
	switch state {
	case "SUCCESSFUL":
		return CheckGreen
	case "FAILED", "STOPPED", "CANCELLED":
		return CheckRed
	}
	return CheckPending
}

func (b *bitbucketCloud) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	var out []Check
	pages := b.newPages()
	for pages.next() {
		var answer struct {
			Values []struct {
				Key       string     `json:"key"`
				State     string     `json:"state"`
				UpdatedOn *time.Time `json:"updated_on"`
			} `json:"values"`
			Next string `json:"next"`
		}
		path := fmt.Sprintf("/commit/%s/statuses?pagelen=%d&page=%d", commit, pageSize, pages.number)
		if _, err := pages.read(ctx, readingChecks(commit), path, &answer); err != nil {
			return nil, err
		}
		for _, s := range answer.Values {
			out = append(out, Check{Name: s.Key, State: stateOfBuild(s.State), At: timeOf(s.UpdatedOn)})
		}
		if answer.Next == "" {
			break
		}
	}
	return out, pages.checkEnd(readingChecks(commit))
}

// readReviewOpinions reads the opinions of participants. Bitbucket removes approvals on a push if the branch is
// configured so. Everyone with read access can approve, and only an administrator can see who has write access: only
// explicitly added reviewers count. A request for changes always blocks, as its author may have write access.
func (b *bitbucketCloud) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var answer struct {
		Participants []struct {
			Role     string `json:"role"`
			Approved bool   `json:"approved"`
			State    string `json:"state"`
			User     struct {
				Nickname    string `json:"nickname"`
				DisplayName string `json:"display_name"`
			} `json:"user"`
		} `json:"participants"`
	}
	if _, err := b.call(ctx, readingOpinions(r.Number), http.MethodGet, cloudPull(r.Number), nil, &answer); err != nil {
		return Opinions{}, err
	}
	var all []opinion
	for _, one := range answer.Participants {
		who := cmp.Or(one.User.Nickname, one.User.DisplayName)
		said := opinion{who: who, approves: one.Approved, declines: one.State == "changes_requested"}
		if one.Role != "REVIEWER" && !said.declines {
			said.ignored = "no reviewer of it"
		}
		all = append(all, said)
	}
	return lastOpinions(all, r.Author), nil
}

// mergePullRequest cannot specify the commit: anything pushed right after it was read is merged, too.
func (b *bitbucketCloud) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	strategy := map[MergeMethod]string{MergeSquash: "squash", MergeRebase: "rebase_fast_forward"}[method]
	in := map[string]any{"merge_strategy": cmp.Or(strategy, "merge_commit"), "close_source_branch": false}
	_, err := b.call(ctx, mergingPullRequest(r.Number), http.MethodPost, cloudPull(r.Number)+"/merge", in, nil)
	return err
}

// readCommitChecks reads build statuses, which have an API beside that of repositories.
func (b *bitbucketServer) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	at := b.root
	if i := strings.LastIndex(at, "/rest/api/"); i >= 0 {
		at = at[:i] + "/rest"
	}
	type status struct {
		Key       string `json:"key"`
		State     string `json:"state"`
		DateAdded int64  `json:"dateAdded"`
	}
	var out []Check
	pages := b.newPages()
	read := func(start int, page any) error {
		q := url.Values{"limit": {fmt.Sprint(pageSize)}, "start": {fmt.Sprint(start)}}
		_, err := pages.readAt(ctx, readingChecks(commit), at+"/build-status/latest/commits/"+commit+"?"+q.Encode(), page)
		return err
	}
	err := eachServerPage(pages, read, func(values []status) (more bool) {
		for _, s := range values {
			one := Check{Name: s.Key, State: stateOfBuild(s.State)}
			if s.DateAdded > 0 {
				one.At = time.UnixMilli(s.DateAdded).UTC()
			}
			out = append(out, one)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return out, pages.checkEnd(readingChecks(commit))
}

// readReviewOpinions reads the opinions of reviewers, who include everyone that has approved. Only an administrator of
// the repository can see who has write access, so everyone with read access counts.
func (b *bitbucketServer) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var answer struct {
		Reviewers []struct {
			User struct {
				Name string `json:"name"`
			} `json:"user"`
			Status             string `json:"status"`
			LastReviewedCommit string `json:"lastReviewedCommit"`
		} `json:"reviewers"`
	}
	if _, err := b.call(ctx, readingOpinions(r.Number), http.MethodGet, serverPull(r.Number), nil, &answer); err != nil {
		return Opinions{}, err
	}
	var all []opinion
	for _, one := range answer.Reviewers {
		approves := one.Status == "APPROVED" && (one.LastReviewedCommit == "" || one.LastReviewedCommit == r.HeadCommit)
		all = append(all, opinion{who: one.User.Name, approves: approves, declines: one.Status == "NEEDS_WORK"})
	}
	return lastOpinions(all, r.Author), nil
}

// mergePullRequest merges the version of the pull request that has the commit.
func (b *bitbucketServer) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	now, err := b.readServerRequest(ctx, r.Number)
	if err != nil {
		return err
	}
	if now.FromRef.LatestCommit != r.HeadCommit {
		return fmt.Errorf("%s: %w", mergingPullRequest(r.Number), ErrChanged)
	}
	in := map[string]any{}
	if strategy := map[MergeMethod]string{MergeSquash: "squash", MergeRebase: "rebase-no-ff"}[method]; strategy != "" {
		in["strategyId"] = strategy
	}
	at := fmt.Sprintf("%s/merge?version=%d", serverPull(r.Number), now.Version)
	_, err = b.call(ctx, mergingPullRequest(r.Number), http.MethodPost, at, in, nil)
	return err
}
