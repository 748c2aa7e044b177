// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package rendered

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
	"github.com/prerig/prerig/pipeline/verify"
)

// history implements verify.History. It is safe for concurrent use.
type history struct {
	options Options
	commits Commits // nil for a single state
	read    func(s *state, name string) ([]byte, error)
	heads   map[verify.Ref]*verify.Workload

	mu     sync.Mutex
	states []*state // the newest first; those with equal files only once
	last   *state   // the oldest commit that was looked at
	looked int
	whole  bool             // no older commits are left to read
	blobs  map[string]*blob // by path and digest
}

// blob is what a file holds.
type blob struct {
	workloads []*verify.Workload
	err       error
	parsed    sync.Once
}

// Head implements verify.History.
func (h *history) Head() verify.Commit { return h.states[0].commit }

// Workloads implements verify.History.
func (h *history) Workloads() map[verify.Ref]*verify.Workload { return h.heads }

// setHead reads all workloads of the newest state.
func (h *history) setHead(ctx context.Context, first *state) error {
	h.states, h.last = []*state{first}, first
	names := slices.Sorted(maps.Keys(first.files))
	found := make([]*blob, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, runtime.GOMAXPROCS(0)))
	for i, name := range names {
		group.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			found[i], err = h.parseStateFile(first, name)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	h.heads = map[verify.Ref]*verify.Workload{}
	for _, b := range found {
		for _, w := range b.workloads {
			if other := h.heads[w.Ref]; other != nil && w.Ref.Generated() {
				other.Templates = append(other.Templates, w.Templates...) // two of one beginning are two objects
				continue
			} else if other != nil {
				return fmt.Errorf("reading %s: it is committed in %s and in %s; name one of them with --path", w.Ref, other.File, w.File)
			}
			h.heads[w.Ref] = workloadAtCommit(w, first.commit)
		}
	}
	return nil
}

// workloadAtCommit returns a workload as one of a commit.
func workloadAtCommit(w *verify.Workload, commit verify.Commit) *verify.Workload {
	out := *w
	out.Commit = commit
	return &out
}

// Versions implements verify.History.
func (h *history) Versions(ref verify.Ref) iter.Seq2[*verify.Workload, error] {
	return func(yield func(*verify.Workload, error) bool) {
		file := ""
		if w := h.heads[ref]; w != nil {
			file = w.File
		}
		for i := 1; ; i++ {
			newer, s, err := h.stateAndSuccessor(i)
			if err != nil {
				yield(nil, err)
				return
			}
			if s == nil {
				return
			}
			w, err := h.findInState(newer, s, ref, file)
			if err != nil && !yield(nil, err) {
				return
			}
			if w == nil {
				continue
			}
			file = w.File
			if !yield(workloadAtCommit(w, s.commit), nil) {
				return
			}
		}
	}
}

// stateAndSuccessor returns a state and the one after it, or nil if none is that old.
func (h *history) stateAndSuccessor(i int) (newer, s *state, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.states) <= i && !h.whole {
		if err := h.readOlderCommit(); err != nil {
			return nil, nil, err
		}
	}
	if len(h.states) <= i {
		return nil, nil, nil
	}
	return h.states[i-1], h.states[i], nil
}

// readOlderCommit reads one more commit.
func (h *history) readOlderCommit() error {
	if h.commits == nil || len(h.last.parents) == 0 || h.looked >= h.options.MaxCommits {
		h.whole = true
		return nil
	}
	h.looked++
	commit, files, err := h.commits(h.last.parents[0].String())
	if errors.Is(err, plumbing.ErrObjectNotFound) || errors.Is(err, plumbing.ErrReferenceNotFound) {
		h.whole = true // a clone that is not deep
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the commits before %s: %w", h.last.commit, err)
	}
	s, err := h.stateOf(commit, files)
	if err != nil {
		return fmt.Errorf("reading commit %s: %w", commit.Hash, err)
	}
	h.last = s
	if s.hasSameManifests(h.states[len(h.states)-1]) {
		return nil
	}
	s.commit.Behind = len(h.states)
	h.states = append(h.states, s)
	return nil
}

