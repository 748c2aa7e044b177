// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
)

// readCommitChecks reads the combined status, which has the newest of each context. A warning is no success to Gitea's
// branch protection, and none here.
func (g *gitea) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	var out []Check
	pages, read := g.newPages(), 0
	for pages.next() {
		var answer struct {
			Statuses   []answeredStatus `json:"statuses"`
			TotalCount int              `json:"total_count"`
		}
		path := fmt.Sprintf("/commits/%s/status?page=%d&limit=%d", commit, pages.number, giteaPage)
		if _, err := pages.read(ctx, readingChecks(commit), path, &answer); err != nil {
			return nil, err
		}
		for _, s := range answer.Statuses {
			out = append(out, Check{Name: s.Context, State: stateOfStatus(cmp.Or(s.Status, s.State)), At: timeOf(s.UpdatedAt)})
		}
		if read += len(answer.Statuses); len(answer.Statuses) == 0 || read >= answer.TotalCount {
			break
		}
	}
	return out, pages.checkEnd(readingChecks(commit))
}

// readReviewOpinions counts reviews that Gitea marks as official: those of people who have write access, or whom the
// branch's protection names. Gitea marks the last review of each person.
func (g *gitea) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var all []opinion
	pages, read := g.newPages(), 0
	for pages.next() {
		var some []answeredReview
		path := fmt.Sprintf("%s/reviews?page=%d&limit=%d", pullRequestPath(r.Number), pages.number, giteaPage)
		h, err := pages.read(ctx, readingOpinions(r.Number), path, &some)
		if err != nil {
			return Opinions{}, err
		}
		for i := range some {
			if one, ok := some[i].opinionAboutCommit(r.HeadCommit); ok {
				if !some[i].Official {
					one.ignored = "no official reviewer"
				}
				all = append(all, one)
			}
		}
		if read += len(some); isLastPage(h, len(some), read) {
			break
		}
	}
	return lastOpinions(all, r.Author), pages.checkEnd(readingOpinions(r.Number))
}

func (g *gitea) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	in := map[string]any{"Do": strings.ToLower(string(method)), "head_commit_id": r.HeadCommit, "delete_branch_after_merge": false}
	_, err := g.call(ctx, mergingPullRequest(r.Number), http.MethodPost, pullRequestPath(r.Number)+"/merge", in, nil)
	return changedMeanwhile(err)
}
