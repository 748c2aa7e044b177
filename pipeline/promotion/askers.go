// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/publish"
)

// asker is a pipeline of a group with whose credentials the host and the repository are asked.
type asker struct {
	pipeline, namespace string
	to                  v1alpha1.Publish
}

// onePerCredentials returns one pipeline for each set of credentials that a group has.
func (g *group) onePerCredentials() (out []asker) {
	secretOf := func(to *v1alpha1.GitPublish) (names [2]string) {
		if to.SecretRef != nil {
			names[0] = to.SecretRef.Name
		}
		if ref := to.PullRequest.SecretRef; ref != nil {
			names[1] = ref.Name
		}
		return names
	}
	for _, m := range g.members {
		one := asker{pipeline: m.key, namespace: v1alpha1.NamespaceOf(m.key), to: m.entry}
		known := slices.ContainsFunc(out, func(other asker) bool {
			return other.namespace == one.namespace && secretOf(other.to.Git) == secretOf(one.to.Git)
		})
		if !known {
			out = append(out, one)
		}
	}
	return out
}

// askError is about what was asked with the credentials of a pipeline, which it may name.
type askError struct {
	pipeline string
	err      error
}

func (e *askError) Error() string { return e.err.Error() }

func (e *askError) Unwrap() error { return e.err }

// withMemberCredentials calls do with the credentials of one of a group's namespaces, and if they do not suffice with
// those of the next: a missing or rejected secret fails only its own team, and does not block others. Failed
// credentials are tried again later. The error is that of the first attempt.
func (p *Promoter) withMemberCredentials(ctx context.Context, g *group, do func(a asker) error) error {
	askers := g.onePerCredentials()
	tryOf := func(a asker) string { return "credentials " + g.key + " " + a.pipeline }
	due := slices.DeleteFunc(slices.Clone(askers), func(a asker) bool { return !p.retries.isDue(tryOf(a), p.now()) })
	if len(due) == 0 {
		due = askers
	}
	var first error
	for _, a := range due {
		err := do(a)
		if err == nil {
			p.retries.forget(tryOf(a))
			return nil
		}
		if first == nil {
			first = &askError{a.pipeline, err}
		}
		if ctx.Err() != nil || !isOfCredentials(err) {
			return &askError{a.pipeline, err}
		}
		if len(askers) > 1 {
			p.retries.record(tryOf(a), p.now(), err)
			p.Log.Warn("the credentials of a pipeline do not suffice for its group, and those of others are tried", "pipeline", a.pipeline, "head", g.head, "error", err)
		}
	}
	return first
}

// isOfCredentials reports whether something may succeed with other credentials: the secret could not be read, or was refused.
func isOfCredentials(err error) bool {
	for _, final := range []error{errNotNow, pullrequest.ErrNotOpen, publish.ErrEdited} {
		if errors.Is(err, final) {
			return false
		}
	}
	told := (*pullrequest.Error)(nil)
	if !errors.As(err, &told) {
		return true
	}
	return slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusTooManyRequests}, told.Status)
}
