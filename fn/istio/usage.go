// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
)

// sourcePosition is where in the templates something is used.
type sourcePosition struct {
	template string
	line     int
}

// templateUsage is what a template uses.
type templateUsage struct {
	functions map[string]sourcePosition
	// fields lists the fields of the template's data that are read, as far as the text shows. A template that is
	// called with something other than the data reads fields of that.
	fields map[string][]fieldRead
}

// fieldRead is one place where a field of the data is read: an argument of a command in a tree.
type fieldRead struct {
	sourcePosition
	tree     *parse.Tree
	command  *parse.CommandNode
	argument int
}

// usageOf walks the trees of a template and the templates that it defines.
func usageOf(t *template.Template) templateUsage {
	u := templateUsage{functions: map[string]sourcePosition{}, fields: map[string][]fieldRead{}}
	keeps := templatesKeepingDollar(t)
	roots := rootTemplates(t, keeps)
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		root := roots[sub.Name()]
		w := walker{templateUsage: u, tree: sub.Tree, name: t.Name(), dollar: root && keeps[sub.Name()]}
		w.walkListNode(sub.Root, root)
	}
	return u
}

// walker walks one tree. The root argument of its methods reports whether the dot is the template's data.
type walker struct {
	templateUsage
	tree *parse.Tree
	name string
	// dollar reports whether $ is the template's data.
	dollar bool
}

func (w walker) positionOfNode(n parse.Node) sourcePosition {
	return sourcePosition{template: w.name, line: gotemplate.LineOf(w.tree, n)}
}

func (w walker) walkListNode(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		w.walkNode(n, root)
	}
}

func (w walker) walkNode(n parse.Node, root bool) {
	switch n := n.(type) {
	case *parse.ActionNode:
		w.walkNode(n.Pipe, root)
	case *parse.IfNode:
		w.walkBranchNode(&n.BranchNode, root, root)
	case *parse.WithNode:
		w.walkBranchNode(&n.BranchNode, root, false)
	case *parse.RangeNode:
		w.walkBranchNode(&n.BranchNode, root, false)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			w.walkNode(n.Pipe, root)
		}
	case *parse.PipeNode:
		if n == nil {
			return
		}
		for _, c := range n.Cmds {
			for i := range c.Args {
				w.walkCallArgument(c, i, root)
			}
		}
	case *parse.IdentifierNode:
		if n.Ident == printFunction {
			return // no template has it by itself
		}
		if _, ok := w.functions[n.Ident]; !ok {
			w.functions[n.Ident] = w.positionOfNode(n)
		}
	case *parse.ChainNode:
		w.walkNode(n.Node, root)
	}
}

func (w walker) walkBranchNode(n *parse.BranchNode, root, inner bool) {
	w.walkNode(n.Pipe, root)
	w.walkListNode(n.List, inner)
	w.walkListNode(n.ElseList, root)
}

// walkCallArgument notes which field of the data an argument is, if it is one, or walks on.
func (w walker) walkCallArgument(c *parse.CommandNode, i int, root bool) {
	switch n := c.Args[i].(type) {
	case *parse.FieldNode:
		if root {
			w.fields[n.Ident[0]] = append(w.fields[n.Ident[0]], fieldRead{w.positionOfNode(n), w.tree, c, i})
		}
	case *parse.VariableNode:
		if w.dollar && n.Ident[0] == "$" && len(n.Ident) > 1 {
			w.fields[n.Ident[1]] = append(w.fields[n.Ident[1]], fieldRead{w.positionOfNode(n), w.tree, c, i})
		}
	default:
		w.walkNode(n, root)
	}
}

// unsupportedNames returns the functions and fields that other versions have and this one does not, as text.
func (u templateUsage) unsupportedNames(l *language) []string {
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
	for _, name := range slices.Sorted(maps.Keys(u.functions)) {
		if l.functions[name] == nil && !textTemplateFunctions[name] && !isNearSpan(functionSpans(name), l.profile.release) {
			at := u.functions[name]
			return templateError(at.template, strconv.Itoa(at.line), "the function %q exists in Istio %s, and the version is 1.%d",
				name, FunctionVersions(name), l.profile.release.Minor)
		}
	}
	return nil
}

// checkField returns an error describing why templates of the version cannot read a field.
func (l *language) checkField(name string) error {
	versions := FieldVersions(name)
	if versions == "" {
		return fmt.Errorf("no version of Istio from 1.%d to 1.%d has the field .%s", OldestMinor, NewestMinor, name)
	}
	if !l.lenient && !isNearSpan(fieldSpans(name), l.profile.release) {
		return fmt.Errorf("the field .%s exists in Istio %s, and the version is 1.%d", name, versions, l.profile.release.Minor)
	}
	return nil
}

