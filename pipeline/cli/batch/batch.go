// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package batch runs the injection over files: documents in, files out, in the same order and with every byte that the
// injection does not change. It reads and writes no file itself.
package batch

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"slices"
	"sync/atomic"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/overlay"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/source/content"
)

// Batch is what the files of one run hold.
type Batch struct {
	// Files are those that are worked on.
	Files []*File

	// Progress, where it is set, is called as documents are settled, with about how many of all are. Several goroutines
	// may call it.
	Progress func(done, total int)

	// Locks are what the injector reads beside the files: ImageLocks that the policy names, and constraints of a
	// cluster.
	Locks []fn.Item

	beside   []files.Input // kustomizations and their patches
	passed   []content.Skipped
	problems result.Results
	repeated result.Results // warnings about repeated keys in streams
	// leftovers are temporary files of runs that were killed.
	leftovers []string

	index *content.Index
}

// File is one file with its documents, before and after.
type File struct {
	Input files.Input

	docs  []*manifest.Document
	idle  []bool // documents that are not worked on
	after []*manifest.Document
	added []*manifest.Document
	// changes are what documents have become, by their indexes in items, which is -1 for those that are not worked on.
	// They go before what is in after.
	changes *manifest.Changes
	items   []int
	// incomplete reports whether a document cannot be read. The others are processed, and the file is not written
	// to the output.
	incomplete bool
}

func newFile(in files.Input, docs []*manifest.Document) *File {
	return &File{Input: in, docs: docs, idle: make([]bool, len(docs)), after: docs}
}

// Beside are the files that belong to the manifests around them without being worked on: kustomizations and their
// patches. They are read below directories only.
func (b *Batch) Beside() []files.Input { return b.beside }

// Leftovers are temporary files beside the inputs that runs which were killed may have left behind; see files.Clean.
func (b *Batch) Leftovers() []string { return b.leftovers }

// Problems returns the read errors. They are among the results of Run.
func (b *Batch) Problems() result.Results { return b.problems }

// Items are the documents that are worked on, in the order of the files.
func (b *Batch) Items() []fn.Item {
	var items []fn.Item
	for _, f := range b.Files {
		for i, d := range f.docs {
			if !f.idle[i] {
				items = append(items, fn.Item{Doc: d, Path: f.Input.Path, Index: i})
			}
		}
	}
	return items
}

// ItemsAfter returns the documents of Items as the last Run left them.
func (b *Batch) ItemsAfter() []fn.Item {
	items := b.Items()
	at := 0
	for _, f := range b.Files {
		for i := range f.docs {
			if !f.idle[i] {
				items[at].Doc = f.resultDocument(i)
				at++
			}
		}
	}
	return items
}

// Incomplete reports whether a document of the file cannot be read. Such a file is left out of streams: the documents
// that can be read would look like all of it.
func (f *File) Incomplete() bool { return f.incomplete }

// IsWhole reports whether every document of the file can be read, also those that are not worked on.
func (f *File) IsWhole() bool {
	return !f.incomplete && !slices.ContainsFunc(f.docs, func(d *manifest.Document) bool { return !isReadable(d) })
}

// Document is a document of a file.
type Document struct {
	// Before is the document as it was read, After as the last Run left it.
	Before, After *manifest.Document
	// Passed reports whether it is not worked on.
	Passed bool
}

// Documents are all documents of the file.
func (f *File) Documents() (out []Document) {
	for i, d := range f.docs {
		one := Document{Before: d, After: d, Passed: f.idle[i]}
		if !one.Passed {
			one.After = f.resultDocument(i)
		}
		out = append(out, one)
	}
	return out
}

// SetAside finds the unreadable documents among those that the report of a run has errors about, and excludes them
// from processing; the errors become problems of the batch. It reports whether it found any and the report has only
// such errors: a second Run then processes the rest. Most broken documents are found when they are read; this is
// about those that only the run decodes.
func (b *Batch) SetAside(report *fn.Report) bool {
	at := map[result.File]int{} // the first error about a document
	var broken result.Results
	for _, r := range report.Results {
		if r.Severity != result.Error || r.File == nil {
			continue
		}
		key := result.File{Path: r.File.Path, Index: r.File.Index}
		if _, ok := at[key]; !ok {
			at[key] = len(broken)
			broken = append(broken, r)
		}
	}
	found := false
	for _, f := range b.Files {
		for i, d := range f.docs {
			n, ok := at[result.File{Path: f.Input.Path, Index: i}]
			if !ok || f.idle[i] || isReadable(d) {
				continue
			}
			f.idle[i], f.incomplete, found = true, true, true
			b.problems = append(b.problems, broken[n])
		}
	}
	return found
}

