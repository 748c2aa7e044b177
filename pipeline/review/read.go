// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"bytes"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/review/diff/group"
	"github.com/prerig/prerig/pipeline/review/injection"
)

// review is a change as it was read.
type review struct {
	change   Change
	registry *workload.Registry
	// objects are those that differ; unchanged holds others that affect them, and same is the number of unchanged
	// ones.
	objects, unchanged []*object
	// files hold no objects, or cannot be read, and differ.
	files []*group.Unit
	same  int
	// all reports whether the content is unlimited.
	all bool
}

// object is one object on both sides.
type object struct {
	pipeline      string
	before, after *side
}

// side is an object before or after.
type side struct {
	path  string
	meta  manifest.Meta
	text  []byte
	value map[string]any
	// bare is the object without its injection, with bareText; nil where all of it is the injection's.
	bare     map[string]any
	bareText []byte
}

// newerExistingSide returns the existing side, preferring the newer one.
func (o *object) newerExistingSide() *side {
	if o.after != nil {
		return o.after
	}
	return o.before
}

func (o *object) changeKind() string {
	switch {
	case o.before == nil:
		return group.Added
	case o.after == nil:
		return group.Deleted
	}
	return group.Modified
}

func (o *object) displayName() string {
	m := o.newerExistingSide().meta
	if m.Namespace == "" {
		return m.Kind + " " + m.Name
	}
	return m.Kind + " " + m.Namespace + "/" + m.Name
}

// reader reads the files of pipelines.
type reader struct {
	remover *injection.Remover
	review  *review
}

func readReviewChange(ctx context.Context, c Change) (*review, error) {
	remover, err := injection.NewRemover()
	if err != nil {
		return nil, err
	}
	registry, err := workload.NewRegistry(nil)
	if err != nil {
		return nil, err
	}
	r := &reader{remover: remover, review: &review{change: c, registry: registry}}
	for i := range c.Pipelines {
		if err := r.readPipeline(ctx, &c.Pipelines[i]); err != nil {
			return nil, err
		}
	}
	return r.review, nil
}

// readPipeline pairs the objects of both sides. What is no object is compared as a file.
func (r *reader) readPipeline(ctx context.Context, p *Pipeline) error {
	before, after := maps.Clone(p.Before), maps.Clone(p.After)
	for _, name := range sortedNames(before) { // what is equal is neither read twice nor taken apart
		if text, ok := after[name]; ok && bytes.Equal(text, before[name]) {
			r.review.countUnchangedObjects(p, name, text)
			delete(before, name)
			delete(after, name)
		}
	}
	old, oldFiles, err := r.readFiles(ctx, before)
	if err != nil {
		return err
	}
	now, nowFiles, err := r.readFiles(ctx, after)
	if err != nil {
		return err
	}
	for _, id := range sortedKeys(old, now) {
		o := &object{pipeline: p.Name, before: old[id], after: now[id]}
		if o.before != nil && o.after != nil && bytes.Equal(o.before.text, o.after.text) {
			r.review.unchanged, r.review.same = append(r.review.unchanged, o), r.review.same+1
			continue
		}
		r.review.objects = append(r.review.objects, o)
	}
	units, same := group.Compare(oldFiles, nowFiles)
	for _, u := range units {
		u.Pipeline = p.Name
	}
	r.review.files, r.review.same = append(r.review.files, units...), r.review.same+same
	return nil
}

// countUnchangedObjects counts the objects of an unchanged file. Only autoscalers affect other objects.
func (r *review) countUnchangedObjects(p *Pipeline, name string, text []byte) {
	file, err := manifest.Parse(name, text)
	if err != nil {
		r.same++
		return
	}
	count := 0
	for _, doc := range file.Docs {
		if !doc.Empty() {
			count++
		}
	}
	r.same += max(1, count)
	if !bytes.Contains(text, []byte("HorizontalPodAutoscaler")) && !bytes.Contains(text, []byte("ScaledObject")) {
		return
	}
	found, _ := splitFile(name, text)
	for _, s := range found {
		r.unchanged = append(r.unchanged, &object{pipeline: p.Name, before: s, after: s})
	}
}

// readFiles returns the objects of files by their identity, and the files with any other content.
func (r *reader) readFiles(ctx context.Context, files map[string][]byte) (objects map[string]*side, others map[string][]byte, err error) {
	objects, others = map[string]*side{}, map[string][]byte{}
	var all []*side
	var docs []*manifest.Document
	for _, name := range sortedNames(files) {
		found, ok := splitFile(name, files[name])
		ok = ok && !slices.ContainsFunc(found, func(s *side) bool { return objects[s.versionlessObjectID()] != nil })
		if !ok {
			others[name] = files[name]
			continue
		}
		for _, s := range found {
			objects[s.versionlessObjectID()] = s
			parsed, err := manifest.Parse(name, s.text)
			if err != nil || len(parsed.Docs) != 1 {
				s.bare, s.bareText = s.value, s.text
				continue
			}
			all, docs = append(all, s), append(docs, parsed.Docs[0])
		}
	}
	if len(docs) == 0 {
		return objects, others, nil
	}
	without, err := r.remover.Remove(ctx, docs)
	if err != nil {
		return nil, nil, err
	}
	for i, s := range all {
		s.bare, s.bareText = s.value, s.text
		doc := without[i]
		switch {
		case doc == docs[i]:
		case doc.Empty():
			s.bare, s.bareText = nil, nil
		default:
			if value, err := doc.Object(); err == nil {
				s.bare, s.bareText = value, doc.Raw()
			}
		}
	}
	return objects, others, nil
}

