// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"sort"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/source/git"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// gitTarget is a directory on a branch. Changes of several pipelines for one branch become one commit.
type gitTarget struct {
	targets   *Targets
	namespace string
	to        v1alpha1.Publish
	branch    *Branch
}

// checkGit refuses a template of a commit message that no commit could be made with.
func checkGit(to v1alpha1.Publish) (field string, err error) {
	if to.Git.Message == "" {
		return "", nil
	}
	return "git.message", CheckSubject(to.Git.Message)
}

func (t *Targets) openGit(ctx context.Context, namespace string, entry v1alpha1.Publish) (Interface, error) {
	to := entry.Git
	mirror, remote, err := t.repositories.Repository(ctx, namespace, to.URL, to.SecretRef)
	if err != nil {
		return nil, err
	}
	branch := &Branch{Mirror: mirror, Remote: remote, Name: to.Branch, Adopt: to.Adopt, Refresh: t.Refresh}
	if t.Publishers != nil {
		branch.Publishers = func(ctx context.Context) ([]string, error) { return t.Publishers(ctx, entry) }
	}
	if to.Author != nil {
		branch.Author, branch.Email = to.Author.Name, to.Author.Email
	}
	if to.Propose != nil {
		branch.Propose, branch.ActivePath = true, to.Propose.ActivePath
	}
	if to.Signing != nil && !t.readOnly {
		key, err := secret.Read(ctx, t.secrets, namespace, &to.Signing.SecretRef, secret.Purpose{})
		if err != nil {
			return nil, err
		}
		if branch.Signer, err = NewSigner(to.Signing.Format, key); err != nil {
			return nil, err
		}
	}
	if branch.Attester, err = t.artifactSigner(ctx, namespace, to.Attestation); err != nil {
		return nil, err
	}
	target := &gitTarget{targets: t, namespace: namespace, to: entry, branch: branch}
	if to.PullRequest != nil {
		return t.openPullRequest(ctx, target)
	}
	return target, nil
}

// Settle implements Interface: no result ever waits here.
func (g *gitTarget) Settle(context.Context, string, Written) (*v1alpha1.PullRequestStatus, error) {
	return nil, nil
}

// Key implements Interface: a branch is written together with the one that is proposed to it.
func (g *gitTarget) Key() string {
	return "branch/" + giturl.Normal(g.to.Git.URL) + "#" + g.to.Git.Branch
}

