// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// maxKnown bounds how many commits are remembered; what only older ones need is dropped some time.
const maxKnown = 128

const (
	// maxHaves bounds how many known commits are sent to a server if it is unknown which of them resembles the
	// wanted one.
	maxHaves = 16
	// fewHaves are enough in addition to the previous commit of the reference. A server walks the directories of
	// each: with 5,000 directories, 16 commits took 50 ms longer than 3.
	fewHaves = 2
)

// Remember protects a commit in the mirror from being dropped because of its age. It is for a commit that stays in
// use while others come and go; repeated calls are free.
func (m *Mirror) Remember(ctx context.Context, commit Hash) error {
	all := shallowCommits(m.dir)
	if slices.Contains(all[max(0, len(all)-maxKnown/2):], commit) {
		return nil
	}
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return fmt.Errorf("remembering commit %s: %w", commit, err)
	}
	defer unlock()
	return m.rememberCommit(commit)
}

// Forget removes commits from those that are kept. Objects that only they need are removed when the mirror is
// compacted; until then they may still be read. A commit that is fetched again is kept again.
func (m *Mirror) Forget(ctx context.Context, commits ...Hash) error {
	unlock, err := m.lockMirror(ctx)
	if err != nil {
		return fmt.Errorf("waiting for the mirror: %w", err)
	}
	defer unlock()
	all := shallowCommits(m.dir)
	left := slices.DeleteFunc(slices.Clone(all), func(h Hash) bool { return slices.Contains(commits, h) })
	if len(left) == len(all) {
		return nil
	}
	return writeShallow(m.dir, left)
}

// shallowCommits returns the commits that were fetched, oldest first. The file is git's own: the commits whose parents are not here.
func shallowCommits(dir string) []Hash {
	data, err := os.ReadFile(filepath.Join(dir, "shallow"))
	if err != nil {
		return nil
	}
	var all []Hash
	for _, line := range strings.Fields(string(data)) {
		all = append(all, plumbing.NewHash(line))
	}
	return all
}

// writeShallow writes the commits that are kept.
func writeShallow(dir string, commits []Hash) error {
	var text strings.Builder
	for _, hash := range commits {
		text.WriteString(hash.String() + "\n")
	}
	name := filepath.Join(dir, "shallow")
	if err := os.WriteFile(name+".new", []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("noting the fetched commits: %w", err)
	}
	return os.Rename(name+".new", name)
}

// knownCommits returns commits for the server that a reference's new one may be like: the one that it had before and the newest, or more
// of these where that is not known.
func (m *Mirror) knownCommits(reference string) []Hash {
	all := shallowCommits(m.dir)
	newest, before := maxHaves, []Hash(nil)
	if head := m.heads[reference]; slices.Contains(all, head) && m.Has(head) {
		newest, before = fewHaves, []Hash{head}
	}
	haves := slices.DeleteFunc(all[max(0, len(all)-newest):], func(h Hash) bool { return slices.Contains(before, h) || !m.Has(h) })
	return append(haves, before...)
}

// recordFetchedHead notes what a reference was fetched at, for its next fetch.
func (m *Mirror) recordFetchedHead(reference string, commit Hash) {
	if reference == "" {
		return
	}
	if m.heads == nil || len(m.heads) >= maxKnown {
		m.heads = map[string]Hash{}
	}
	m.heads[reference] = commit
}

func (m *Mirror) rememberCommit(commit Hash) error {
	if decoded, err := m.Commit(commit); err == nil {
		commit = decoded.Hash
	}
	all := append(slices.DeleteFunc(shallowCommits(m.dir), func(h Hash) bool { return h == commit }), commit)
	return writeShallow(m.dir, all[max(0, len(all)-maxKnown):])
}
