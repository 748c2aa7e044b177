// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
	"github.com/prerig/prerig/pipeline/status"
)

// UnchangedCache remembers of which pipelines nothing was needed, and in which tree. A source with a thousand pipelines is then
// compared once with its last tree, instead of a thousand times with everything that a pipeline has read. The zero value
// remembers nothing yet. It is safe for concurrent use.
type UnchangedCache struct {
	mu    sync.Mutex
	known map[string]cacheEntry
}

// cacheEntry is what the finding that nothing is needed depends on.
type cacheEntry struct {
	pipeline string        // digest of its specification
	state    *status.State // as the store gives it; another state is another value
	policies string        // digests of the files of policies
	root     string        // of the tree
	at       *tree.Footprint
}

// Forget forgets a pipeline that is gone.
func (l *UnchangedCache) Forget(pipeline string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, pipeline)
}

// UnchangedCheck is one look at a source, for one goroutine. What a policy's file holds is read once in it.
type UnchangedCheck struct {
	looks    *UnchangedCache
	builder  *Builder
	snapshot *source.Snapshot
	changes  map[string]*tree.Changes // since the trees of earlier looks; nil where they cannot be compared
	files    map[string]string        // digests of the files of policies

	unneeded []*tree.Footprint // of pipelines of which nothing was needed
	unsure   bool              // of one of them it is not known where that comes from
}

// At begins a look.
func (l *UnchangedCache) At(b *Builder, snapshot *source.Snapshot) *UnchangedCheck {
	return &UnchangedCheck{looks: l, builder: b, snapshot: snapshot, changes: map[string]*tree.Changes{}, files: map[string]string{}}
}

// Needs is Builder.Needs for a state that the store gave and nobody changes.
func (l *UnchangedCheck) Needs(e catalog.Entry, state *status.State) (reason string, needed bool) {
	policies := l.policyDigests(e)
	l.looks.mu.Lock()
	known, ok := l.looks.known[e.Key]
	l.looks.mu.Unlock()
	ok = ok && known.pipeline == e.Digest && known.state == state && known.policies == policies && l.isUntouched(known) &&
		!(notesRevisions(e.Pipeline) && state.Seen.Revision != l.snapshot.Revision)
	l.unsure = l.unsure || notesRevisions(e.Pipeline)
	if !ok {
		var at *tree.Footprint
		if reason, needed, at = l.builder.checkNeeds(e.Pipeline, state, l.snapshot); needed || at == nil {
			l.unsure = true
			l.looks.Forget(e.Key)
			return reason, needed
		}
		known = cacheEntry{pipeline: e.Digest, state: state, policies: policies, at: at}
	}
	l.unneeded = append(l.unneeded, known.at)
	known.root = l.snapshot.Tree.ID()
	l.looks.mu.Lock()
	defer l.looks.mu.Unlock()
	if l.looks.known == nil {
		l.looks.known = map[string]cacheEntry{}
	}
	l.looks.known[e.Key] = known
	return "", false
}

// isUntouched reports whether nothing that a pipeline has seen is different in the tree of this look.
func (l *UnchangedCheck) isUntouched(known cacheEntry) bool {
	changes, ok := l.changes[known.root]
	if !ok {
		changes, _ = l.snapshot.Tree.Since(known.root)
		l.changes[known.root] = changes
	}
	return changes != nil && !changes.Touch(known.at)
}

// policyDigests returns digests of the files and objects that a pipeline's policies are in.
func (l *UnchangedCheck) policyDigests(e catalog.Entry) string {
	var all strings.Builder
	for _, ref := range e.Pipeline.Spec.Policies {
		if ref.Name != "" {
			content, err := l.builder.readObject(e.Pipeline.Metadata.Namespace, ref.Name)
			fmt.Fprintf(&all, "%x %t\n", sha256.Sum256(content), err == nil)
			continue
		}
		if ref.File == "" {
			continue
		}
		sum, ok := l.files[ref.File]
		if !ok {
			sum = l.builder.policyDigest(ref.File)
			l.files[ref.File] = sum
		}
		all.WriteString(sum)
	}
	return all.String()
}

// policyDigest returns a digest of the file of a policy.
func (b *Builder) policyDigest(file string) string {
	content, err := b.readFile(file)
	return fmt.Sprintf("%x %t\n", sha256.Sum256(content), err == nil)
}

// Unneeded is the finding of a look that nothing is needed for any of many pipelines. It holds for later trees that do not differ where
// it comes from, as long as these pipelines, their states and the builder are what they were. It is for one goroutine at a time.
type Unneeded struct {
	root       string
	files      map[string]string
	footprints []*tree.Footprint
}

// Unneeded returns what the look has found, nil where something was needed, or where it is not known what that comes from.
func (l *UnchangedCheck) Unneeded() *Unneeded {
	if l.unsure {
		return nil
	}
	return &Unneeded{l.snapshot.Tree.ID(), l.files, l.unneeded}
}

// Holds reports whether the finding is true for another snapshot of the source, too.
func (u *Unneeded) Holds(b *Builder, snapshot *source.Snapshot) bool {
	for file, sum := range u.files {
		if b.policyDigest(file) != sum {
			return false
		}
	}
	changes, ok := snapshot.Tree.Since(u.root)
	if !ok {
		return false
	}
	for _, at := range u.footprints {
		if changes.Touch(at) {
			return false
		}
	}
	u.root = snapshot.Tree.ID()
	return true
}