// groupKey is equal for entries whose changes can go into one commit.
func (g *gitTarget) groupKey() string {
	same := *g.to.Git
	same.Path, same.Layout, same.Style, same.Message = "", "", "", ""
	text, err := json.Marshal([]any{g.namespace, same})
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Publish implements Interface.
func (g *gitTarget) Publish(ctx context.Context, c Change) (Receipt, error) {
	return g.publishWithWriter(ctx, c, g.commitChange)
}

// publishWithWriter publishes a change by what writes it, and completes the receipt. write returns the commit before,
// too.
func (g *gitTarget) publishWithWriter(ctx context.Context, c Change, write func(context.Context, Change) (Receipt, git.Hash, error)) (Receipt, error) {
	c.Subject, c.Adopt = g.to.Git.Message, g.to.Git.Adopt
	receipt, before, err := write(ctx, c)
	if err != nil {
		return receipt, err
	}
	if receipt.Changed {
		receipt.Warning = subjectWarning(c, g.to.Git.Branch)
	}
	receipt.Files = map[string][]byte{}
	for name, content := range c.Files {
		receipt.Files[path.Join(g.to.Directory(), name)] = content
	}
	receipt.Record = recordOf(receipt.Files)
	receipt.Old = g.commitReader(before)
	return receipt, nil
}

// Remove implements Interface. The error is ErrUnmanaged if the branch was never published to.
func (g *gitTarget) Remove(ctx context.Context, c Change) (Receipt, error) {
	c.Remove = true
	receipt, _, err := g.commitChange(ctx, c)
	return receipt, err
}

// commitChange hands a change in for the next commit, and waits for it.
func (g *gitTarget) commitChange(ctx context.Context, c Change) (receipt Receipt, before git.Hash, err error) {
	c.Path = g.to.Directory()
	done := g.targets.batcher.submitChange(ctx, g.groupKey(), g.Key(), c.Cause, g.branch, c)
	if done.err != nil {
		return Receipt{}, git.Hash{}, done.err
	}
	if done.outcome.Err != nil {
		return Receipt{}, git.Hash{}, done.outcome.Err
	}
	receipt = Receipt{Changed: done.outcome.Changed(), Outcome: done.outcome}
	if !done.result.Commit.IsZero() {
		receipt.Revision = done.result.Commit.String()
	}
	return receipt, done.result.Before, nil
}

// commitReader reads files of a commit, none where it cannot be read: they are for people to look at.
func (g *gitTarget) commitReader(commit git.Hash) func(name string) []byte {
	view := sync.OnceValue(func() *tree.View {
		if commit.IsZero() {
			return nil
		}
		found, err := g.branch.Mirror.Commit(commit)
		if err != nil {
			return nil
		}
		return tree.NewView(g.branch.Mirror.Tree(found), g.targets.limits)
	})
	return func(name string) []byte {
		if view() == nil {
			return nil
		}
		content, err := view().ReadOnce(name)
		if err != nil {
			return nil
		}
		return content
	}
}

// recordOf returns the record of a view that has read all files: it is used later to detect changes by others.
func recordOf(files map[string][]byte) tree.Record {
	record := make(tree.Record, 0, len(files))
	for name, content := range files {
		record = append(record, tree.Access{Op: tree.OpRead, Path: name, Outcome: git.BlobHash(content).String()})
	}
	sort.Slice(record, func(i, j int) bool { return record[i].Path < record[j].Path })
	return record
}

// Current implements Interface. Proposed content does not count before it is merged, so it reads the active branch.
// Existing files that are not the pipeline's are taken over or rejected, as publishing would do.
func (g *gitTarget) Current(ctx context.Context, pipeline string, wanted map[string][]byte) (held Holding, err error) {
	to := g.to.Git
	files, err := g.filesAt(ctx, "refs/heads/"+to.Branch)
	if err != nil || files == nil {
		return held, err
	}
	view := tree.NewView(files, tree.Limits{})
	managed, err := Managed(view)
	if err != nil {
		return held, err
	}
	owned, err := Published(view, pipeline)
	if err != nil {
		return held, err
	}
	held = Holding{Files: map[string][]byte{}, Objects: owned.Objects}
	if !managed && !to.Adopt && to.Propose == nil && to.PullRequest == nil {
		held.Refused = ErrUnmanaged
	}
	base := g.to.Directory()
	for name, content := range owned.Files {
		at, err := relativePath(base, name)
		if err != nil {
			return held, err
		}
		held.Files[at] = content
	}
	for name := range wanted {
		if _, ok := held.Files[name]; ok {
			continue
		}
		content, err := view.Read(path.Join(base, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return held, err
		}
		held.Files[name] = content
		if !to.Adopt && held.Refused == nil {
			held.Refused = fmt.Errorf("writing %s: %w", path.Join(base, name), ErrNotOwned)
		}
	}
	return held, nil
}

// filesAt returns the files at a reference, nil where it does not exist.
func (g *gitTarget) filesAt(ctx context.Context, reference string) (*tree.Tree, error) {
	key := g.to.Git.URL + "\x00" + reference
	if g.to.Git.SecretRef != nil {
		key += "\x00" + g.namespace + "/" + g.to.Git.SecretRef.Name
	}
	return g.targets.heads(key, func() (*tree.Tree, error) {
		commit, err := g.branch.Mirror.Fetch(ctx, g.branch.Remote, git.Ref{Name: reference})
		if errors.Is(err, git.ErrNoRef) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return g.branch.Mirror.Tree(commit), nil
	})
}

// relativePath returns a path on the branch as it is from the pipeline's own. What the pipeline has left at another
// path begins with "../", so that it is never taken for a file that is to be at this one.
func relativePath(base, name string) (string, error) {
	at, err := filepath.Rel(filepath.FromSlash(base), filepath.FromSlash(name))
	return filepath.ToSlash(at), err
}
