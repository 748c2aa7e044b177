// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// azureStatuses is how many statuses of a commit are asked for: Azure DevOps returns them on one page.
const azureStatuses = 1000

// readCommitChecks reads commit statuses. Policies of a branch, such as builds, are no statuses: Azure DevOps refuses
// to complete what they are not content with.
func (a *azure) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	var answer struct {
		Value []struct {
			State   string `json:"state"`
			Context struct {
				Name  string `json:"name"`
				Genre string `json:"genre"`
			} `json:"context"`
			CreationDate *time.Time `json:"creationDate"`
			UpdatedDate  *time.Time `json:"updatedDate"`
		} `json:"value"`
	}
	path := fmt.Sprintf("/commits/%s/statuses?top=%d&latestOnly=true", commit, azureStatuses)
	if _, err := a.call(ctx, readingChecks(commit), http.MethodGet, path, nil, &answer); err != nil {
		return nil, err
	}
	if len(answer.Value) >= azureStatuses {
		return nil, fmt.Errorf("%s: it has %d or more, and no more are read", readingChecks(commit), azureStatuses)
	}
	var out []Check
	for _, s := range answer.Value {
		one := Check{Name: s.Context.Name, State: CheckPending, At: timeOf(s.CreationDate)}
		if s.Context.Genre != "" {
			one.Name = s.Context.Genre + "/" + one.Name
		}
		if s.UpdatedDate != nil {
			one.At = *s.UpdatedDate
		}
		switch s.State {
		case "succeeded", "notApplicable":
			one.State = CheckGreen
		case "failed", "error":
			one.State = CheckRed
		}
		out = append(out, one)
	}
	return out, nil
}

// readReviewOpinions reads votes: 10 approves, 5 approves with suggestions, -5 waits for the author, and -10 rejects.
// Azure does not report who has write access: everyone with the permission to contribute to pull requests counts.
func (a *azure) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var answer struct {
		Reviewers []struct {
			UniqueName  string `json:"uniqueName"`
			DisplayName string `json:"displayName"`
			Vote        int    `json:"vote"`
			IsContainer bool   `json:"isContainer"`
		} `json:"reviewers"`
	}
	if _, err := a.call(ctx, readingOpinions(r.Number), http.MethodGet, azurePull(r.Number), nil, &answer); err != nil {
		return Opinions{}, err
	}
	var all []opinion
	for _, one := range answer.Reviewers {
		if one.IsContainer {
			continue // a group votes by its members, who are listed too
		}
		all = append(all, opinion{who: cmp.Or(one.UniqueName, one.DisplayName), approves: one.Vote > 0, declines: one.Vote < 0})
	}
	return lastOpinions(all, r.Author), nil
}

func (a *azure) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	strategy := map[MergeMethod]string{MergeSquash: "squash", MergeRebase: "rebase"}[method]
	in := map[string]any{
		"status": "completed", "lastMergeSourceCommit": map[string]any{"commitId": r.HeadCommit},
		"completionOptions": map[string]any{"mergeStrategy": cmp.Or(strategy, "noFastForward"), "deleteSourceBranch": false},
	}
	_, err := a.patchPullRequest(ctx, mergingPullRequest(r.Number), r.Number, in)
	if err != nil && strings.Contains(err.Error(), "TF401192") { // the source was changed since
		return changedMeanwhile(err)
	}
	return err
}
