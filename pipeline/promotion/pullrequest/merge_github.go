// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// readCommitChecks reads check runs and commit statuses: hosts' own checks are the former, and Argo CD, Flux and many
// others write the latter.
func (g *gitHub) readCommitChecks(ctx context.Context, commit string) ([]Check, error) {
	runs, err := g.checkRunsOf(ctx, commit)
	if err != nil {
		return nil, err
	}
	var out []Check
	for _, run := range runs {
		if !run.isReplaced(runs) {
			out = append(out, run.toCheck())
		}
	}
	pages := g.newPages()
	for pages.next() {
		var answer struct {
			Statuses []answeredStatus `json:"statuses"`
		}
		path := fmt.Sprintf("/commits/%s/status?per_page=%d&page=%d", commit, pageSize, pages.number)
		if _, err := pages.read(ctx, readingChecks(commit), path, &answer); err != nil {
			return nil, err
		}
		for _, s := range answer.Statuses {
			out = append(out, Check{Name: s.Context, State: stateOfStatus(s.State), At: timeOf(s.UpdatedAt)})
		}
		if len(answer.Statuses) < pageSize {
			break
		}
	}
	return out, pages.checkEnd(readingChecks(commit))
}

// checkRun is a check run as returned by GitHub. A suite holds the check runs of one workflow run, including
// re-runs, or all check runs of another app for a commit.
type checkRun struct {
	Name        string     `json:"name"`
	Status      string     `json:"status"`
	Conclusion  string     `json:"conclusion"`
	StartedAt   *time.Time `json:"started_at"`
	CompletedAt *time.Time `json:"completed_at"`
	Suite       struct {
		ID int64 `json:"id"`
	} `json:"check_suite"`
	App struct {
		ID int64 `json:"id"`
	} `json:"app"`
}

// checkRunsOf reads the check runs of a commit, of each suite the last attempt.
func (g *gitHub) checkRunsOf(ctx context.Context, commit string) (out []checkRun, err error) {
	pages := g.newPages()
	for pages.next() {
		var answer struct {
			CheckRuns []checkRun `json:"check_runs"`
		}
		path := fmt.Sprintf("/commits/%s/check-runs?per_page=%d&page=%d", commit, pageSize, pages.number)
		if _, err := pages.read(ctx, readingChecks(commit), path, &answer); err != nil {
			return nil, err
		}
		out = append(out, answer.CheckRuns...)
		if len(answer.CheckRuns) < pageSize {
			break
		}
	}
	return out, pages.checkEnd(readingChecks(commit))
}

func (r *checkRun) toCheck() Check {
	one := Check{Name: r.Name, State: CheckPending, At: timeOf(r.StartedAt), origin: fmt.Sprintf("app %d suite %d", r.App.ID, r.Suite.ID)}
	if r.Status == "completed" {
		one.State, one.At = gitHubConclusion(r.Conclusion), timeOf(r.CompletedAt)
	}
	return one
}

// isReplaced reports whether a check was ended before it had a result, and its app has started one of that name
// later. A workflow whose newer run cancels the previous one leaves such checks, which are never restarted.
func (r *checkRun) isReplaced(all []checkRun) bool {
	return (r.Conclusion == "cancelled" || r.Conclusion == "stale") && slices.ContainsFunc(all, func(other checkRun) bool {
		return other.Name == r.Name && other.App.ID == r.App.ID && other.Suite.ID > r.Suite.ID
	})
}

// answeredStatus is a commit status as GitHub and Gitea answer it, where Gitea calls the state status.
type answeredStatus struct {
	Context   string     `json:"context"`
	State     string     `json:"state"`
	Status    string     `json:"status"`
	UpdatedAt *time.Time `json:"updated_at"`
}

func stateOfStatus(state string) CheckState {
	switch state {
	case "success", "skipped":
		return CheckGreen
	case "failure", "error":
		return CheckRed
	}
	return CheckPending
}

