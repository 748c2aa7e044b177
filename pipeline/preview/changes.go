// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"fmt"
	"regexp"
	"sort"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/diff"
)

// Comparison is what would change, over all pipelines.
type Comparison struct {
	// Pipelines has one entry for each that was compared.
	Pipelines []PipelineChange `json:"pipelines"`
	// Changes are the differences, each once, the most common first.
	Changes []Change `json:"changes"`
}

// PipelineChange counts what would change of one pipeline.
type PipelineChange struct {
	Pipeline string `json:"pipeline"`
	Revision string `json:"revision,omitempty"`
	Added    int    `json:"added,omitempty"`
	Modified int    `json:"modified,omitempty"`
	Deleted  int    `json:"deleted,omitempty"`
	// Error says why it could not be compared, Gate why the result would not be published.
	Error string `json:"error,omitempty"`
	Gate  string `json:"gate,omitempty"`
}

// Change is a difference that one or more objects have in common.
type Change struct {
	// Kind is added, modified or deleted, of the files.
	Kind string `json:"kind"`
	// Hunks are the differences without line numbers: lines that begin with "-", "+" or a blank. The object's own name stands
	// as <name>.
	Hunks []string `json:"hunks"`
	// Objects that it is the same for.
	Objects []Object `json:"objects"`
}

// Object is what a change is about.
type Object struct {
	Pipeline string `json:"pipeline"`
	// Path of the file, relative to the pipeline's.
	Path string `json:"path"`
	// Name is "Kind namespace/name" where the file holds one object, else the path.
	Name string `json:"name"`
}

// Empty says whether nothing would change.
func (c *Comparison) Empty() bool { return len(c.Changes) == 0 }

// Failed says whether any pipeline could not be compared, or would be refused.
func (c *Comparison) Failed() bool {
	for _, p := range c.Pipelines {
		if p.Error != "" || p.Gate != "" {
			return true
		}
	}
	return false
}

// comparer collects the hunks of all files.
type comparer struct {
	hunks map[string]*hunk
	order []string
}

// hunk is one difference and where it occurs.
type hunk struct {
	kind    string
	text    string // as it is in the first file
	first   int    // its place there, to keep hunks in order
	objects []Object
}

// Compare finds what differs between what is published and what was rendered. published gives nil for what could not be
// read, with an error.
func Compare(results []Result, published func(Result) (map[string][]byte, error)) *Comparison {
	c := &Comparison{Pipelines: []PipelineChange{}, Changes: []Change{}}
	all := &comparer{hunks: map[string]*hunk{}}
	for _, r := range results {
		one := PipelineChange{Pipeline: r.Entry.Key}
		err := r.Err
		var before map[string][]byte
		if err == nil {
			before, err = published(r)
		}
		if r.Snapshot != nil {
			one.Revision = r.Snapshot.Revision
		}
		if err != nil {
			one.Error = err.Error()
		} else {
			if r.Gate != nil {
				one.Gate = r.Gate.Error()
			}
			all.pipeline(&one, before, r.Files)
		}
		c.Pipelines = append(c.Pipelines, one)
	}
	c.Changes = all.changes()
	return c
}

func (c *comparer) pipeline(p *PipelineChange, before, after map[string][]byte) {
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	sorted := make([]string, 0, len(names))
	for name := range names {
		sorted = append(sorted, name)
	}
	sort.Strings(sorted)
	for _, name := range sorted {
		old, had := before[name]
		now, has := after[name]
		if had && has && bytes.Equal(old, now) {
			continue
		}
		kind := "modified"
		switch {
		case !had:
			kind = "added"
			p.Added++
		case !has:
			kind = "deleted"
			p.Deleted++
		default:
			p.Modified++
		}
		c.file(p.Pipeline, name, kind, old, now)
	}
}

// file takes the hunks of one file in.
func (c *comparer) file(pipeline, name, kind string, old, now []byte) {
	object, short := identify(name, old, now)
	object.Pipeline = pipeline
	for i, text := range split(string(diff.Unified(name, []diff.Chunk{{Old: old, New: now}}))) {
		shown := anonymous(text, short)
		key := kind + "\x00" + essence(shown)
		h := c.hunks[key]
		if h == nil {
			h = &hunk{kind: kind, text: shown, first: i}
			c.hunks[key] = h
			c.order = append(c.order, key)
		}
		if n := len(h.objects); n == 0 || h.objects[n-1] != object {
			h.objects = append(h.objects, object)
		}
	}
}

// split takes a unified diff apart at its hunks, without the line numbers.
func split(patch string) []string {
	var out []string
	for line := range strings.Lines(patch) {
		if strings.HasPrefix(line, "@@ ") {
			out = append(out, "")
			continue
		}
		if len(out) > 0 {
			out[len(out)-1] += line
		}
	}
	return out
}

// essence is what makes two hunks the same: the lines that change, not those around them.
func essence(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, " ") {
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}

// identify names the object in a file.
func identify(name string, old, now []byte) (Object, string) {
	o := Object{Path: name, Name: name}
	text := now
	if len(text) == 0 {
		text = old
	}
	file, err := manifest.Parse(name, text)
	if err != nil || len(file.Docs) != 1 {
		return o, ""
	}
	meta, ok := file.Docs[0].Peek()
	if !ok || meta.Name == "" {
		return o, ""
	}
	full := meta.Name
	if meta.Namespace != "" {
		full = meta.Namespace + "/" + meta.Name
	}
	o.Name = meta.Kind + " " + full
	return o, meta.Name
}

// anonymous puts <name> in the place of the object's own name, so that a change that mentions it is the same for others.
func anonymous(text, name string) string {
	if len(name) < 2 {
		return text
	}
	word, err := regexp.Compile(`(^|[^A-Za-z0-9.-])` + regexp.QuoteMeta(name) + `($|[^A-Za-z0-9.-])`)
	if err != nil {
		return text
	}
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			line = line[:1] + word.ReplaceAllString(line[1:], "${1}<name>${2}")
		}
		out.WriteString(line)
	}
	return out.String()
}

// changes puts hunks together that the same objects have.
func (c *comparer) changes() []Change {
	byObjects := map[string]int{}
	out := []Change{}
	for _, key := range c.order {
		h := c.hunks[key]
		id := h.kind + fmt.Sprint(h.objects)
		i, ok := byObjects[id]
		if !ok {
			i = len(out)
			byObjects[id] = i
			out = append(out, Change{Kind: h.kind, Objects: h.objects})
		}
		out[i].Hunks = append(out[i].Hunks, h.text)
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i].Objects) > len(out[j].Objects) })
	return out
}
