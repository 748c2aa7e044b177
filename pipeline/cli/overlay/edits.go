// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package overlay

import (
	"path/filepath"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// edit is one change that a kustomization makes, or a value that it reads, by a path.
type edit struct {
	target target
	// what names it in messages, such as "the JSON patch".
	what string
	file string
	line int

	// path is that of a JSON patch, a replacement or a variable; with reads the value at the path is only read.
	path  []string
	reads bool
	// merge is a strategic merge patch, of the text in. knowsKinds reports whether kustomize may know the merge keys of
	// custom kinds.
	merge      map[string]any
	in         text
	knowsKinds bool
}

// edits returns what a kustomization changes in its resources.
func (k *kustomization) edits() []edit {
	r := &editReader{dir: k.dir, name: k.name, knowsKinds: k.obj["openapi"] != nil || k.obj["crds"] != nil}
	r.patches(k.text, "patches")
	r.patches(k.text, "patchesJson6902")
	r.merges(k.text, "patchesStrategicMerge")
	r.replacements(k.text, "replacements")
	r.variables(k.text)
	r.transformers(k.text)
	return r.out
}

// editReader collects the edits of one kustomization.
type editReader struct {
	dir, name  string // the directory, and how messages have it
	knowsKinds bool
	out        []edit
}

// load returns the documents of a file that the kustomization names.
func (r *editReader) load(name string) []text {
	display := filepath.ToSlash(filepath.Join(r.name, name))
	return readText(filepath.Join(r.dir, name), display)
}

// patches reads a list of patches with the fields path or patch, and target.
func (r *editReader) patches(from text, field string) {
	list, _ := from.obj[field].([]any)
	for i, one := range list {
		p, _ := one.(map[string]any)
		r.patch(from, p, field, i)
	}
}

// patch reads one patch, whose place in from is at. jsonOp is the name of the field in a PatchJson6902Transformer.
func (r *editReader) patch(from text, p map[string]any, at ...any) {
	var docs []text
	for _, field := range []string{"patch", "jsonOp"} {
		if content, ok := p[field].(string); ok && strings.TrimSpace(content) != "" {
			docs = append(docs, from.inline(content, append(at[:len(at):len(at)], field)...)...)
		}
	}
	if name, ok := p["path"].(string); ok && name != "" {
		docs = append(docs, r.load(name)...)
	}
	selected := p["target"] != nil
	to := newTarget(p["target"])
	for _, d := range docs {
		switch {
		case d.list != nil && selected:
			r.operations(d, to)
		case d.obj != nil && selected:
			r.merge(d, to)
		case d.obj != nil:
			r.merge(d, targetOf(d.obj))
		}
	}
}

func (r *editReader) add(e edit) { r.out = append(r.out, e) }

// merge adds a strategic merge patch.
func (r *editReader) merge(d text, to target) {
	r.add(edit{
		target: to, what: "the patch", file: d.file, line: d.line(), merge: d.obj, in: d, knowsKinds: r.knowsKinds,
	})
}

// merges reads a list of strategic merge patches, which are files or inline.
func (r *editReader) merges(from text, field string) {
	for i, one := range texts(from.obj[field]) {
		docs := r.load(one)
		if strings.Contains(one, "\n") {
			docs = from.inline(one, field, i)
		}
		r.mergeDocs(docs)
	}
}

func (r *editReader) mergeDocs(docs []text) {
	for _, d := range docs {
		if d.obj != nil {
			r.merge(d, targetOf(d.obj))
		}
	}
}

// operations reads the operations of a JSON patch.
func (r *editReader) operations(d text, to target) {
	for i, one := range d.list {
		op, _ := one.(map[string]any)
		for _, field := range []string{"path", "from"} {
			pointer, ok := op[field].(string)
			if !ok || !strings.HasPrefix(pointer, "/") || field == "from" && op["op"] != "move" && op["op"] != "copy" {
				continue
			}
			e := edit{target: to, what: "the JSON patch", file: d.file, line: d.line(i, field)}
			e.reads = op["op"] == "test" || op["op"] == "copy" && field == "from"
			for token := range strings.SplitSeq(pointer[1:], "/") {
				e.path = append(e.path, strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~"))
			}
			r.add(e)
		}
	}
}

// replacements reads a list of replacements, each in place or in a file, which may have several.
func (r *editReader) replacements(from text, field string) {
	list, _ := from.obj[field].([]any)
	for i, one := range list {
		m, _ := one.(map[string]any)
		r.replacement(from, m, field, i)
		name, ok := m["path"].(string)
		if !ok {
			continue
		}
		for _, d := range r.load(name) {
			if d.obj != nil {
				r.replacement(d, d.obj)
			}
			for j, one := range d.list {
				m, _ := one.(map[string]any)
				r.replacement(d, m, j)
			}
		}
	}
}

func (r *editReader) replacement(from text, m map[string]any, at ...any) {
	within := func(more ...any) []any { return append(at[:len(at):len(at)], more...) }
	if source, ok := m["source"].(map[string]any); ok {
		if path, ok := source["fieldPath"].(string); ok {
			r.add(edit{target: exactTarget(source), what: "the source of the replacement", file: from.file,
				line: from.line(within("source", "fieldPath")...), path: splitFieldPath(path), reads: true})
		}
	}
	targets, _ := m["targets"].([]any)
	for i, one := range targets {
		t, _ := one.(map[string]any)
		to := newTarget(t["select"])
		rejected, _ := t["reject"].([]any)
		for _, one := range rejected {
			to.rejects = append(to.rejects, newTarget(one))
		}
		for j, path := range texts(t["fieldPaths"]) {
			line := from.line(within("targets", i, "fieldPaths", j)...)
			r.add(edit{target: to, what: "the replacement", file: from.file, line: line, path: splitFieldPath(path)})
		}
	}
}

// position is how variables write the position in a list: containers[0].
var position = lazyregexp.New(`\[(\d+)\]`)

// variables reads vars, which read a field of an object.
func (r *editReader) variables(from text) {
	list, _ := from.obj["vars"].([]any)
	for i, one := range list {
		m, _ := one.(map[string]any)
		object, _ := m["objref"].(map[string]any)
		field, _ := m["fieldref"].(map[string]any)
		if path, ok := field["fieldPath"].(string); ok && object != nil {
			path = position.ReplaceAllString(path, ".$1")
			to := targetOf(map[string]any{
				"apiVersion": object["apiVersion"], "kind": object["kind"],
				"metadata": map[string]any{"name": object["name"], "namespace": object["namespace"]},
			})
			line := from.line("vars", i, "fieldref", "fieldPath")
			r.add(edit{target: to, what: "the variable", file: from.file, line: line, path: splitFieldPath(path), reads: true})
		}
	}
}

// transformers reads the built-in transformers that patch, in files or inline.
func (r *editReader) transformers(from text) {
	for i, one := range texts(from.obj["transformers"]) {
		docs := r.load(one)
		if strings.Contains(one, "\n") {
			docs = from.inline(one, "transformers", i)
		}
		for _, d := range docs {
			switch d.obj["kind"] {
			case "PatchTransformer", "PatchJson6902Transformer":
				r.patch(d, d.obj)
			case "PatchStrategicMergeTransformer":
				r.merges(d, "paths")
				if content, ok := d.obj["patches"].(string); ok {
					r.mergeDocs(d.inline(content, "patches"))
				}
			case "ReplacementTransformer":
				r.replacements(d, "replacements")
			}
		}
	}
}

// splitFieldPath returns the parts of the path of a replacement. They are separated by dots, except in brackets and
// after a backslash (source: SmarterPathSplitter of sigs.k8s.io/kustomize/kyaml/utils v0.21.2).
func splitFieldPath(path string) []string {
	var out []string
	var part strings.Builder
	depth := 0
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c == '\\' && i+1 < len(path):
			i++
			part.WriteByte(path[i])
			continue
		case c == '[':
			depth++
		case c == ']':
			depth--
		case c == '.' && depth == 0:
			if part.Len() > 0 {
				out = append(out, part.String())
			}
			part.Reset()
			continue
		}
		part.WriteByte(c)
	}
	if part.Len() > 0 {
		out = append(out, part.String())
	}
	return out
}
