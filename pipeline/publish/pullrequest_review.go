// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/prerig/prerig/pipeline/review"
	"github.com/prerig/prerig/pipeline/source/git"
)

// reviewText is what reviewers read, of at most so many bytes. It is the only place that makes it.
func (r *round) reviewText(ctx context.Context, longest int) (string, error) {
	var change review.Change
	for _, c := range r.changed {
		p, err := r.pipelineForReview(c)
		if err != nil {
			return "", err
		}
		change.Pipelines = append(change.Pipelines, p)
	}
	intro := fmt.Sprintf("Prerig has rendered this for `%s`. Merging publishes it; closing it declines exactly this result.\n\n", r.p.Base.Name)
	body, _, err := review.Body(ctx, change, max(1, longest-len(intro)))
	if err != nil {
		return "", fmt.Errorf("writing the text of the pull request: %w", err)
	}
	return intro + body, nil
}

// pipelineForReview returns a pipeline as shown to reviewers. For a result that waits already, its origin is read from
// the previous head.
func (r *round) pipelineForReview(c Change) (review.Pipeline, error) {
	p := review.Pipeline{Name: c.Pipeline, Before: map[string][]byte{}, After: map[string][]byte{}, Command: c.Command,
		PolicyAfter: c.PolicyDigest, ToolAfter: c.Tool}
	p.Findings.After = c.Findings
	for name, content := range c.Files {
		p.After[path.Join(c.Path, name)] = content
	}
	if c.Origin.URL != "" && !c.Remove {
		p.Sources = append(p.Sources, review.Source{URL: c.Origin.URL, After: review.Revision{Revision: c.Origin.Revision, Author: c.Origin.Author, Subject: c.Origin.Subject}})
		for _, one := range c.Origin.Mounted {
			p.Sources = append(p.Sources, review.Source{URL: one.URL, MountPath: one.MountPath, After: review.Revision{Revision: one.Revision}})
		}
	}
	for _, line := range r.head.trailers {
		if words := strings.Fields(line); p.Command == "" && len(words) > 3 && words[0] == TrailerCommand+":" && words[3] == c.Pipeline {
			p.Command = strings.TrimPrefix(line, TrailerCommand+": ")
		}
	}
	return p, r.readFiles(p.Before, r.base.root, c)
}

// readFiles reads the files that a pipeline owns below a root directory, and any other files at the paths that it
// wants.
func (r *round) readFiles(to map[string][]byte, root git.Hash, c Change) error {
	record, _, err := recordAt(r.draft, r.p.Head, root, strings.TrimPrefix(recordFile(c.Pipeline), recordDir+"/"))
	if err != nil {
		return err
	}
	names := record.Files
	for name := range c.Files {
		names = append(names, path.Join(c.Path, name))
	}
	for _, name := range names {
		content, ok, err := r.draft.Content(root, name)
		if err != nil {
			return err
		}
		if ok {
			to[name] = content
		}
	}
	return nil
}