// findInState returns a workload in a state, or nil if it does not exist or is in a file that is the same in the next
// state. file is where it was found last, or "". An error is about a file that may contain it.
func (h *history) findInState(newer, s *state, ref verify.Ref, file string) (*verify.Workload, error) {
	var unread error
	if id, ok := s.files[file]; ok {
		if newer.files[file] == id {
			return nil, nil
		}
		w, err := h.findInFile(s, file, ref)
		if w != nil {
			return w, nil
		}
		unread = err
	}
	files, err := h.changedFilesWithName(newer, s, ref.BaseName())
	unread = cmp.Or(unread, err)
	for _, name := range files {
		w, err := h.findInFile(s, name, ref)
		if w != nil {
			return w, nil
		}
		unread = cmp.Or(unread, err)
	}
	return nil, unread
}

// objectName is where a text may name an object.
var objectName = lazyregexp.New(`(?:n|generateN)ame["']?[ \t]*:\s*["']?([a-zA-Z0-9.-]+)`)

// changedFilesWithName returns the files of a state that the next one does not have so, and that may hold an object of
// a name. The files are read once, and only those that are likely are taken apart: an upgrade of a mesh changes
// thousands. An error is of one that cannot be read, beside the others.
func (h *history) changedFilesWithName(newer, s *state, name string) ([]string, error) {
	s.indexed.Do(func() {
		s.names = map[string][]string{}
		for _, file := range s.filesChangedBefore(newer) {
			text, err := h.read(s, file)
			if err != nil {
				s.indexErr = cmp.Or(s.indexErr, fmt.Errorf("reading %s of %s: %w", file, s.commit, err))
				continue
			}
			for _, m := range objectName.FindAllSubmatch(text, -1) {
				if found := string(m[1]); !slices.Contains(s.names[found], file) {
					s.names[found] = append(s.names[found], file)
				}
			}
		}
	})
	return s.names[name], s.indexErr
}

func (h *history) findInFile(s *state, name string, ref verify.Ref) (*verify.Workload, error) {
	b, err := h.parseStateFile(s, name)
	for _, w := range b.workloads {
		if w.Ref == ref {
			return w, nil
		}
	}
	return nil, err
}

// parseStateFile returns what a file holds.
func (h *history) parseStateFile(s *state, name string) (*blob, error) {
	key := name + "@" + s.files[name]
	h.mu.Lock()
	b := h.blobs[key]
	if b == nil {
		b = &blob{}
		h.blobs[key] = b
	}
	h.mu.Unlock()
	b.parsed.Do(func() {
		var text []byte
		if text, b.err = h.read(s, name); b.err == nil {
			b.err = b.readFileWorkloads(h.options, name, text)
		}
		if b.err != nil {
			b.err = fmt.Errorf("reading %s of %s: %w", name, s.commit, b.err)
		}
	})
	return b, b.err
}

// readFileWorkloads reads the workloads of a file.
func (b *blob) readFileWorkloads(o Options, name string, text []byte) error {
	file, err := manifest.Parse(name, text)
	if err != nil {
		return err
	}
	var read func(docs []*manifest.Document) error
	read = func(docs []*manifest.Document) error {
		for _, doc := range docs {
			if doc.Empty() {
				continue
			}
			meta, sure := doc.Peek()
			if items, isList, err := itemsOf(doc, meta, sure); err != nil {
				return err
			} else if isList {
				if err := read(items); err != nil {
					return err
				}
				continue
			}
			if _, known := o.Registry.Lookup(meta.APIVersion, meta.Kind); sure && !known {
				continue
			}
			obj, err := doc.Object()
			if err != nil || obj == nil {
				return err
			}
			w, err := verify.NewWorkload(o.Registry, obj, o.Namespace, name)
			if err != nil {
				return err
			}
			if w != nil {
				b.workloads = append(b.workloads, w)
			}
		}
		return nil
	}
	return read(file.Docs)
}

// itemsOf returns the elements of a list.
func itemsOf(doc *manifest.Document, meta manifest.Meta, sure bool) ([]*manifest.Document, bool, error) {
	if sure && !strings.HasSuffix(meta.Kind, "List") || !bytes.Contains(doc.Raw(), []byte("items")) {
		return nil, false, nil
	}
	return doc.Items()
}
