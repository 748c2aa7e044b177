// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"cmp"
	"path"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/render"
)

// PlaceFindings sets a file and line on findings about objects without a known source file, such as those generated
// by a chart. These are the file and line in the first place that the pipeline publishes to: BRANCH:PATH on a
// branch, PATH in an artifact. A finding about an update has the file and line of the object in the source instead,
// where these are known: there the change is taken back. Results are changed in place.
func PlaceFindings(spec v1alpha1.RenderPipelineSpec, results result.Results, objects []render.Object, texts *Texts) {
	var p *placer
	for i := range results {
		r := &results[i]
		if r.ResourceRef == nil || r.Severity == result.Info || r.File != nil && r.File.Path != "" {
			continue
		}
		if p == nil {
			p = newPlacer(spec, objects, texts)
		}
		field := ""
		if r.Field != nil {
			field = r.Field.Path
		}
		file := p.positionOfField(*r.ResourceRef, workload.ParseField(field))
		if strings.HasPrefix(r.Tags[result.TagCode], updateCodes) {
			file = cmp.Or(p.sourceOf(*r.ResourceRef), file)
		}
		if file != nil {
			r.File = file
		}
	}
}

// updateCodes begins the codes of findings about updates.
const updateCodes = "update-"

// placer knows what the files of a result are.
type placer struct {
	prefix  string
	layout  v1alpha1.Layout
	style   v1alpha1.Style
	encrypt bool
	objects []render.Object
	texts   *Texts
	index   map[result.ResourceRef]int
	docs    map[int]placed
	// before is how many lines are in front of each object of a single file; -1 where that is not known.
	before []int
}

// placed is an object as it is published; doc is nil where its lines are not known.
type placed struct {
	file string
	doc  *manifest.Document
}

func newPlacer(spec v1alpha1.RenderPipelineSpec, objects []render.Object, texts *Texts) *placer {
	p := &placer{texts: texts, layout: v1alpha1.LayoutObjects, style: v1alpha1.StyleCanonical, objects: objects,
		index: map[result.ResourceRef]int{}, docs: map[int]placed{}}
	if len(spec.Publish) > 0 {
		to := spec.Publish[0]
		p.layout, p.style = to.Format()
		p.encrypt = to.Secrets == v1alpha1.SecretsEncrypt
		if dir := to.Directory(); dir != "" && dir != "." {
			p.prefix = dir + "/"
		}
		if to.Git != nil {
			p.prefix = to.Git.Branch + ":" + p.prefix
		}
	}
	for i, o := range objects {
		ref := o.Ref()
		if _, ok := p.index[ref]; !ok {
			p.index[ref] = i
		}
	}
	return p
}

// sourceOf returns the file and line of an object in the source; nil if they are not known.
func (p *placer) sourceOf(ref result.ResourceRef) *result.File {
	i, ok := p.index[ref]
	if !ok || p.objects[i].Source.Path == "" {
		return nil
	}
	return &result.File{Path: p.objects[i].Source.Path, Line: p.objects[i].Source.Line}
}

// positionOfField returns the position of a field of an object, or of its closest parent; nil if no part of it is
// published.
func (p *placer) positionOfField(ref result.ResourceRef, at []any) *result.File {
	i, ok := p.index[ref]
	if !ok {
		return nil
	}
	one, ok := p.docs[i]
	if !ok {
		one = p.readPublishedObject(i)
		p.docs[i] = one
	}
	file := &result.File{Path: p.prefix + one.file}
	if one.doc == nil {
		return file
	}
	file.Line = one.doc.Line()
	for ; len(at) > 0; at = at[:len(at)-1] {
		if line, _, ok := one.doc.Locate(at...); ok {
			file.Line = line
			break
		}
	}
	if p.layout == v1alpha1.LayoutSingle {
		before := p.linesBefore(i)
		if before < 0 {
			file.Line = 0
			return file
		}
		file.Index, file.Line = i, file.Line+before
	}
	return file
}

// readPublishedObject returns an object as it is published. Where its values are encrypted its lines are others.
func (p *placer) readPublishedObject(i int) placed {
	text, err := p.texts.textOfObject(p.objects[i], p.style)
	if err != nil {
		return placed{file: SingleFile}
	}
	one := placed{file: path.Clean(fileName(p.objects[i], text))}
	if p.layout == v1alpha1.LayoutSingle {
		one.file = SingleFile
	}
	if p.encrypt && hasReadableValues(p.objects[i]) {
		return one
	}
	if file, err := manifest.Parse("", text); err == nil && len(file.Docs) > 0 {
		one.doc = file.Docs[0]
	}
	return one
}

// linesBefore returns how many lines of a single file are in front of an object, -1 where that is not known.
func (p *placer) linesBefore(i int) int {
	if p.before == nil {
		p.before = make([]int, len(p.objects))
		lines := 0
		for n, o := range p.objects {
			p.before[n] = lines
			text, err := p.texts.textOfObject(o, p.style)
			if err != nil || lines < 0 || p.encrypt && hasReadableValues(o) {
				lines = -1
				continue
			}
			lines += bytes.Count(text, []byte("\n")) + 1 // the line between two
		}
	}
	return p.before[i]
}