// LeaveOut excludes the files of the results that are errors from the output, and returns their paths in order. rest
// reports whether other errors are left, which are not about a file.
func (b *Batch) LeaveOut(rs result.Results) (paths []string, rest bool) {
	for _, r := range rs {
		if r.Severity != result.Error {
			continue
		}
		path := r.Tags[overlay.TagInput]
		if path == "" && r.File != nil {
			path = r.File.Path
		}
		i := slices.IndexFunc(b.Files, func(f *File) bool { return f.Input.Path == path })
		if i >= 0 {
			b.Files[i].incomplete = true
		}
		// Without one of its policies, the other files would be written as if they needed no injection.
		rest = rest || path == "" || r.ResourceRef != nil && r.ResourceRef.Kind == v1alpha1.Kind
		if path != "" && !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths, rest
}

// isReadable reports whether a document can be decoded, and the elements of a list.
func isReadable(d *manifest.Document) bool {
	if _, err := d.Object(); err != nil {
		return false
	}
	elements, isList, err := d.Items()
	if err != nil {
		return false
	}
	return !isList || !slices.ContainsFunc(elements, func(e *manifest.Document) bool { return !isReadable(e) })
}

// Run makes the injector process the documents and keeps the results. The report is complete even if it has errors;
// the files must not be changed then. The documents are with the files, as ItemsAfter returns them, not in the
// report.
func (b *Batch) Run(ctx context.Context, in *fn.Injector) (*fn.Report, error) {
	items := b.Items()
	changes := manifest.NewChanges(len(items) + len(b.Locks))
	report, err := in.RunEach(ctx, append(items[:len(items):len(items)], b.Locks...),
		reportProgress(b.Progress, changes.Put, len(items)))
	if err != nil {
		return report, err
	}
	report.Results = append(slices.Clone(b.problems), report.Results...)
	at := 0
	for _, f := range b.Files {
		f.after, f.changes, f.items = slices.Clone(f.docs), changes, make([]int, len(f.docs))
		for i := range f.docs {
			f.items[i] = -1
			if !f.idle[i] {
				f.after[i], f.items[i] = report.Items[at].Doc, at
				at++
			}
		}
	}
	if n := lastOutput(b.Files); n >= 0 {
		b.Files[n].added = report.Added
	}
	report.Items = nil
	return report, nil
}

// reportProgress returns take with calls of progress, which may be nil. Items are settled about in their order, so
// that the last one counts for all before it.
func reportProgress(progress func(done, total int), take func(int, *manifest.Document), total int) func(int, *manifest.Document) {
	if progress == nil {
		return take
	}
	var last atomic.Int64
	return func(i int, d *manifest.Document) {
		take(i, d)
		for {
			before := last.Load()
			if int64(i) < before {
				return
			}
			if last.CompareAndSwap(before, int64(i)+1) {
				break
			}
		}
		progress(min(i+1, total), total)
	}
}

// lastOutput returns the index of the file that objects are appended to: the last one that is written to the
// output, but not one outside of the named directory. It is negative if none qualifies.
func lastOutput(all []*File) int {
	last := -1
	for i, f := range slices.Backward(all) {
		if f.incomplete {
			continue
		}
		if _, leaves := f.Input.Leaves(); !leaves {
			return i
		}
		last = max(last, i)
	}
	return last
}

// Bytes returns the file's content after the run: the input's own bytes if unchanged. Additional objects that
// sidecars require are at the end of the last file.
func (f *File) Bytes() []byte { return f.keptContent(func(*manifest.Document) bool { return true }) }

// Output returns the part of the file that is for a cluster: all documents except policies and image locks, which
// clusters do not know. ok is false if the file contains only these.
func (f *File) Output() (content []byte, ok bool) {
	keep, ok := f.keepsClusterDocuments()
	return f.keptContent(keep), ok
}

// keepsClusterDocuments reports of documents whether they go on to a cluster; ok is false where none does.
func (f *File) keepsClusterDocuments() (keep func(*manifest.Document) bool, ok bool) {
	isOurs := func(d *manifest.Document) bool { return isPolicy(d) || isLock(d) }
	if !slices.ContainsFunc(f.docs, isOurs) {
		return func(*manifest.Document) bool { return true }, true
	}
	ok = len(f.added) > 0 || slices.ContainsFunc(f.docs, func(d *manifest.Document) bool { return !d.Empty() && !isOurs(d) })
	return func(d *manifest.Document) bool { return !isOurs(d) }, ok
}

// resultDocument returns what a document has become.
func (f *File) resultDocument(i int) *manifest.Document {
	if f.changes == nil || f.items[i] < 0 {
		return f.after[i]
	}
	return f.changes.Or(f.items[i], f.after[i])
}

// keptContent returns the content after the run of the documents that are kept.
func (f *File) keptContent(keep func(before *manifest.Document) bool) []byte {
	var out bytes.Buffer
	_ = f.writeKeptDocuments(&out, keep) // writes to memory do not fail
	return out.Bytes()
}

// writeKeptDocuments writes the content after the run of the documents that are kept, one after the other.
func (f *File) writeKeptDocuments(w io.Writer, keep func(before *manifest.Document) bool) error {
	out := &streamWriter{w: bufio.NewWriterSize(w, 64<<10)}
	for i, before := range f.docs {
		switch {
		case !keep(before):
		case f.changes == nil || f.items[i] < 0:
			out.putString(f.after[i].Text())
		default:
			_ = f.changes.WriteText(out, f.items[i], f.after[i])
		}
	}
	for _, d := range f.added {
		out.putDocument(d.Raw())
	}
	return out.w.Flush()
}

// Changed reports whether the bytes differ from the input.
func (f *File) Changed() bool {
	if len(f.added) > 0 {
		return true
	}
	for i, before := range f.docs {
		if d := f.resultDocument(i); d != before && d.Text() != before.Text() {
			return true
		}
	}
	return false
}

// Policies are the names of the InjectionPolicies in the file. They are not worked on, as they hold no workload.
func (f *File) Policies() []string {
	var names []string
	for _, d := range f.docs {
		if isPolicy(d) {
			m, _ := d.Peek()
			names = append(names, m.Name)
		}
	}
	return names
}

// Diff returns the unified diff of the file, empty if it did not change.
func (f *File) Diff() []byte {
	chunks := make([]diff.Chunk, 0, len(f.docs)+1)
	for i, d := range f.docs {
		chunks = append(chunks, diff.Chunk{Old: d.Raw(), New: f.resultDocument(i).Raw()})
	}
	if len(f.added) > 0 {
		before := 0
		for i := range f.docs {
			before += len(f.resultDocument(i).Text())
		}
		chunks = append(chunks, diff.Chunk{New: f.Bytes()[before:]})
	}
	return diff.Unified(f.Input.Path, chunks)
}
