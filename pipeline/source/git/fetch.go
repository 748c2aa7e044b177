// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/prerig/prerig/fn/strict"
)

// Azure DevOps rejects clients that request objects without multi_ack (TF401041), which go-git hides together with
// the capabilities it does not support. go-git can read how this changes an answer: all known commits are named in
// one request that ends with done, so a few more ACK lines precede the pack. The list belongs to go-git and is
// global to the process, and no other code in it talks to Git servers.
func init() {
	transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack}
}

// Ref is what to fetch: a full reference name, an exact commit, or both. Neither means the remote's default branch.
type Ref struct {
	// Name of the reference in full, such as refs/heads/main.
	Name string
	// Commit is the exact commit.
	Commit Hash
}

// ErrNoRef is the cause of an error about a reference that the remote does not have.
var ErrNoRef = errors.New("the repository has no such reference")

// Fetch fetches one commit into the mirror and returns it. An exact commit that the mirror already has costs no
// request if the server has granted these credentials read access within AccessBound, and one request otherwise; a
// reference costs one request to the server, and a second one if it has moved.
func (m *Mirror) Fetch(ctx context.Context, remote *Remote, ref Ref) (*Commit, error) {
	if commit, err := m.Kept(ref); err == nil {
		if err := remote.proveAccess(ctx); err != nil {
			return nil, err
		}
		return commit, nil
	}
	// What an answer that was not read to its end still holds open ends with this call.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return nil, fmt.Errorf("waiting for the mirror of %s: %w", remote.url, err)
	}
	defer unlock()
	if err := m.discardDamagedObjects(); err != nil {
		return nil, err
	}
	session, err := remote.openUploadPack(ctx)
	if err != nil {
		return nil, err
	}
	defer session.Close()
	refs, err := remote.readAdvertised(ctx, session)
	if err != nil {
		return nil, err
	}
	want, name, err := resolveRef(refs, ref)
	if err != nil {
		return nil, fmt.Errorf("fetching from %s: %w", remote.url, err)
	}
	commit, err := m.completeCommit(want)
	if err != nil {
		err := m.fetchCommit(ctx, remote.endpoint.Host, session, refs, want, m.knownCommits(name))
		if errors.Is(err, errThinTooLarge) {
			err = m.fetchWholeCommit(ctx, remote, want)
		}
		if err == nil {
			commit, err = m.Commit(want)
		}
		if err != nil && m.isIncomplete(err) {
			commit, err = m.cloneFromScratch(ctx, remote, want)
		}
		if err != nil {
			return nil, unavailableError(remote, ref, err)
		}
	}
	commit.Ref = name
	m.recordFetchedHead(name, commit.Hash)
	return commit, nil
}

// resolveRef finds what a Ref means at a remote.
func resolveRef(refs Refs, ref Ref) (Hash, string, error) {
	if !ref.Commit.IsZero() {
		return ref.Commit, ref.Name, nil
	}
	name := ref.Name
	if name == "" {
		name = refs.Default
	}
	if hash, ok := refs.ByName[name]; ok {
		return hash, name, nil
	}
	if name == "" {
		return Hash{}, "", fmt.Errorf("it names no default branch, give one: %w", ErrNoRef)
	}
	return Hash{}, "", fmt.Errorf("%s: %w%s", name, ErrNoRef, suggestRef(name, refs))
}

// suggestRef returns the most similar reference of the same kind that a remote has.
func suggestRef(name string, refs Refs) string {
	kind := strings.Join(strings.SplitAfterN(name, "/", 3)[:min(2, strings.Count(name, "/"))], "")
	var known []string
	for ref := range refs.ByName {
		if short, ok := strings.CutPrefix(ref, kind); ok {
			known = append(known, short)
		}
	}
	slices.Sort(known)
	return strict.DidYouMean(strings.TrimPrefix(name, kind), known)
}

func unavailableError(remote *Remote, ref Ref, err error) error {
	if !ref.Commit.IsZero() && strings.Contains(err.Error(), "not our ref") {
		return fmt.Errorf("fetching commit %s from %s: the repository does not have it, or the server serves only the heads of "+
			"branches (uploadpack.allowReachableSHA1InWant): %w", ref.Commit, remote.url, err)
	}
	return fmt.Errorf("fetching from %s: %w", remote.url, err)
}

// cloneFromScratch begins with an empty mirror.
func (m *Mirror) cloneFromScratch(ctx context.Context, remote *Remote, want Hash) (*Commit, error) {
	if err := m.recreateMirror(); err != nil {
		return nil, err
	}
	if err := m.fetchWholeCommit(ctx, remote, want); err != nil {
		return nil, err
	}
	return m.Commit(want)
}

// fetchWholeCommit asks for all of a commit.
func (m *Mirror) fetchWholeCommit(ctx context.Context, remote *Remote, want Hash) error {
	session, err := remote.openUploadPack(ctx)
	if err != nil {
		return err
	}
	defer session.Close()
	refs, err := remote.readAdvertised(ctx, session)
	if err != nil {
		return err
	}
	return m.fetchCommit(ctx, remote.endpoint.Host, session, refs, want, nil)
}

// fetchCommit asks for one commit without its history, and for what is not in the known commits.
func (m *Mirror) fetchCommit(ctx context.Context, server string, session transport.UploadPackSession, refs Refs, want Hash, known []Hash) error {
	request := packp.NewUploadPackRequestFromCapabilities(refs.caps)
	request.Wants = []Hash{want}
	if refs.caps.Supports(capability.Shallow) {
		if err := request.Capabilities.Set(capability.Shallow); err != nil {
			return err
		}
		request.Depth = packp.DepthCommits(1)
		request.Haves, request.Shallows = slices.Clone(known), slices.Clone(known)
	}
	if len(request.Haves) > 0 {
		// Without it, git's server sends everything again: only for a thin pack does it look at the files of a known commit
		// that is not an ancestor in the shallow history. go-git hides the capability, as its own fetch cannot complete such
		// packs; servers that do not have it ignore it.
		if err := request.Capabilities.Set(capability.ThinPack); err != nil {
			return err
		}
	}
	if refs.caps.Supports(capability.Filter) && m.limits.FileBytes > 0 {
		if err := request.Capabilities.Set(capability.Filter); err != nil {
			return err
		}
		request.Filter = packp.FilterBlobLimit(uint64(m.limits.FileBytes)+1, packp.BlobLimitPrefixNone)
	}
	if err := request.Capabilities.Set(capability.NoProgress); err != nil {
		return err
	}
	ctx, bound := boundAnswer(ctx, sizeOfHead)
	response, err := session.UploadPack(ctx, request)
	if err != nil {
		return bound.explainExceededBound(err)
	}
	defer response.Close()
	bound.lifted = true // the pack has bounds of its own
	if err := m.ingestPack(ctx, server, demuxPack(request, response)); err != nil {
		return err
	}
	if err := m.rememberCommit(want); err != nil {
		return err
	}
	// The commit is stored, whatever the outcome of the rest.
	_ = m.compactIfNeeded()
	return nil
}

// Kept returns an exact commit that the mirror holds in full, without asking the server whether it may be read. It
// is for a repository that the process itself was configured to read, never for one that a pipeline names.
func (m *Mirror) Kept(ref Ref) (*Commit, error) {
	if ref.Commit.IsZero() || m.Damaged() {
		return nil, plumbing.ErrObjectNotFound
	}
	commit, err := m.completeCommit(ref.Commit)
	if err != nil {
		return nil, err
	}
	commit.Ref = ref.Name
	return commit, nil
}
