// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// UnchangedCache remembers the pipelines that did not need a render, and for which tree. A source with a thousand
// pipelines is then compared once with its last tree, instead of a thousand times with everything that a pipeline
// has read. The zero value is an empty cache. It is safe for concurrent use.
type UnchangedCache struct {
	mu    sync.Mutex
	known map[string]cacheEntry
}

// cacheEntry holds what the finding that no render is needed depends on.
type cacheEntry struct {
	pipeline string        // digest of its specification
	state    *status.State // as returned by the store; a different state is a different pointer
	policies string        // digests of the files of policies
	root     string        // of the tree
	at       *tree.Footprint
}

// Forget forgets a deleted pipeline.
func (l *UnchangedCache) Forget(pipeline string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, pipeline)
}

// outsidePolicy is a policy that is not in the source: a file of the daemon, or an object of a cluster in a namespace.
type outsidePolicy struct{ file, namespace, name string }

// UnchangedCheck is one look at a source, for one goroutine. What a policy outside of it holds is read once.
type UnchangedCheck struct {
	looks    *UnchangedCache
	builder  *Builder
	snapshot *source.Snapshot
	changes  map[string]*tree.Changes // since the trees of earlier looks; nil where they cannot be compared
	policies map[outsidePolicy]string // their digests

	unneeded map[string]*tree.Footprint // of pipelines that need no render; without those whose footprint is unknown
}

// At begins a look.
func (l *UnchangedCache) At(b *Builder, snapshot *source.Snapshot) *UnchangedCheck {
	return &UnchangedCheck{looks: l, builder: b, snapshot: snapshot, changes: map[string]*tree.Changes{}, policies: map[outsidePolicy]string{}, unneeded: map[string]*tree.Footprint{}}
}

// Needs is Builder.Needs for a state that the store returned and that is never modified.
func (l *UnchangedCheck) Needs(e catalog.Entry, state *status.State) (reason string, needed bool) {
	policies := l.policyDigests(e)
	l.looks.mu.Lock()
	known, ok := l.looks.known[e.Key]
	l.looks.mu.Unlock()
	ok = ok && known.pipeline == e.Digest && known.state == state && known.policies == policies && l.isUntouched(known) &&
		!(anyRecordsRevisions(e.Pipeline) && state.Seen.Revision != l.snapshot.Revision)
	if !ok {
		var at *tree.Footprint
		if reason, needed, at = l.builder.checkNeeds(e.Pipeline, state, l.snapshot); needed || at == nil {
			l.looks.Forget(e.Key)
			return reason, needed
		}
		known = cacheEntry{pipeline: e.Digest, state: state, policies: policies, at: at}
	}
	if !anyRecordsRevisions(e.Pipeline) {
		l.unneeded[e.Key] = known.at
	}
	known.root = l.snapshot.Tree.ID()
	l.looks.mu.Lock()
	defer l.looks.mu.Unlock()
	if l.looks.known == nil {
		l.looks.known = map[string]cacheEntry{}
	}
	l.looks.known[e.Key] = known
	return "", false
}

// Settles reports whether Needs has found that a pipeline needs no render, and knows where in the source that comes
// from.
func (l *UnchangedCheck) Settles(pipeline string) bool { return l.unneeded[pipeline] != nil }

// maxCompared is with how many earlier trees one look compares: beyond it, looking at what a pipeline has read is no slower.
const maxCompared = 16

// isUntouched reports whether everything that a pipeline has read is unchanged in the current tree.
func (l *UnchangedCheck) isUntouched(known cacheEntry) bool {
	changes, ok := l.changes[known.root]
	if !ok && len(l.changes) < maxCompared {
		changes, _ = l.snapshot.Tree.Since(known.root)
		l.changes[known.root] = changes
	}
	return changes != nil && !changes.Touch(known.at)
}

// policyDigests returns digests of a pipeline's policies that are not in the source.
func (l *UnchangedCheck) policyDigests(e catalog.Entry) string {
	var all strings.Builder
	for _, ref := range e.Pipeline.Spec.Policies {
		policy := outsidePolicy{file: ref.File}
		switch {
		case ref.Name != "":
			policy = outsidePolicy{namespace: e.Pipeline.Metadata.Namespace, name: ref.Name}
		case ref.File == "":
			continue
		}
		sum, ok := l.policies[policy]
		if !ok {
			sum = l.builder.PolicySource().digest(policy)
			l.policies[policy] = sum
		}
		all.WriteString(sum)
	}
	return all.String()
}

// digest returns a digest of a policy as it is now.
func (s PolicySource) digest(policy outsidePolicy) string {
	read := func() ([]byte, error) { return s.readFile(policy.file) }
	if policy.name != "" {
		read = func() ([]byte, error) { return s.readObject(policy.namespace, policy.name) }
	}
	content, err := read()
	sum := fmt.Sprintf("%x %t", sha256.Sum256(content), err == nil)
	completed, failed := s.completeAll(policy.namespace, v1alpha1.PolicyRef{File: policy.file, Name: policy.name}, content)
	for _, one := range completed {
		if one != nil {
			sum += " " + one.Digest
		}
	}
	return fmt.Sprintf("%s %t\n", sum, failed == nil)
}

// Unneeded is the finding that none of many pipelines needs a render. It holds for later trees that do not differ
// in what the finding is based on, as long as these pipelines, their states and the builder are unchanged. It must
// be used by one goroutine at a time.
type Unneeded struct {
	root       string
	policies   map[outsidePolicy]string
	footprints map[string]*tree.Footprint // by pipeline
}

// Unneeded returns what the look has found.
func (l *UnchangedCheck) Unneeded() *Unneeded {
	return &Unneeded{l.snapshot.Tree.ID(), l.policies, l.unneeded}
}

// Touched returns the pipelines for which the finding may not hold in another snapshot of the source. It returns
// false if it may hold for none of them.
func (u *Unneeded) Touched(b *Builder, snapshot *source.Snapshot) (pipelines []string, ok bool) {
	for policy, sum := range u.policies {
		if b.PolicySource().digest(policy) != sum {
			return nil, false
		}
	}
	changes, ok := snapshot.Tree.Since(u.root)
	if !ok {
		return nil, false
	}
	for pipeline, at := range u.footprints {
		if changes.Touch(at) {
			pipelines = append(pipelines, pipeline)
		}
	}
	return pipelines, true
}

// Renew replaces the findings for some of the pipelines by those of a later check. For all others, Touched has
// confirmed that the finding holds for the snapshot of that check, too.
func (u *Unneeded) Renew(later *UnchangedCheck, pipelines map[string]bool) {
	for pipeline := range pipelines {
		delete(u.footprints, pipeline)
	}
	maps.Copy(u.footprints, later.unneeded)
	for policy, sum := range later.policies {
		if _, ok := u.policies[policy]; !ok { // otherwise keep the sum that the other findings are based on
			u.policies[policy] = sum
		}
	}
	u.root = later.snapshot.Tree.ID()
}
