// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/git"
)

// TrailerRollback names in a commit the commit that it reverts.
const TrailerRollback = "Prerig-Rollback"

// maxBack bounds how many commits of a branch are looked at for the last that changed a pipeline.
const maxBack = 200

// Publication is one commit of a branch that results were published to: what it changed, and of whom.
type Publication struct {
	// Commit, and the one before it on the branch, zero where it is the first.
	Commit, Before git.Hash
	Subject        string
	// Files are all that it changed but Prerig's marker, Pipelines whose they are.
	Files     map[string]git.FileChange
	Pipelines []string

	owners  map[string]string // of files, as they were last
	unowned []string          // of Files, those that no record names

	commit *git.Commit
}

var (
	// ErrNothingPublished is about a pipeline that none of the newest commits of a branch has changed.
	ErrNothingPublished = errors.New("none of the newest commits of the branch has changed anything of the pipeline that is there still")
	// ErrNoRollback is returned for a place that does not support rollbacks.
	ErrNoRollback = errors.New("only branches that Prerig writes by itself or by pull request can be rolled back")
	// ErrNotInHistory is about a commit that is not among the newest of a branch.
	ErrNotInHistory = errors.New("it is none of the newest commits of the branch")
	// ErrNotPublished is returned for a commit that Prerig has not made for a pipeline, or that also has other changes.
	ErrNotPublished = errors.New("it is no publish of this pipeline, and what people have changed is not taken back")
	// ErrEditedSince is about a publication over which a person has changed the same files.
	ErrEditedSince = errors.New("that is newer than the last publish and changed the same files; nothing is taken back, as this would be lost. " +
		"Put the pipeline on hold and revert what you want in Git, or name the commit to take back")
	// ErrChangedSince is about a publication whose files were changed once more.
	ErrChangedSince = errors.New("they have been changed since, and only what the publish wrote is taken back; roll back the newer one first")
)

// openBranch opens an entry for a rollback. host is nil where it is published to without pull requests.
func (t *Targets) openBranch(ctx context.Context, namespace string,
	to v1alpha1.Publish) (g *gitTarget, host pullrequest.Host, err error) {
	if to.Git == nil || to.Git.Propose != nil {
		return nil, nil, ErrNoRollback
	}
	opened, err := t.Open(ctx, namespace, to)
	if err != nil {
		return nil, nil, err
	}
	if g, host = branchOf(opened); g == nil {
		return nil, nil, ErrNoRollback
	}
	return g, host, nil
}

// branchOf returns the branch that an opened target writes, nil for other places, and the host of its pull requests, nil
// without these.
func branchOf(opened Interface) (*gitTarget, pullrequest.Host) {
	switch target := opened.(batchedTarget).Interface.(type) {
	case *pullTarget:
		return target.gitTarget, target.host
	case *gitTarget:
		return target, nil
	}
	return nil, nil
}

// FindPublication returns the newest commit of an entry's branch whose changes to a pipeline are still in effect,
// or the commit identified by its full hash or a prefix. Rollbacks, and those in skip, are skipped.
func (t *Targets) FindPublication(ctx context.Context, pipeline, namespace string, to v1alpha1.Publish, commit string,
	skip []string) (*Publication, error) {
	g, host, err := t.openBranch(ctx, namespace, to)
	if err != nil {
		return nil, err
	}
	b := g.branch
	tip, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Name: "refs/heads/" + b.Name})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", b.Name, err)
	}
	s := &publicationSearch{branch: b, host: host, to: to.Git, pipeline: pipeline, tip: tip}
	for at, left := tip, maxBack; at != nil && left > 0; left-- {
		var before *git.Commit
		if len(at.Parents) > 0 {
			if before, err = b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: at.Parents[0]}); err != nil {
				return nil, fmt.Errorf("reading the history of %s: %w", b.Name, err)
			}
		}
		var found *Publication
		switch {
		case commit != "" && strings.HasPrefix(at.Hash.String(), commit):
			return s.publicationOfCommit(ctx, at, before)
		case commit != "" || slices.Contains(skip, at.Hash.String()) || b.isRollback(ctx, at):
		default:
			found, err = s.newestRevertiblePublication(ctx, at, before)
		}
		if found != nil || err != nil {
			return found, err
		}
		at = before
	}
	switch {
	case commit != "":
		return nil, fmt.Errorf("looking for %s on %s: %w", commit, b.Name, ErrNotInHistory)
	case s.edited != nil:
		return nil, fmt.Errorf("%s: %w", describePerson(s.edited), ErrNothingPublished)
	}
	return nil, ErrNothingPublished
}