// absentFunction is the name of the function that fails for a field. A template is parsed before it has it.
const absentFunction = "readAbsentField"

// failAbsent makes a template fail where it reads a field that the version does not have, and reports whether it
// does so anywhere. In a branch that is not taken this is harmless, as in istiod. The data has the fields of all
// versions, so the field is replaced with a call of a function that fails. Trees already in use are left unchanged.
func (u templateUsage) failAbsent(l *language, t *template.Template, inUse []*parse.Tree) bool {
	found := false
	for name, reads := range u.fields {
		err := l.checkField(name)
		if err == nil {
			continue
		}
		found = true
		for _, r := range reads {
			if !slices.Contains(inUse, r.tree) {
				r.command.Args[r.argument] = failingCall(r, err)
			}
		}
	}
	if found {
		t.Funcs(template.FuncMap{absentFunction: func(template, at, cause string, line int) (any, error) {
			return nil, &gotemplate.Error{Template: template, Line: line, At: at, Err: errors.New(cause)}
		}})
	}
	return found
}

// failingCall is a pipeline that fails with what is wrong with a field.
func failingCall(r fieldRead, err error) parse.Node {
	field := r.command.Args[r.argument]
	pos := field.Position()
	text := func(v string) parse.Node {
		return &parse.StringNode{NodeType: parse.NodeString, Pos: pos, Quoted: strconv.Quote(v), Text: v}
	}
	line := &parse.NumberNode{NodeType: parse.NodeNumber, Pos: pos, IsInt: true, Int64: int64(r.line), Text: strconv.Itoa(r.line)}
	call := &parse.CommandNode{NodeType: parse.NodeCommand, Pos: pos, Args: []parse.Node{
		parse.NewIdentifier(absentFunction).SetPos(pos).SetTree(r.tree), text(r.template), text(field.String()), text(err.Error()), line,
	}}
	return &parse.PipeNode{NodeType: parse.NodePipe, Pos: pos, Line: r.line, Cmds: []*parse.CommandNode{call}}
}

// rootTemplates returns the names of the templates whose dot is the root data: the main one, and those that are
// called only with that data, wherever they are called.
func rootTemplates(t *template.Template, keepsDollar map[string]bool) map[string]bool {
	roots := map[string]bool{}
	for _, sub := range t.Templates() {
		roots[sub.Name()] = true
	}
	// Initially all are assumed to be root templates; a call that contradicts this also applies to the templates
	// called by that template.
	for again := true; again; {
		again = false
		c := templateCalls{called: map[string]bool{t.Name(): true}, elsewhere: map[string]bool{}}
		for _, sub := range t.Templates() {
			if sub.Tree != nil && sub.Root != nil {
				root := roots[sub.Name()]
				c.recordListCalls(sub.Root, root, root && keepsDollar[sub.Name()])
			}
		}
		for name := range roots {
			if c.elsewhere[name] || !c.called[name] {
				delete(roots, name)
				again = true
			}
		}
	}
	return roots
}

// templatesKeepingDollar returns the names of the templates that do not set $, which is their data then.
func templatesKeepingDollar(t *template.Template) map[string]bool {
	out := map[string]bool{}
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			u := newVariableUse()
			u.visitListNode(sub.Root)
			out[sub.Name()] = len(u.values["$"]) == 0
		}
	}
	return out
}

// templateCalls holds the names of templates that are called, and of those that are called with something other
// than the root data.
type templateCalls struct{ called, elsewhere map[string]bool }

// recordListCalls records the calls in a list. root and dollar report whether the dot and $ are the root data at that
// point.
func (c templateCalls) recordListCalls(l *parse.ListNode, root, dollar bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TemplateNode:
			c.called[n.Name] = true
			if !isData(n.Pipe, root, dollar) {
				c.elsewhere[n.Name] = true
			}
		case *parse.IfNode:
			c.recordListCalls(n.List, root, dollar)
			c.recordListCalls(n.ElseList, root, dollar)
		case *parse.WithNode:
			c.recordListCalls(n.List, false, dollar)
			c.recordListCalls(n.ElseList, root, dollar)
		case *parse.RangeNode:
			c.recordListCalls(n.List, false, dollar)
			c.recordListCalls(n.ElseList, root, dollar)
		}
	}
}

// isData reports whether a pipeline is exactly the root data.
func isData(p *parse.PipeNode, root, dollar bool) bool {
	if p == nil || len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return false
	}
	switch n := p.Cmds[0].Args[0].(type) {
	case *parse.DotNode:
		return root
	case *parse.VariableNode:
		return dollar && len(n.Ident) == 1 && n.Ident[0] == "$"
	default:
		return false
	}
}
