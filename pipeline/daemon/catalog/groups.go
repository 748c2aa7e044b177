// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
)

// checkSameFacts refuses to share a pull request, or waves, with pipelines of another tenant, and with those that ask another API about it:
// its answers decide what is merged for all of them.
func (o *owners) checkSameFacts(u, other branchUse) error {
	mine, theirs := u.claim, other.claim
	if o.tenantOf(mine.entry) != o.tenantOf(theirs.entry) {
		return u.errorf("is shared with pipelines of another tenant, and what waits there is merged together; name a head of the tenant's own")
	}
	if pullRequestAPIKey(mine.to.Git) != pullRequestAPIKey(theirs.to.Git) {
		return &v1alpha1.FieldError{Path: mine.at + ".git.pullRequest.url", Message: "is another API than that of other pipelines in the same pull request or waves; " +
			"give the same provider and url, or another head or label"}
	}
	return nil
}

// pullRequestAPIKey is equal for entries whose pull requests are asked about at the same API.
func pullRequestAPIKey(to *v1alpha1.GitPublish) string {
	want := to.PullRequest
	kind, at, err := pullrequest.Address(want.Provider, to.URL, want.URL)
	if err != nil {
		return want.Provider + "\n" + want.URL
	}
	return strings.ToLower(kind + "\n" + strings.TrimSuffix(at, "/"))
}

// tenantOf returns the name of the tenant that owns a pipeline, or "" without tenants.
func (o *owners) tenantOf(e *Entry) string {
	if len(e.Tenant) > 0 {
		names := slices.Sorted(slices.Values(e.Tenant))
		return strings.Join(names, ",")
	}
	for _, t := range o.rules.Tenants {
		if t.Owns(v1alpha1.NamespaceOf(e.Key)) {
			return strings.Join(slices.Sorted(slices.Values(t.Namespaces)), ",")
		}
	}
	return ""
}

// checkWaves rejects entries in the waves of pipelines that they may not share a pull request with: a wave
// continues when the previous one is merged and green, regardless of who requests that.
func (o *owners) checkWaves(claims []claim, problems map[string]error) {
	var waves []branchUse
	for _, c := range claims {
		to := c.to.Git
		if to == nil || to.PullRequest == nil || to.PullRequest.Waves == nil || problems[c.id()] != nil {
			continue
		}
		u := branchUse{claim: c, name: v1alpha1.TrainKey(to), head: true, field: "pullRequest.waves"}
		u.known = slices.ContainsFunc(o.knownEntries(c.entry.Key), func(before v1alpha1.Publish) bool {
			return before.Git != nil && before.Git.PullRequest != nil && before.Git.PullRequest.Waves != nil && v1alpha1.TrainKey(before.Git) == u.name
		})
		waves = append(waves, u)
	}
	slices.SortStableFunc(waves, compareUses)
	first := map[string]branchUse{}
	for _, u := range waves {
		other, ok := first[u.name]
		if !ok {
			first[u.name] = u
			continue
		}
		if err := o.checkSameFacts(u, other); err != nil {
			problems[u.claim.id()] = err
		}
	}
}
