// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"text/template"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
	"github.com/prerig/prerig/fn/internal/lazyregexp"
	"github.com/prerig/prerig/fn/istio/release"
)

// Template is one parsed template of an injector configuration.
type Template struct {
	name string
	tmpl *template.Template
	// marks count the steps.
	marks gotemplate.Marks
	// mutates says that the template calls a function in a way that may change the values.
	mutates bool
	// nests says that the template calls render.
	nests bool
	// unfit says why the template cannot be rendered for a pod: it reads a field that the version does not have. That is
	// normal for templates of the gateway controller, which it renders with other data.
	unfit error
	// foreign are the functions and fields that other versions than the injector's have, as text; a vendor's templates have such.
	foreign []string
	// folded returns the template in its folded form, which it makes once, and renders counts how often it was rendered.
	folded  func() (*Template, error)
	renders atomic.Int64
	// classes are its specialized forms, where it is a folded one.
	classes classes
	// later, where it is set, parses the template, of which only the name is known.
	later func() (*Template, error)
}

// Name is the template's name in the configuration.
func (t *Template) Name() string { return t.name }

// maxRendered bounds what a template can print, in bytes. Istio's own print about 10 kB.
const maxRendered = 16 << 20

// Rendered is what a template printed. Release it when it is no longer read.
type Rendered struct{ out *gotemplate.Output }

// Bytes is the text. It must not be changed, and not read after Release.
func (r Rendered) Bytes() []byte { return r.out.Bytes() }

// language is what the templates of one injector are parsed with.
type language struct {
	profile    *Profile
	generation Generation
	// functions are those of the version.
	functions template.FuncMap
	// lenient says that a vendor's templates may use what other versions have; each use is noted in foreign.
	lenient bool
	// base has every function of every version, so that parsing finds all of them and check can name the versions.
	base *template.Template
}

// languageOf makes the language of a version. bound are the functions that need the injector.
func languageOf(p *Profile, g Generation, bound template.FuncMap) *language {
	l := &language{profile: p, generation: g, functions: functionsOf(p)}
	every := everyFunction()
	maps.Copy(every, l.functions)
	for name, fn := range bound {
		every[name] = fn
	}
	l.base = template.New("").Funcs(every)
	return l
}

// everyFunction are the functions of all versions.
func everyFunction() template.FuncMap {
	m := maps.Clone(sprigNames())
	for _, row := range functionTable {
		m[row.Name] = row.fn
	}
	return m
}

// parse parses one template.
func (l *language) parse(name, text string) (*Template, error) {
	t, err := l.base.Clone()
	if err != nil {
		return nil, fmt.Errorf("reading template %q: %w", name, err)
	}
	t = t.New(name)
	if l.generation == GenerationA {
		t = t.Delims("[[", "]]")
	}
	tmpl, err := t.Parse(text)
	if err != nil {
		return nil, parseError(name, err)
	}
	u := usageOf(tmpl)
	if err := u.checkFunctions(l); err != nil {
		return nil, err
	}
	out := &Template{name: name, tmpl: tmpl, marks: gotemplate.Marks{}, unfit: u.checkFields(l)}
	if l.lenient && out.unfit == nil {
		out.foreign = u.foreign(l)
	}
	out.marks.Count(tmpl)
	_, out.nests = u.functions["render"]
	out.mutates = variablesOf(tmpl).mutatesShared()
	return out, nil
}

// sourcePosition is where in the templates something is used.
type sourcePosition struct {
	template string
	line     int
}

// templateUsage is what a template uses.
type templateUsage struct {
	functions map[string]sourcePosition
	fields    map[string]sourcePosition
}

// usageOf walks the trees of a template and the templates that it defines.
func usageOf(t *template.Template) templateUsage {
	u := templateUsage{functions: map[string]sourcePosition{}, fields: map[string]sourcePosition{}}
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			w := walker{templateUsage: u, tree: sub.Tree, name: t.Name()}
			w.list(sub.Root, true)
		}
	}
	return u
}

// walker walks one tree. root says whether the dot is the template's data.
type walker struct {
	templateUsage
	tree *parse.Tree
	name string
}

func (w walker) at(n parse.Node) sourcePosition {
	return sourcePosition{template: w.name, line: gotemplate.LineOf(w.tree, n)}
}

func (w walker) list(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		w.node(n, root)
	}
}

