// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// maxName is how many bytes of a name that a host reports are quoted, and maxNames how many names.
const maxName, maxNames = 120, 5

// quoteNames returns names that a host reports, in part where they are many or long.
func quoteNames(names []string) string { return foreign.Names(names, maxNames, maxName) }

// evaluateRequiredChecks returns the combined state of the checks of a commit, some of which are required, the check
// that determines it, and the time of the newest report.
func evaluateRequiredChecks(checks []pullrequest.Check, required []string) (state pullrequest.CheckState, text string, newest time.Time) {
	var pending *pullrequest.Check
	for i := range checks {
		c := &checks[i]
		if c.At.After(newest) {
			newest = c.At
		}
		switch c.State {
		case pullrequest.CheckRed:
			return pullrequest.CheckRed, fmt.Sprintf("the status %s is red", foreign.Text(c.Name, maxName)) + describe(c), newest
		case pullrequest.CheckPending:
			pending = c
		}
	}
	for _, pattern := range required {
		if !slices.ContainsFunc(checks, func(c pullrequest.Check) bool { return v1alpha1.MatchStatus(pattern, c.Name) }) {
			return pullrequest.CheckPending, fmt.Sprintf("waits for the status %s", pattern), newest
		}
	}
	if pending != nil {
		return pullrequest.CheckPending, fmt.Sprintf("waits for the status %s", foreign.Text(pending.Name, maxName)) + describe(pending), newest
	}
	return pullrequest.CheckGreen, "", newest
}

// describe returns what follows the name of a check in a message.
func describe(c *pullrequest.Check) string {
	if c.Text == "" {
		return ""
	}
	return ": " + c.Text
}

// laterReportedTime returns the later of since and the time reported by a host, unless that is in the future: clocks
// differ. If since itself is in the future, the clock was set back after it was recorded, and the period restarts.
func laterReportedTime(since, said, now time.Time) time.Time {
	if since.After(now) {
		since = now
	}
	if said.After(since) && !said.After(now) {
		return said
	}
	return since
}

func lengthOf(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// Versions are minor versions of Istio 1, from the oldest to the newest; the zero value is none.
type Versions struct{ Oldest, Newest int }

// ParseVersions reads versions as Published.Istio has them.
func ParseVersions(text string) (v Versions) {
	if n, _ := fmt.Sscanf(text, "1.%d-1.%d", &v.Oldest, &v.Newest); n == 1 {
		v.Newest = v.Oldest
	}
	return v
}

// unionOfVersions returns the versions of both.
func (v Versions) unionOfVersions(other Versions) Versions {
	switch {
	case other == Versions{}:
		return v
	case v == Versions{}:
		return other
	}
	return Versions{min(v.Oldest, other.Oldest), max(v.Newest, other.Newest)}
}

// minorVersionSpread returns how many minor versions lie between the oldest and the newest.
func (v Versions) minorVersionSpread() int { return v.Newest - v.Oldest }

// versionSkewReason returns why merging a wave would bring the waves further apart than Istio supports, or "" if it
// would not. Waves that are too far apart already may come closer.
func (d decision) versionSkewReason(i int) string {
	before, after := Versions{}, Versions{}
	for j, s := range d.in.Stages {
		before = before.unionOfVersions(s.Runs)
		if j == i {
			after = after.unionOfVersions(s.Proposed)
		} else {
			after = after.unionOfVersions(s.Runs)
		}
	}
	if after.minorVersionSpread() <= lint.SupportedSkew || after.minorVersionSpread() <= before.minorVersionSpread() {
		return ""
	}
	return fmt.Sprintf("the waves would run Istio 1.%d and 1.%d, and Istio supports %d minor version apart; bring all of them to one in between first",
		after.Oldest, after.Newest, lint.SupportedSkew)
}
