// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"context"
	"fmt"
	"unique"

	"go.yaml.in/yaml/v3"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// kustomizationSearch holds what the searches through kustomizations share. They search depth-first and run in the
// process of the daemon: state kept for a kustomization while those below it are searched must be small, since
// thousands may be nested.
type kustomizationSearch struct {
	ctx     context.Context
	seen    map[string]bool // directories
	sources []string        // directories of further sources
	lenient bool            // what cannot be had is left out
	entries int             // that were looked at
}

func newSearch(ctx context.Context, request render.Request) kustomizationSearch {
	return kustomizationSearch{ctx: ctx, seen: map[string]bool{}, sources: request.Sources, lenient: request.Review}
}

// beginDirectory reports whether a directory was not looked at before, and notes it.
func (s *kustomizationSearch) beginDirectory(dir string) (bool, error) {
	if s.seen[dir] {
		return false, nil
	}
	s.seen[dir] = true
	if len(s.seen) > maxKustomizations {
		return false, &tree.LimitError{What: "number of kustomizations", Limit: maxKustomizations}
	}
	return true, nil
}

// parseBoundedKustomization parses a kustomization that is not too large. It returns nil if the content is not a
// kustomization.
func (s *kustomizationSearch) parseBoundedKustomization(at string, in render.Base, content []byte) (*File, error) {
	if len(content) > maxKustomization {
		return nil, &tree.LimitError{What: "size of " + at + " in bytes", Limit: maxKustomization}
	}
	if err := CheckAliases(content, maxValues); err != nil {
		return nil, fmt.Errorf("%s: %w", at, err)
	}
	read := Parse
	if s.lenient {
		read = ParseLenient
	}
	k, err := read(at, in, s.sources, content)
	if err == nil && k != nil && !isWithin(&k.Doc, maxValues) {
		return nil, &tree.LimitError{What: "number of values in " + at, Limit: maxValues}
	}
	return k, err
}

// directory is a path of which one copy is kept, however many kustomizations name it.
type directory = unique.Handle[string]

// directoriesOf returns the directories that entries name, each once, without those already searched. find returns
// "" for an entry that is not a directory. It returns at most one more than the remaining limit, so that exceeding
// it is reported.
func (s *kustomizationSearch) directoriesOf(entries []Entry, find func(e Entry) string) ([]directory, error) {
	var out []directory
	added := map[string]bool{}
	for _, e := range entries {
		if err := s.ctx.Err(); err != nil {
			return nil, err
		}
		if s.entries++; s.entries > maxEntries {
			return nil, &tree.LimitError{What: "number of entries of kustomizations", Limit: maxEntries}
		}
		dir := find(e)
		if dir == "" || s.seen[dir] || added[dir] {
			continue
		}
		added[dir] = true
		if out = append(out, unique.Make(dir)); len(s.seen)+len(out) > maxKustomizations {
			break
		}
	}
	return out, nil
}

// dropDocument lets go of all that is large. Messages can still be made.
func (k *File) dropDocument() { k.Doc, k.Local, k.Remote = yaml.Node{}, nil, nil }
