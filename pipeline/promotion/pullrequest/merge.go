// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pullrequest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// CheckState is the state of a check of a commit.
type CheckState string

// States of checks. An unknown state of a host is CheckPending: it neither approves nor blocks.
const (
	CheckGreen   CheckState = "Green"
	CheckPending CheckState = "Pending"
	CheckRed     CheckState = "Red"
)

// Check is a reported result for a commit: a commit status, or on GitHub also a check run.
type Check struct {
	Name  string
	State CheckState
	// At is when it was reported, or zero if the host does not include that.
	At time.Time
	// Text describes what was found; it is empty for checks that a host reports.
	Text string
	// origin distinguishes reporters that use the same name, or is "" if the host does not include it: two
	// workflows may each have a job "build".
	origin string
	// run is the host's number of the run that it belongs to, higher for later runs, or 0 if the host does not
	// include it.
	run int64
}

// Opinions are the opinions of people about a pull request in its current state. Those of people with read access
// only do not count.
type Opinions struct {
	// Approved are those who approve of it, Declined those who want it changed.
	Approved, Declined []string
	// Ignored are those whose approvals do not count, each with why.
	Ignored []string
}

// MergeMethod is how a pull request is merged.
type MergeMethod string

// The methods. Rebase is for hosts that have it; GitLab merges as its project is set, but for squashing.
const (
	MergeCommit MergeMethod = "Merge"
	MergeSquash MergeMethod = "Squash"
	MergeRebase MergeMethod = "Rebase"
)

// Merger is a Host that can also merge. Open returns one.
type Merger interface {
	Host
	// Checks returns one check per name of a commit, the worst if several have that name. An empty result is not an
	// error.
	Checks(ctx context.Context, commit string) ([]Check, error)
	// Opinions returns what people think of the commit that the pull request holds now.
	Opinions(ctx context.Context, number int64) (Opinions, error)
	// Merge merges a pull request if its head is the specified commit; otherwise the error is [ErrChanged]. A pull
	// request that is already merged is returned as it is. Some hosts merge after they have answered: then the
	// returned pull request is still open.
	Merge(ctx context.Context, number int64, commit string, method MergeMethod) (*Request, error)
}

// ErrNotOpen is about a pull request that was closed.
var ErrNotOpen = errors.New("the pull request is closed")

// merging is what kinds of hosts do each in its own way to merge.
type merging interface {
	readCommitChecks(ctx context.Context, commit string) ([]Check, error)
	readReviewOpinions(ctx context.Context, r *Request) (Opinions, error)
	mergePullRequest(ctx context.Context, r *Request, method MergeMethod) error
}

var _ Merger = (*repository)(nil)

// errNoMerge is returned for a kind of host that does not support merging.
var errNoMerge = errors.New("merging is not known for this kind of host")

func (h *repository) mergingHost() (merging, error) {
	m, ok := h.kind.(merging)
	if !ok {
		return nil, errNoMerge
	}
	return m, nil
}

// Checks implements Merger.
func (h *repository) Checks(ctx context.Context, commit string) ([]Check, error) {
	m, err := h.mergingHost()
	if err != nil {
		return nil, err
	}
	all, err := m.readCommitChecks(ctx, commit)
	return worstChecks(newestChecks(all)), err
}

// badness orders states from the best to the worst.
var badness = map[CheckState]int{CheckGreen: 0, CheckPending: 1, CheckRed: 2}

// newestChecks returns the last check of each origin under each name. Of two with the same age, the worse counts.
func newestChecks(all []Check) []Check {
	type said struct{ name, origin string }
	newest := map[said]Check{}
	for _, one := range all {
		key := said{one.Name, one.origin}
		old, ok := newest[key]
		if !ok || cmp.Or(cmp.Compare(one.run, old.run), one.At.Compare(old.At), badness[one.State]-badness[old.State]) > 0 {
			newest[key] = one
		}
	}
	return slices.Collect(maps.Values(newest))
}

