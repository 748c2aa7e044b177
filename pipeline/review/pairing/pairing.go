// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package pairing

import (
	"bytes"
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// Build is what a build renders at the two ends.
type Build struct {
	// Key names the build; for a directory, it is the path.
	Key string
	// Before and After are its files. One that is nil is a build that does not exist at that end.
	Before, After map[string][]byte
	// Cluster returns the cluster that a file is for at an end, "" where that is not known. It may be nil.
	Cluster func(path string, after bool) string
}

// Move is an object that another build or unit renders than before.
type Move struct {
	Object gate.Identity
	// From and To are the builds, and FromPath and ToPath the files.
	From, To         string
	FromPath, ToPath string
}

// Rename is a generated object whose name has another hash.
type Rename struct {
	Object gate.Identity // without the hash
	// Build and Path are those of the object, From and To its names.
	Build, Path, From, To string
}

// Shared is an object of one cluster that two builds or units have at the second end, and one of them had before.
type Shared struct {
	Object gate.Identity
	// Build and Path are those of the other one: From and FromPath have lost the object, or have it from now on.
	Build, Path, From, FromPath string
	// Gained reports whether From has it from now on.
	Gained bool
}

// Pairs are the results.
type Pairs struct {
	Moves   []Move
	Renames []Rename
	Shared  []Shared
}

// Pair changes the files of builds so that an object has the same build and path at both ends, those of the second one.
// The maps are copied before.
func Pair(builds []*Build) Pairs {
	p := &pairer{before: map[*Build]map[string]*object{}, after: map[*Build]map[string]*object{}}
	for _, b := range builds {
		p.add(b)
	}
	p.pairBuilds(builds)
	p.matchWithin(builds)
	p.matchAcross(builds)
	p.share(builds)
	for _, m := range p.matched {
		delete(m[0].build.Before, m[0].path)
	}
	for _, m := range p.matched {
		p.apply(m[0], m[1])
	}
	return p.pairs
}

// pairer pairs the objects of builds.
type pairer struct {
	pairs         Pairs
	before, after map[*Build]map[string]*object // what has no partner yet
	all           [2]map[*Build]map[gate.Identity]bool
	holders       [2]map[gate.Identity][]*object // all objects of both ends
	renamed       map[*Build]*Build              // the build that a new one was before
	matched       [][2]*object
}

// add reads a build. Objects that have their path at both ends are paired.
func (p *pairer) add(b *Build) {
	old, now := objectsOf(b, b.Before, false), objectsOf(b, b.After, true)
	if p.all[0] == nil {
		p.all[0], p.all[1] = map[*Build]map[gate.Identity]bool{}, map[*Build]map[gate.Identity]bool{}
		p.holders[0], p.holders[1] = map[gate.Identity][]*object{}, map[gate.Identity][]*object{}
	}
	for i, objects := range []map[string]*object{old, now} {
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			p.holders[i][objects[name].id] = append(p.holders[i][objects[name].id], objects[name])
		}
	}
	p.all[0][b], p.all[1][b] = identities(old), identities(now)
	for name, o := range old {
		if other := now[name]; other != nil && other.id == o.id {
			delete(old, name)
			delete(now, name)
		}
	}
	p.before[b], p.after[b] = old, now
	b.Before, b.After = maps.Clone(b.Before), maps.Clone(b.After)
}

func identities(objects map[string]*object) map[gate.Identity]bool {
	out := map[gate.Identity]bool{}
	for _, o := range objects {
		out[o.id] = true
	}
	return out
}

// candidate is a pair of builds or objects, with how much they have in common.
type candidate[T any] struct {
	old, now *T
	score    []int
}

// bestFirst sorts candidates, the best first, and calls take for each until one of the two is taken.
func bestFirst[T any](all []candidate[T], take func(old, now *T)) {
	slices.SortStableFunc(all, func(a, b candidate[T]) int { return slices.Compare(b.score, a.score) })
	taken := map[*T]bool{}
	for _, c := range all {
		if !taken[c.old] && !taken[c.now] {
			taken[c.old], taken[c.now] = true, true
			take(c.old, c.now)
		}
	}
}