// isRollback reports whether a commit reverts another one, or merges a commit that does.
func (b *Branch) isRollback(ctx context.Context, at *git.Commit) bool {
	if strings.Contains(at.Body, TrailerRollback+": ") {
		return true
	}
	if len(at.Parents) < 2 {
		return false
	}
	merged, err := b.Mirror.Fetch(ctx, b.Remote, git.Ref{Commit: at.Parents[1]})
	return err == nil && strings.Contains(merged.Body, TrailerRollback+": ")
}

// computePublication works out what a commit changed. before is nil for the first one.
func computePublication(draft *git.Draft, at, before *git.Commit) (*Publication, error) {
	p := &Publication{Commit: at.Hash, Subject: at.Subject, commit: at, owners: map[string]string{}}
	var root git.Hash
	if before != nil {
		p.Before, root = before.Hash, before.Tree
	}
	var err error
	if p.Files, err = draft.Changes(root, at.Tree); err != nil {
		return nil, fmt.Errorf("reading what %.12s changed: %w", at.Hash, err)
	}
	delete(p.Files, markerFile)
	named := map[string]bool{}
	for _, one := range []git.Hash{root, at.Tree} {
		names, err := draft.List(one, recordDir)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if err := p.readOwner(draft, one, recordDir+"/"+name, named); err != nil {
				return nil, err
			}
		}
	}
	p.Pipelines = slices.Sorted(maps.Keys(named))
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		if p.owners[name] == "" {
			p.unowned = append(p.unowned, name)
		}
	}
	return p, nil
}

// refusedRevertReason returns why a pipeline may not revert a commit: no role covers files that no pipeline owns.
func (p *Publication) refusedRevertReason(pipeline string) error {
	switch {
	case len(p.unowned) > 0:
		return fmt.Errorf("%.12s has changed %s, which no pipeline owns: %w", p.Commit, p.unowned[0], ErrNotPublished)
	case !slices.Contains(p.Pipelines, pipeline):
		return fmt.Errorf("%.12s has changed nothing of it: %w", p.Commit, ErrNotPublished)
	}
	return nil
}

// readOwner notes whose the files of a record are, and the record itself. Those that have lost a file are named, too.
func (p *Publication) readOwner(draft *git.Draft, root git.Hash, name string, named map[string]bool) error {
	text, ok, err := draft.Content(root, name)
	if err != nil || !ok {
		return err
	}
	var record ownershipRecord
	if json.Unmarshal(text, &record) != nil {
		return nil // it is none
	}
	if record.Pipeline == "" || name != recordFile(record.Pipeline) {
		return nil
	}
	for _, file := range append(record.Files, name, StatementFile(record.Pipeline)) {
		p.owners[file] = record.Pipeline
		if _, ok := p.Files[file]; ok {
			named[record.Pipeline] = true
		}
	}
	return nil
}

// isStillPresent reports whether a root directory has something that the commit wrote of a pipeline.
func (p *Publication) isStillPresent(draft *git.Draft, root git.Hash, pipeline string) (bool, error) {
	for name, change := range p.Files {
		if p.owners[name] != pipeline {
			continue
		}
		if now, err := draft.File(root, name); err != nil || now == change.New {
			return err == nil, err
		}
	}
	return false, nil
}

// filesToRestore returns the files that have to be written on a root directory to take the publication back. Those that
// are as they were before already are left out, and those that are neither are an error.
func (p *Publication) filesToRestore(draft *git.Draft, root git.Hash) (map[string]git.Hash, error) {
	out := map[string]git.Hash{}
	var changed []string
	for _, name := range slices.Sorted(maps.Keys(p.Files)) {
		now, err := draft.File(root, name)
		if err != nil {
			return nil, err
		}
		switch now {
		case p.Files[name].Old:
		case p.Files[name].New:
			out[name] = p.Files[name].Old
		default:
			changed = append(changed, name)
		}
	}
	if len(changed) > 0 {
		return nil, fmt.Errorf("taking back %.12s: %s: %w", p.Commit, foreign.List(changed, maxDriftFiles), ErrChangedSince)
	}
	return out, nil
}