// worstChecks returns the worst check of each name, sorted by name, so that none hides another that failed or is not done, whichever has
// ended last. It is as new as the newest of them.
func worstChecks(all []Check) []Check {
	byName := map[string]Check{}
	for _, one := range all {
		if old, ok := byName[one.Name]; ok {
			newest := one.At
			if old.At.After(newest) {
				newest = old.At
			}
			if badness[old.State] > badness[one.State] {
				one = old
			}
			one.At = newest
		}
		byName[one.Name] = one
	}
	var out []Check
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		out = append(out, byName[name])
	}
	return out
}

// Opinions implements Merger.
func (h *repository) Opinions(ctx context.Context, number int64) (Opinions, error) {
	m, err := h.mergingHost()
	if err != nil {
		return Opinions{}, err
	}
	r, err := h.readPullRequest(ctx, number)
	if err != nil {
		return Opinions{}, err
	}
	return m.readReviewOpinions(ctx, r)
}

// Merge implements Merger.
func (h *repository) Merge(ctx context.Context, number int64, commit string, method MergeMethod) (*Request, error) {
	m, err := h.mergingHost()
	if err != nil {
		return nil, err
	}
	r, err := h.readPullRequest(ctx, number)
	switch {
	case err != nil:
		return nil, err
	case r.State == StateMerged:
		return r, nil
	case r.State != StateOpen:
		return nil, fmt.Errorf("merging pull request %d: %w", number, ErrNotOpen)
	case !sameCommit(r.HeadCommit, commit):
		return nil, fmt.Errorf("merging pull request %d: its head is %.12s and not %.12s: %w", number, r.HeadCommit, commit, ErrChanged)
	}
	if err := m.mergePullRequest(ctx, r, method); err != nil {
		return nil, err
	}
	return h.readPullRequest(ctx, number)
}

// sameCommit compares hashes, which Bitbucket Cloud abbreviates.
func sameCommit(a, b string) bool {
	n := min(len(a), len(b))
	return n >= 12 && a[:n] == b[:n]
}

func mergingPullRequest(number int64) string { return fmt.Sprintf("merging pull request %d", number) }
func readingChecks(commit string) string     { return fmt.Sprintf("reading the statuses of %.12s", commit) }
func readingOpinions(number int64) string {
	return fmt.Sprintf("reading the reviews of pull request %d", number)
}

// changedMeanwhile converts a rejection because of a different head to ErrChanged.
func changedMeanwhile(err error) error {
	if e := (*Error)(nil); errors.As(err, &e) && e.Status == http.StatusConflict && !e.Temporary {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return err
}

// opinion is a person's opinion; they are kept in the order in which they were submitted.
type opinion struct {
	who      string
	approves bool
	declines bool
	// ignored is the reason why it does not count, or "" if it does.
	ignored string
}

// latestOpinionPerPerson returns the last opinion of each person, sorted by their names, but of the author none.
func latestOpinionPerPerson(all []opinion, author string) []opinion {
	last := map[string]opinion{}
	for _, one := range all {
		if one.who != "" && one.who != author {
			last[one.who] = one
		}
	}
	var out []opinion
	for _, who := range slices.Sorted(maps.Keys(last)) {
		out = append(out, last[who])
	}
	return out
}

// countOpinions counts opinions, of which each person has one.
func countOpinions(all []opinion) (out Opinions) {
	for _, one := range all {
		switch {
		case one.ignored != "" && one.approves:
			out.Ignored = append(out.Ignored, one.who+" ("+one.ignored+")")
		case one.ignored != "":
		case one.declines:
			out.Declined = append(out.Declined, one.who)
		case one.approves:
			out.Approved = append(out.Approved, one.who)
		}
	}
	return out
}

// lastOpinions counts the last opinion of each person, but of the author none.
func lastOpinions(all []opinion, author string) Opinions {
	return countOpinions(latestOpinionPerPerson(all, author))
}
