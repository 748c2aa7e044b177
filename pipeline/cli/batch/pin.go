// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/pin"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// Pinned is the action of a workload whose images have the digests of a lock.
const Pinned fn.Action = "pinned"

// pinner works on documents without any policy.
type pinner struct {
	registry *workload.Registry
	work     func(pod map[string]any) (map[string]any, result.Results)
	report   *fn.Report
}

// Pin writes the digests of a lock into all containers of the workloads among the files, and changes no other
// field: an image in the lock gets its digest, also if it has a different one. Errors are among the results of the
// report; policies and injections are ignored.
func (b *Batch) Pin(lock *pin.Lock, missing pin.OnMissing) (*fn.Report, error) {
	return b.forEachPod(func(pod map[string]any) (map[string]any, result.Results) { return pin.Relock(pod, lock, missing) })
}

// Images returns the current images of all containers of the workloads among the files, sorted and without
// duplicates, with a report of the documents that could not be read.
func (b *Batch) Images() ([]string, *fn.Report, error) {
	var out []string
	report, err := b.forEachPod(func(pod map[string]any) (map[string]any, result.Results) {
		for _, image := range pin.Images(pod) {
			out = append(out, image)
		}
		return pod, nil
	})
	slices.Sort(out)
	return slices.Compact(out), report, err
}

// forEachPod calls work for the pod of every pod template, and keeps the documents that it changes.
func (b *Batch) forEachPod(work func(map[string]any) (map[string]any, result.Results)) (*fn.Report, error) {
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, fmt.Errorf("preparing to read workloads: %w", err)
	}
	p := &pinner{registry: registry, work: work, report: &fn.Report{Results: slices.Clone(b.problems)}}
	for _, f := range b.Files {
		f.after = slices.Clone(f.docs)
		for i, d := range f.docs {
			if f.idle[i] {
				continue
			}
			at := fn.Item{Doc: d, Path: f.Input.Path, Index: i}
			after, err := p.pinDocument(at)
			if err != nil {
				p.report.Results = append(p.report.Results,
					result.Result{Severity: result.Error, Message: err.Error(), File: fileOf(at)})
				continue
			}
			f.after[i] = after
		}
	}
	return p.report, nil
}

// pinDocument returns a document with its pods pinned, or the document itself if they are unchanged.
func (p *pinner) pinDocument(at fn.Item) (*manifest.Document, error) {
	if at.Doc.Empty() {
		return at.Doc, nil
	}
	elements, isList, err := at.Doc.Items()
	if err == nil && isList {
		return p.pinList(at, elements)
	}
	if meta, sure := at.Doc.Peek(); sure {
		if _, known := p.registry.Lookup(meta.APIVersion, meta.Kind); !known {
			return at.Doc, nil
		}
	}
	obj, err := at.Doc.Object()
	if err != nil {
		return nil, err
	}
	templates, err := p.registry.Templates(obj)
	if errors.As(err, new(*workload.ElsewhereError)) || err == nil && len(templates) == 0 {
		return at.Doc, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", at.Doc, err)
	}
	ref := result.RefTo(obj)
	wanted := obj
	for _, t := range templates {
		pod, rs := p.work(t.Pod)
		for _, r := range rs {
			r.ResourceRef, r.File = &ref, fileOf(at)
			if r.Field != nil && t.Field != "" {
				r.Field.Path = t.Field + "." + r.Field.Path
			}
			p.report.Results = append(p.report.Results, r)
		}
		wanted = t.Write(wanted, pod)
	}
	after, err := at.Doc.With(wanted)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", at.Doc, err)
	}
	o := fn.Outcome{Ref: ref, File: *fileOf(at), Action: fn.Skipped}
	if !bytes.Equal(after.Raw(), at.Doc.Raw()) {
		o.Action, o.Changed = Pinned, true
	}
	p.report.Outcomes = append(p.report.Outcomes, o)
	return after, nil
}

// pinList is pinDocument for a list of objects.
func (p *pinner) pinList(at fn.Item, elements []*manifest.Document) (*manifest.Document, error) {
	changed := false
	after := make([]*manifest.Document, len(elements))
	for i, e := range elements {
		var err error
		if after[i], err = p.pinDocument(fn.Item{Doc: e, Path: at.Path, Index: at.Index}); err != nil {
			return nil, err
		}
		changed = changed || after[i] != e
	}
	if !changed {
		return at.Doc, nil
	}
	return at.Doc.WithItems(after)
}

// fileOf returns the location of a document.
func fileOf(item fn.Item) *result.File {
	return &result.File{Path: item.Path, Index: item.Index, Line: item.Doc.Line()}
}
