// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/review"
)

// maxContext is the longest name of a status: GitHub and GitLab take 255 characters.
const maxContext = 255

// contextOf returns the name of the status of previews. It contains the target branch, as one commit may be the
// head of pull requests to several branches.
func contextOf(namespace, base string) string {
	name := path.Join("prerig/preview", namespace) + "/"
	if len(name)+len(base) > maxContext {
		sum := sha256.Sum256([]byte(base))
		base = hex.EncodeToString(sum[:16])
	}
	return name + base
}

// commentName returns the name that distinguishes the comments of namespaces.
func commentName(namespace string) string { return path.Join("prerig/preview", namespace) }

// statusOf returns the status of a head for the branch that it targets.
func (a *attempt) statusOf(base string, state pullrequest.CommitState, text string) pullrequest.CommitStatus {
	return pullrequest.CommitStatus{State: state, Context: contextOf(a.one.Namespace, base),
		Description: status.OneLine(text), Page: a.reportPageURL()}
}

// reportPageURL returns where to read more: the page of the one pipeline, or that of all.
func (a *attempt) reportPageURL() string {
	switch {
	case a.p.ExternalURL == "":
		return ""
	case len(a.entries) == 1:
		return a.p.ExternalURL + "/pipeline?name=" + url.QueryEscape(a.entries[0].Key)
	}
	return a.p.ExternalURL + "/"
}

// summaryLine describes in one line what would change and fail.
func (c *compared) summaryLine() string {
	text := "nothing would change"
	if c.hasChanges() {
		var parts []string
		for _, one := range []struct {
			count int
			what  string
		}{{c.added, "added"}, {c.modified, "changed"}, {c.deleted, "deleted"}} {
			if one.count > 0 {
				parts = append(parts, fmt.Sprintf("%d %s", one.count, one.what))
			}
		}
		text = fmt.Sprintf("%s in %d of %s", strings.Join(parts, ", "), c.changed,
			status.Count(c.pipelines, "pipeline"))
	}
	if all := slices.Concat(c.failures, c.statusFailures); len(all) > 0 {
		text = all[0]
		if len(all) > 1 {
			text = fmt.Sprintf("%d would fail: %s", len(all), text)
		}
	}
	return status.OneLine(text)
}

// writeCommentAndStatus writes the comment and the status, each even if the other fails.
func (a *attempt) writeCommentAndStatus(ctx context.Context, found *compared) error {
	var commented error
	if slices.ContainsFunc(a.entries, func(e catalog.Entry) bool { return e.Pipeline.Spec.Preview.Comments() }) {
		commented = a.writePreviewComment(ctx, found)
	}
	if !slices.ContainsFunc(a.entries, func(e catalog.Entry) bool { return e.Pipeline.Spec.Preview.Statuses() }) {
		return commented
	}
	state := pullrequest.CommitSuccess
	if found.hasFailures() {
		state = pullrequest.CommitFailure
	}
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	err := a.conv.SetStatus(ctx, a.in, a.statusOf(a.in.Base, state, found.summaryLine()))
	if err == nil && a.one.Pending == a.in.HeadCommit && a.one.PendingTo == a.in.Base {
		a.one.Pending, a.one.PendingTo = "", ""
	}
	if _, again := pullrequest.Retry(err); again {
		return errors.Join(err, commented) // the error that is worth a retry is marked as such
	}
	return errors.Join(commented, err)
}

// writePreviewComment writes the comment. It does not create one if it has no content.
func (a *attempt) writePreviewComment(ctx context.Context, found *compared) error {
	ctx, cancel := context.WithTimeout(ctx, hostTimeout)
	defer cancel()
	tells := found.hasChanges() || len(found.failures) > 0 || slices.ContainsFunc(found.reviewed, func(p review.Pipeline) bool { return p.Refused != "" })
	text, err := a.boundedCommentText(ctx, found, a.conv.MaxBody(), tells)
	if err != nil {
		return err
	}
	a.one.Comment, err = a.conv.Keep(ctx, a.one.Number,
		pullrequest.KeptComment{Name: commentName(a.one.Namespace), Text: text, Known: a.one.Comment, NoNew: !tells})
	return err
}

// boundedCommentText returns the text of the comment, of at most longest bytes.
func (a *attempt) boundedCommentText(ctx context.Context, found *compared, longest int, tells bool) (string, error) {
	var head strings.Builder
	fmt.Fprintf(&head, "**Prerig** has previewed `%s`", a.in.HeadCommit[:min(12, len(a.in.HeadCommit))])
	if a.one.Namespace != "" {
		fmt.Fprintf(&head, " for the pipelines of `%s`", a.one.Namespace)
	}
	head.WriteString(". Nothing is published by it.\n\n")
	for _, text := range found.failures {
		fmt.Fprintf(&head, "**It is not complete**: %s.\n\n", text)
	}
	if !tells {
		return head.String() + "Nothing would change.", nil
	}
	tail := ""
	if a.in.Fork {
		tail = "\n\n_This pull request is from a fork: it is rendered without secrets, and compared with what the branch renders to in the same way._"
	}
	body, _, err := review.Body(ctx, review.Change{Pipelines: found.reviewed}, max(1, longest-head.Len()-len(tail)))
	if err != nil {
		return "", fmt.Errorf("writing the comment: %w", err)
	}
	return head.String() + body + tail, nil
}
