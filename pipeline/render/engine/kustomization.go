// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/konfig"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/reference"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// checkedTree is the tree as kustomize sees it: every kustomization that is read is checked, and its transformers that
// are Prerig's own function are put in a form that kustomize runs without a plugin.
type checkedTree struct {
	tree.Reader
	virtual map[string][]byte      // files that are not in the source
	names   map[string]string      // maps the names of virtual files and bases to what they represent
	linked  map[string]string      // files that are a kustomization by a link to them, to where the link is
	bases   map[string]render.Base // by their names
	sources []string               // directories of further sources
	charts  map[string]string      // entries of helmCharts by directory and name, to file and line
	schema  bool                   // one may name a schema
	// unrestricted reports whether files from anywhere in the tree may be loaded.
	unrestricted bool
	// leftOut are the entries that are left out as they cannot be loaded; nil has these be errors.
	leftOut *leftOut
	refused error // the first hard error: kustomize drops some on its way
	count   int
}

func newKustomizations(r tree.Reader, bases []render.Base) *checkedTree {
	k := &checkedTree{Reader: r, virtual: map[string][]byte{}, names: map[string]string{}, linked: map[string]string{}, charts: map[string]string{}, bases: map[string]render.Base{}}
	for _, base := range bases {
		k.bases[base.Name], k.names[base.Name] = base, base.String()
	}
	return k
}

// rememberError remembers an error that is more than a missing file.
func (k *checkedTree) rememberError(err error) error {
	if err != nil && k.refused == nil && !errors.Is(err, fs.ErrNotExist) {
		k.refused = err
	}
	return err
}

// Lookup implements tree.Reader.
func (k *checkedTree) Lookup(name string) (tree.Info, error) {
	at := render.CleanPath(name)
	if _, ok := k.virtual[at]; ok {
		return tree.Info{Path: at}, nil
	}
	if _, ok := k.virtual[path.Join(at, konfig.DefaultKustomizationFileName())]; ok {
		return tree.Info{Path: at, Dir: true}, nil
	}
	info, err := k.Reader.Lookup(name)
	if err == nil && !info.Dir && info.Path != at && isKustomization(at) {
		k.linked[info.Path] = at // kustomize reads where the link leads
	}
	return info, k.rememberError(err)
}

// isKustomization reports whether kustomize treats a file of this name as a kustomization.
func isKustomization(name string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(name))
}

// List implements tree.Reader.
func (k *checkedTree) List(name string) ([]tree.Info, error) {
	list, err := k.Reader.List(name)
	return list, k.rememberError(err)
}

// Read implements tree.Reader.
func (k *checkedTree) Read(name string) ([]byte, error) {
	at := render.CleanPath(name)
	if content, ok := k.virtual[at]; ok {
		return content, nil
	}
	if strings.Contains(at, virtualPrefix) {
		return nil, &fs.PathError{Op: "reading", Path: name, Err: fs.ErrNotExist}
	}
	content, err := k.Reader.Read(name)
	if err != nil {
		// A directory is read as a file first, whenever a kustomization names one.
		if info, lookup := k.Reader.Lookup(name); lookup == nil && info.Dir {
			return nil, err
		}
		return nil, k.rememberError(err)
	}
	if err := checkAliases(content); err != nil {
		return nil, k.rememberError(fmt.Errorf("%s: %w", at, err))
	}
	if link, ok := k.linked[at]; ok {
		at = link
	}
	if !isKustomization(at) {
		return content, nil
	}
	checked, err := k.checkKustomization(at, content)
	return checked, k.rememberError(err)
}

// checkKustomization checks one file and returns the content that kustomize is to read. Invalid YAML is left for
// kustomize to report.
func (k *checkedTree) checkKustomization(at string, content []byte) ([]byte, error) {
	k.schema = k.schema || bytes.Contains(content, []byte("openapi"))
	parse := reference.Parse
	if k.leftOut != nil {
		parse = reference.ParseLenient
	}
	file, err := parse(at, k.baseOf(at), k.sources, content)
	if err != nil || file == nil {
		return content, err
	}
	if err := checkComplete(file, content); err != nil {
		return nil, err
	}
	if file.In.Name != "" && k.unrestricted && file.HasPlugins() {
		return nil, fmt.Errorf("%s: generators, transformers and validators of a remote base are not run without the load restrictor, as they could load files of the source; copy the base into the source", file.Shown)
	}
	changed := len(file.Remote) > 0
	dropped := map[*yaml.Node]bool{}
	for _, entry := range file.Remote {
		local, err := k.mountedPath(file, entry)
		if err != nil && k.leftOut != nil {
			k.leftOut.add(file.Shown, entry.Line, entry.Field, shownReference(entry.Value), err.Error())
			dropped[entry.Node] = true
			continue
		}
		if err != nil {
			return nil, err
		}
		entry.Node.Value, entry.Node.Style, entry.Node.Tag = local, yaml.DoubleQuotedStyle, "!!str"
	}
	for _, entry := range file.ChartEntries() {
		k.charts[path.Join(path.Dir(at), entry.Name)] = fmt.Sprintf("%s:%d", file.Shown, entry.Node.Line)
	}
	root := file.Doc.Content[0]
	if k.leftOut != nil {
		changed = k.leaveOut(file, root, dropped) || changed
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "transformers" || root.Content[i+1].Kind != yaml.SequenceNode {
			continue
		}
		for _, entry := range root.Content[i+1].Content {
			replaced, err := k.rewriteTransformer(path.Dir(at), entry.Value)
			if err != nil {
				return nil, fmt.Errorf("%s:%d: transformers: %w", at, entry.Line, err)
			}
			if replaced != entry.Value {
				entry.Value, changed = replaced, true
				if entry.Style != yaml.LiteralStyle && entry.Style != yaml.FoldedStyle {
					entry.Style = yaml.DoubleQuotedStyle
				}
			}
		}
	}
	if !changed {
		return content, nil
	}
	return yaml.Marshal(&file.Doc)
}

// explainError puts the names of the source into an error of kustomize.
func (k *checkedTree) explainError(err error) error {
	text := string(k.restoreNames([]byte(err.Error())))
	if strings.Contains(text, "external plugins disabled") {
		text += "; functions and plugins that a source names are never run, and Prerig's own function runs under transformers only"
	}
	return errors.New(text)
}

// restoreNames replaces the names of virtual files by what they represent.
func (k *checkedTree) restoreNames(text []byte) []byte {
	if !bytes.Contains(text, []byte(virtualPrefix)) && !bytes.Contains(text, []byte(render.BasePrefix)) {
		return text
	}
	for name, original := range k.names {
		text = bytes.ReplaceAll(text, []byte(name), []byte(original))
	}
	return text
}

// maxExpanded bounds the number of values in a document with its aliases expanded. kustomize expands them, and some
// of its ways to read a file set no bound.
const maxExpanded = 1_000_000

// checkAliases refuses documents that grow too large.
func checkAliases(content []byte) error { return reference.CheckAliases(content, maxExpanded) }