// versionlessObjectID names an object, whatever the version of its kind.
func (s *side) versionlessObjectID() string {
	apiGroup, _, ok := strings.Cut(s.meta.APIVersion, "/")
	if !ok {
		apiGroup = ""
	}
	return strings.Join([]string{apiGroup, s.meta.Kind, s.meta.Namespace, s.meta.Name}, "\x00")
}

// splitFile returns the objects of a file, or false if a part of it is not an object, or an object occurs twice.
func splitFile(name string, text []byte) (out []*side, ok bool) {
	file, err := manifest.Parse(name, text)
	if err != nil {
		return nil, false
	}
	seen := map[string]bool{}
	for _, doc := range file.Docs {
		if doc.Empty() {
			continue
		}
		value, err := doc.Object()
		if err != nil {
			return nil, false
		}
		s := &side{path: name, value: value, text: bytes.TrimPrefix(doc.Raw(), []byte("---\n")), meta: metaOf(value)}
		if s.meta.Kind == "" || s.meta.Name == "" || value["items"] != nil || seen[s.versionlessObjectID()] {
			return nil, false
		}
		seen[s.versionlessObjectID()] = true
		s.bare, s.bareText = value, s.text
		out = append(out, s)
	}
	return out, len(out) > 0
}

func metaOf(value map[string]any) (m manifest.Meta) {
	m.APIVersion, _ = value["apiVersion"].(string)
	m.Kind, _ = value["kind"].(string)
	metadata, _ := value["metadata"].(map[string]any)
	m.Name, _ = metadata["name"].(string)
	m.Namespace, _ = metadata["namespace"].(string)
	return m
}

func sortedNames(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }

func sortedKeys(a, b map[string]*side) []string {
	out := slices.Collect(maps.Keys(a))
	for key := range b {
		if a[key] == nil {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// isEncrypted reports whether SOPS or Sealed Secrets has encrypted the object on either side.
func (o *object) isEncrypted() bool {
	for _, s := range []*side{o.before, o.after} {
		if s == nil {
			continue
		}
		if sops, _ := s.value["sops"].(map[string]any); sops["mac"] != nil || s.meta.Kind == "SealedSecret" {
			return true
		}
	}
	return false
}

// sourceChange returns what the source changed in an object, or nil for no change.
func (o *object) sourceChange() *group.Unit {
	before, after := o.before, o.after
	var old, now []byte
	if before != nil && before.bare != nil {
		old = before.bareText
	}
	if after != nil && after.bare != nil {
		now = after.bareText
	}
	if old == nil && now == nil || old != nil && now != nil && (bytes.Equal(old, now) || o.onlyInjectionDiffers()) {
		return nil
	}
	return o.groupingUnit(old, now, nil)
}

// onlyInjectionDiffers reports whether the objects without their injection mean the same, in whatever writing, while
// one at least has an injection.
func (o *object) onlyInjectionDiffers() bool {
	injected := !bytes.Equal(o.before.text, o.before.bareText) || !bytes.Equal(o.after.text, o.after.bareText)
	return injected && reflect.DeepEqual(o.before.bare, o.after.bare)
}

// injectionChange returns what the injection changed in an object, or nil for no change. Its part of a new
// or deleted object is not a change of its own, unless the whole object is the injection's.
func (o *object) injectionChange() *group.Unit {
	if o.before == nil || o.after == nil {
		if s := o.newerExistingSide(); s.bare != nil {
			return nil
		}
		if o.before == nil {
			return o.groupingUnit(nil, o.after.text, nil)
		}
		return o.groupingUnit(o.before.text, nil, nil)
	}
	if bytes.Equal(o.before.text, o.before.bareText) && bytes.Equal(o.after.text, o.after.bareText) {
		return nil
	}
	if o.onlyInjectionDiffers() {
		return o.groupingUnit(o.before.text, o.after.text, nil)
	}
	old, now := lineSet(o.before.bareText, o.before.text), lineSet(o.after.bareText, o.after.text)
	return o.groupingUnit(o.before.text, o.after.text, func(sign byte, number int) bool {
		if sign == '-' {
			return old[number]
		}
		return now[number]
	})
}

func (o *object) groupingUnit(old, now []byte, only func(byte, int) bool) *group.Unit {
	u := group.New(o.newerExistingSide().path, o.newerExistingSide().meta, old, now, only)
	if u != nil {
		u.Pipeline = o.pipeline
	}
	return u
}

func lineSet(before, after []byte) map[int]bool {
	out := map[int]bool{}
	for _, n := range injection.AddedLines(before, after) {
		out[n] = true
	}
	return out
}
