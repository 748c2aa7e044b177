// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"sort"
	"strings"
)

// Op is a way to look at a path.
type Op string

// The ways to look at a path.
const (
	OpLookup Op = "lookup"
	OpRead   Op = "read"
	OpList   Op = "list"
)

// Access is one look at a path and what came of it.
type Access struct {
	// Op is how it was looked at.
	Op Op `json:"op"`
	// Path that was looked at, as the reader named it.
	Path string `json:"path"`
	// Source is the directory of the further source that the path is in, empty for the tree's own, see Combine.
	Source string `json:"source,omitempty"`
	// Outcome identifies what was seen: the content's digest, the kind of entry, the digest of a list of names, or
	// none.
	Outcome string `json:"outcome"`
}

// Record is everything that a view was asked for, sorted. It can be stored as JSON.
type Record []Access

const (
	outcomeNone  = "none"
	outcomeError = "error"
)

// Record returns what was asked for so far.
func (v *View) Record() Record {
	v.mu.Lock()
	defer v.mu.Unlock()
	record := make(Record, 0, len(v.record))
	for key, outcome := range v.record {
		record = append(record, Access{Op: key.Op, Path: key.Path, Source: v.tree.SourceOf(key.Path), Outcome: outcome})
	}
	sort.Slice(record, func(i, j int) bool {
		if record[i].Path != record[j].Path {
			return record[i].Path < record[j].Path
		}
		return record[i].Op < record[j].Op
	})
	return record
}

func (v *View) recordAccess(op Op, name, outcome string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.record[accessKey{op, strings.Trim(name, "/")}] = outcome
}

// Fingerprint is a digest of the record: renders whose records have equal fingerprints read the same.
func (r Record) Fingerprint() string {
	h := sha256.New()
	for _, a := range r {
		fmt.Fprintf(h, "%s\x00%s\x00%s\n", a.Op, a.Path, a.Outcome)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Affected reports whether a render with this record would read anything different in the specified tree, and the
// first path that differs. An empty record is always affected, since its contents are unknown.
func (r Record) Affected(t *Tree) (reason string, affected bool) { return r.findAffected(t, nil) }

func (r Record) findAffected(t *Tree, visit visitFunc) (reason string, affected bool) {
	if len(r) == 0 {
		return "nothing is recorded of an earlier render", true
	}
	for _, a := range r {
		if now := t.lookOutcome(a.Op, a.Path, visit); now != a.Outcome {
			return describeAccess(a, now), true
		}
	}
	return "", false
}

// Differences returns what a view with this record would see differently in the specified tree, one sentence for
// each path, at most longest of them, and their total number.
func (r Record) Differences(t *Tree, longest int) (sentences []string, all int) {
	for _, a := range r {
		now := t.lookOutcome(a.Op, a.Path, nil)
		if now == a.Outcome {
			continue
		}
		if all++; len(sentences) < longest {
			sentences = append(sentences, describeAccess(a, now))
		}
	}
	return sentences, all
}

func describeAccess(was Access, now string) string {
	name := was.Path
	if name == "" {
		name = "."
	}
	switch {
	case was.Outcome == outcomeNone:
		return name + " was added"
	case now == outcomeNone:
		return name + " was removed"
	case was.Op == OpList:
		return "files were added to or removed from " + name
	}
	return name + " was changed"
}

// lookOutcome looks at a path as a view does, without recording.
func (t *Tree) lookOutcome(op Op, name string, visit visitFunc) string {
	found, err := t.findPath(name, visit)
	switch op {
	case OpRead:
		return readOutcome(found, err)
	case OpList:
		if err != nil || found.entry.Mode != Dir {
			return lookupOutcome(found, err)
		}
		return listOutcome(t.listDirectory(found, visit))
	}
	return lookupOutcome(found, err)
}

func lookupOutcome(n foundNode, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return outcomeNone
	case err != nil && n.path == "":
		return outcomeError
	}
	return fmt.Sprintf("%d %s", n.entry.Mode, n.path)
}

func readOutcome(n foundNode, err error) string {
	if err != nil || n.entry.Mode == Dir || n.entry.Mode == Submodule {
		return lookupOutcome(n, err)
	}
	return n.entry.ID
}

func listOutcome(list []Info, err error) string {
	if err != nil {
		return outcomeError
	}
	h := sha256.New()
	for _, info := range list {
		fmt.Fprintf(h, "%s\x00%t\n", info.Path, info.Dir)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