func (w walker) node(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.ActionNode:
		w.node(n.Pipe, root)
	case *parse.IfNode:
		w.branch(&n.BranchNode, root, root)
	case *parse.WithNode:
		w.branch(&n.BranchNode, root, false)
	case *parse.RangeNode:
		w.branch(&n.BranchNode, root, false)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			w.node(n.Pipe, root)
		}
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			for _, arg := range c.Args {
				w.node(arg, root)
			}
		}
	case *parse.IdentifierNode:
		w.note(w.functions, n.Ident, n)
	case *parse.FieldNode:
		if root {
			w.note(w.fields, n.Ident[0], n)
		}
	case *parse.VariableNode:
		if n.Ident[0] == "$" && len(n.Ident) > 1 {
			w.note(w.fields, n.Ident[1], n)
		}
	case *parse.ChainNode:
		w.node(n.Node, root)
	}
}

func (w walker) branch(n *parse.BranchNode, root, inner bool) {
	w.node(n.Pipe, root)
	w.list(n.List, inner)
	w.list(n.ElseList, root)
}

func (w walker) note(m map[string]sourcePosition, name string, n parse.Node) {
	if _, ok := m[name]; !ok {
		m[name] = w.at(n)
	}
}

// check refuses what the version does not have.
func (u templateUsage) check(l *language) error {
	if err := u.checkFunctions(l); err != nil {
		return err
	}
	return u.checkFields(l)
}

// foreign returns the functions and fields that other versions have and this one does not, as text.
func (u templateUsage) foreign(l *language) []string {
	var out []string
	for name := range u.functions {
		if l.functions[name] == nil && !textTemplateFunctions[name] {
			out = append(out, fmt.Sprintf("the function %s (%s)", name, FunctionVersions(name)))
		}
	}
	for name := range u.fields {
		if spans := fieldSpans(name); len(spans) > 0 && !spans.Contains(l.profile.release) {
			out = append(out, fmt.Sprintf("the field .%s (%s)", name, spans))
		}
	}
	return out
}

// checkFunctions refuses functions that the version does not have.
func (u templateUsage) checkFunctions(l *language) error {
	if l.lenient {
		return nil
	}
	for _, name := range sortedKeys(u.functions) {
		if l.functions[name] == nil && !textTemplateFunctions[name] && !isNearSpan(functionSpans(name), l.profile.release) {
			at := u.functions[name]
			return fmt.Errorf("reading template %q, line %d: the function %q exists in Istio %s, and the version is 1.%d",
				at.template, at.line, name, FunctionVersions(name), l.profile.release.Minor)
		}
	}
	return nil
}

// checkFields refuses fields that the version does not have, and those that none has.
func (u templateUsage) checkFields(l *language) error {
	for _, name := range sortedKeys(u.fields) {
		at, versions := u.fields[name], FieldVersions(name)
		if versions == "" {
			return fmt.Errorf("reading template %q, line %d: no version of Istio from 1.%d to 1.%d has the field .%s",
				at.template, at.line, OldestMinor, NewestMinor, name)
		}
		if !l.lenient && !isNearSpan(fieldSpans(name), l.profile.release) {
			return fmt.Errorf("reading template %q, line %d: the field .%s exists in Istio %s, and the version is 1.%d",
				at.template, at.line, name, versions, l.profile.release.Minor)
		}
	}
	return nil
}

// isNearSpan reports whether a version, or the one before or after it, is in one of the spans. What a minor version got is often in
// the last patches of the one before too, and a template that uses it there works.
func isNearSpan(spans release.Spans, r release.Release) bool {
	return slices.ContainsFunc(spans, func(s release.Span) bool {
		return s.From.Minor-1 <= r.Minor && r.Minor <= s.To.Minor+1
	})
}

var (
	undefinedFunction = lazyregexp.New(`^template: (.*):(\d+): function "(.+)" not defined$`)
	parseLocation     = lazyregexp.New(`^template: (.*?):(\d+)(?::\d+)?: (?s:(.*))$`)
)

// parseError says what is wrong with a template that cannot be parsed.
func parseError(name string, err error) error {
	text := err.Error()
	if m := undefinedFunction.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("reading template %q, line %s: no version of Istio from 1.%d to 1.%d has the function %q",
			name, m[2], OldestMinor, NewestMinor, m[3])
	}
	if m := parseLocation.FindStringSubmatch(text); m != nil {
		return fmt.Errorf("reading template %q, line %s: %s", name, m[2], m[3])
	}
	return fmt.Errorf("reading template %q: %w", name, err)
}