// pairBuilds pairs builds that no longer exist with those that are new: a directory that was renamed.
func (p *pairer) pairBuilds(builds []*Build) {
	p.renamed = map[*Build]*Build{}
	var all []candidate[Build]
	for _, old := range builds {
		for _, now := range builds {
			if old.After != nil || now.Before != nil {
				continue
			}
			if n := common(p.all[0][old], p.all[1][now]); n > 0 {
				all = append(all, candidate[Build]{old, now, []int{n, sameEnd(old.Key, now.Key)}})
			}
		}
	}
	bestFirst(all, func(old, now *Build) { p.renamed[now] = old })
}

func common(a, b map[gate.Identity]bool) (n int) {
	for id := range a {
		if b[id] {
			n++
		}
	}
	return n
}

// matchWithin pairs the objects of each build: by their identities, and those of generators without their hashes.
func (p *pairer) matchWithin(builds []*Build) {
	for _, b := range builds {
		old := []*Build{b}
		if before := p.renamed[b]; before != nil {
			old = append(old, before)
		}
		for _, hashed := range []bool{false, true} {
			p.match(p.leaving(old...), p.entering(b), hashed, func(*object, *object) bool { return true })
		}
	}
}

// matchAcross pairs the objects that leave one build and enter another one of the same cluster.
func (p *pairer) matchAcross(builds []*Build) {
	for _, hashed := range []bool{false, true} {
		p.match(p.leaving(builds...), p.entering(builds...), hashed,
			func(old, now *object) bool { return p.shareCluster(old.build, now.build) })
	}
}

// shareCluster reports whether two builds may be of one cluster: no object is in both at either end. Namespaces do not
// count: several builds may bring the one that they need.
func (p *pairer) shareCluster(a, b *Build) bool {
	for _, end := range p.all {
		for id := range end[a] {
			if id.Kind != "Namespace" && end[b][id] {
				return false
			}
		}
	}
	return true
}

func (p *pairer) leaving(builds ...*Build) []*object  { return remaining(p.before, builds) }
func (p *pairer) entering(builds ...*Build) []*object { return remaining(p.after, builds) }

func remaining(of map[*Build]map[string]*object, builds []*Build) (out []*object) {
	for _, b := range builds {
		for _, name := range slices.Sorted(maps.Keys(of[b])) {
			out = append(out, of[b][name])
		}
	}
	return out
}

// match pairs objects with the same identity, without the hash of a generator if that is asked for. Of several, the
// most similar ones are a pair.
func (p *pairer) match(leaving, entering []*object, hashed bool, allowed func(old, now *object) bool) {
	key := func(o *object) (gate.Identity, bool) {
		if hashed {
			return o.stem()
		}
		return o.id, true
	}
	byID := map[gate.Identity][]*object{}
	for _, o := range entering {
		if id, ok := key(o); ok {
			byID[id] = append(byID[id], o)
		}
	}
	var all []candidate[object]
	for _, old := range leaving {
		id, ok := key(old)
		if !ok {
			continue
		}
		for _, now := range byID[id] {
			if allowed(old, now) && (old.cluster == now.cluster || old.cluster == "" || now.cluster == "") {
				same := map[bool]int{true: 1}[bytes.Equal(old.text, now.text)]
				score := []int{same, sameEnd(old.build.Key, now.build.Key), sameEnd(old.path, now.path)}
				all = append(all, candidate[object]{old, now, score})
			}
		}
	}
	bestFirst(all, func(old, now *object) {
		delete(p.before[old.build], old.path)
		delete(p.after[now.build], now.path)
		p.matched = append(p.matched, [2]*object{old, now})
	})
}

// apply moves an object at the first end to the build and path that it has at the second end.
func (p *pairer) apply(old, now *object) {
	if now.build.Before == nil {
		now.build.Before = map[string][]byte{}
	}
	if other, taken := now.build.Before[now.path]; taken {
		now.build.Before[now.path+".before"] = other // an object that another one takes the path of
	}
	now.build.Before[now.path] = old.text
	if old.id.Name != now.id.Name {
		stem, _ := now.stem()
		p.pairs.Renames = append(p.pairs.Renames,
			Rename{Object: stem, Build: now.build.Key, Path: now.path, From: old.id.Name, To: now.id.Name})
	}
	if old.build != now.build && p.renamed[now.build] == old.build {
		return
	}
	p.pairs.Moves = append(p.pairs.Moves, Move{Object: now.id, From: old.build.Key, To: now.build.Key,
		FromPath: old.path, ToPath: now.path})
}
