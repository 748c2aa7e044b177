// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// readCommitChecks reads commit statuses, which include jobs of pipelines. The pipelines of a branch and of its merge
// request may have jobs of the same names, all of which count. Of several pipelines for the same one, the newest
// counts, as in GitLab itself: others write their statuses to that one, and the previous ones stay unchanged.
// GitLab reports the pipeline of a status since 16.3.
func (g *gitLab) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	var out []Check
	pages := g.newPages()
	for pages.next() {
		var some []struct {
			Name         string     `json:"name"`
			Status       string     `json:"status"`
			AllowFailure bool       `json:"allow_failure"`
			CreatedAt    *time.Time `json:"created_at"`
			FinishedAt   *time.Time `json:"finished_at"`
			PipelineID   int64      `json:"pipeline_id"`
			Ref          string     `json:"ref"`
		}
		path := fmt.Sprintf("/repository/commits/%s/statuses?per_page=%d&page=%d", commit, pageSize, pages.number)
		if _, err := pages.read(ctx, readingChecks(commit), path, &some); err != nil {
			return nil, err
		}
		for _, s := range some {
			one := Check{Name: s.Name, State: CheckPending, At: timeOf(s.CreatedAt), origin: s.Ref, run: s.PipelineID}
			if s.FinishedAt != nil {
				one.At = *s.FinishedAt
			}
			switch s.Status {
			case "success", "skipped":
				one.State = CheckGreen
			case "failed", "canceled":
				one.State = CheckRed
				if s.AllowFailure {
					one.State = CheckGreen
				}
			case "manual":
				if s.AllowFailure { // it does not block anything
					one.State = CheckGreen
				}
			}
			out = append(out, one)
		}
		if len(some) < pageSize {
			break
		}
	}
	return out, pages.checkEnd(readingChecks(commit))
}

// readReviewOpinions reads approvals, which GitLab accepts from developers and from those whom its rules name, and
// which reviewers request changes. Whether approvals apply to the newest commit depends on a project setting of GitLab,
// which removes them on a push.
func (g *gitLab) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var answer struct {
		ApprovedBy []struct {
			User struct {
				Username string `json:"username"`
			} `json:"user"`
		} `json:"approved_by"`
	}
	if _, err := g.call(ctx, readingOpinions(r.Number), http.MethodGet, mergeRequest(r.Number)+"/approvals", nil, &answer); err != nil {
		return Opinions{}, err
	}
	var all []opinion
	for _, one := range answer.ApprovedBy {
		all = append(all, opinion{who: one.User.Username, approves: true})
	}
	declined, err := g.readRequestedChanges(ctx, r)
	if err != nil {
		return Opinions{}, err
	}
	return lastOpinions(append(all, declined...), r.Author), nil
}

// readRequestedChanges reads which reviewers request changes. GitLab itself blocks a merge on that only in its paid
// editions. Older releases do not report it.
func (g *gitLab) readRequestedChanges(ctx context.Context, r *Request) (all []opinion, err error) {
	pages := g.newPages()
	for pages.next() {
		var some []struct {
			State string `json:"state"`
			User  struct {
				Username string `json:"username"`
			} `json:"user"`
		}
		path := fmt.Sprintf("%s/reviewers?per_page=%d&page=%d", mergeRequest(r.Number), pageSize, pages.number)
		_, err := pages.read(ctx, readingOpinions(r.Number), path, &some)
		if IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, one := range some {
			if one.State == "requested_changes" {
				all = append(all, opinion{who: one.User.Username, declines: true})
			}
		}
		if len(some) < pageSize {
			break
		}
	}
	return all, pages.checkEnd(readingOpinions(r.Number))
}

func (g *gitLab) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	in := map[string]any{"sha": r.HeadCommit, "squash": method == MergeSquash, "should_remove_source_branch": false}
	_, err := g.call(ctx, mergingPullRequest(r.Number), http.MethodPut, mergeRequest(r.Number)+"/merge", in, nil)
	return changedMeanwhile(err)
}
