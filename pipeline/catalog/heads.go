// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// addHeads notes the heads that are of one pipeline, or of one namespace, by where their pull requests go.
func (o *owners) addHeads(e Entry) {
	if e.Pipeline == nil {
		return
	}
	for _, to := range e.Pipeline.Spec.Publish {
		if to.Git == nil || to.Git.PullRequest == nil {
			continue
		}
		r := to.Git.PullRequest
		own := r.GroupBy == v1alpha1.GroupByPipeline || r.GroupBy == v1alpha1.GroupByNamespace
		if own && r.Head == r.DefaultHead(to.Git, e.Pipeline) {
			key := headKey(to.Git)
			o.heads[key] = append(o.heads[key], e.Pipeline.Metadata.Namespace)
		}
	}
}

func headKey(to *v1alpha1.GitPublish) string {
	return v1alpha1.BranchKey(to.URL, to.Branch) + "\n" + to.PullRequest.Head
}

// checkHead refuses a head that its pipeline names and that is another namespace's own: what waits there would be reviewed and merged
// together.
func (o *owners) checkHead(c claim) error {
	to, p := c.to.Git, c.entry.Pipeline
	if to == nil || to.PullRequest == nil || p == nil || to.PullRequest.Head == to.PullRequest.DefaultHead(to, p) {
		return nil
	}
	if slices.ContainsFunc(o.heads[headKey(to)], func(namespace string) bool { return namespace != p.Metadata.Namespace }) {
		return &v1alpha1.FieldError{Path: c.at + ".git.pullRequest.head", Message: "is the head of a pipeline of another namespace; use another"}
	}
	return nil
}