func gitHubConclusion(conclusion string) CheckState {
	switch conclusion {
	case "success", "neutral", "skipped":
		return CheckGreen
	case "failure", "timed_out", "cancelled", "action_required", "startup_failure", "stale":
		return CheckRed
	}
	return CheckPending
}

// answeredReview is a review as GitHub and Gitea answer it. Stale, Dismissed and Official are Gitea's.
type answeredReview struct {
	User struct {
		Login string `json:"login"`
	} `json:"user"`
	State     string `json:"state"`
	CommitID  string `json:"commit_id"`
	Stale     bool   `json:"stale"`
	Dismissed bool   `json:"dismissed"`
	Official  bool   `json:"official"`
}

// opinionAboutCommit returns the opinion of a review about a commit, or false if it has none. An approval of another
// commit does not apply to this one, whereas a request for changes to an earlier one remains in effect.
func (r *answeredReview) opinionAboutCommit(commit string) (opinion, bool) {
	one := opinion{who: r.User.Login}
	switch strings.ToUpper(r.State) {
	case "APPROVED":
		one.approves = r.CommitID == commit && !r.Stale && !r.Dismissed
	case "CHANGES_REQUESTED", "REQUEST_CHANGES":
		one.declines = !r.Dismissed
	case "DISMISSED":
	default:
		return one, false // a comment leaves the opinion as it is
	}
	return one, true
}

func (g *gitHub) readReviewOpinions(ctx context.Context, r *Request) (Opinions, error) {
	var all []opinion
	pages := g.newPages()
	for pages.next() {
		var some []answeredReview
		path := fmt.Sprintf("%s/reviews?per_page=%d&page=%d", pullRequestPath(r.Number), pageSize, pages.number)
		if _, err := pages.read(ctx, readingOpinions(r.Number), path, &some); err != nil {
			return Opinions{}, err
		}
		for i := range some {
			if one, ok := some[i].opinionAboutCommit(r.HeadCommit); ok {
				all = append(all, one)
			}
		}
		if len(some) < pageSize {
			break
		}
	}
	if err := pages.checkEnd(readingOpinions(r.Number)); err != nil {
		return Opinions{}, err
	}
	last := slices.DeleteFunc(latestOpinionPerPerson(all, r.Author), func(one opinion) bool { return !one.approves && !one.declines })
	if len(last) > maxReviewers {
		return Opinions{}, fmt.Errorf("%s: more than %d people have reviewed it, and each would be asked for", readingOpinions(r.Number), maxReviewers)
	}
	for i := range last {
		if err := g.checkOpinionPermission(ctx, r.Number, &last[i]); err != nil {
			return Opinions{}, err
		}
	}
	return countOpinions(last), nil
}

// maxReviewers bounds how many people's permissions are asked for, as anybody can review what is public.
const maxReviewers = 50

// checkOpinionPermission determines whether an opinion counts. author_association does not suffice: a member of the
// organisation may lack write access, and a private membership is invisible to a token without access to it.
func (g *gitHub) checkOpinionPermission(ctx context.Context, number int64, one *opinion) error {
	var answer struct {
		Permission string `json:"permission"`
	}
	_, err := g.call(ctx, readingOpinions(number), http.MethodGet, "/collaborators/"+url.PathEscape(one.who)+"/permission", nil, &answer)
	e := (*Error)(nil)
	switch {
	case err == nil:
		if !slices.Contains([]string{"admin", "maintain", "write"}, answer.Permission) {
			one.ignored = "may not write"
		}
	case IsNotFound(err):
		one.ignored = "not known to the repository"
	case errors.As(err, &e) && e.Status == http.StatusForbidden && !e.Temporary:
		if !one.declines { // an objection blocks the merge if its author may have the right to do so
			one.ignored = "the credential may not ask whether they may write"
		}
	default:
		return err
	}
	return nil
}

func (g *gitHub) mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error {
	in := map[string]any{"sha": r.HeadCommit, "merge_method": strings.ToLower(string(method))}
	_, err := g.call(ctx, mergingPullRequest(r.Number), http.MethodPut, pullRequestPath(r.Number)+"/merge", in, nil)
	return changedMeanwhile(err)
}
