// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"strconv"
	"strings"
	"text/template/parse"
)

func (w *copyWalker) list(l *parse.ListNode, dot abstract) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.TextNode, *parse.CommentNode, *parse.BreakNode, *parse.ContinueNode:
		case *parse.ActionNode:
			v := w.pipe(n.Pipe, dot)
			if len(n.Pipe.Decl) == 0 {
				w.print(v)
			}
		case *parse.IfNode:
			w.pipe(n.Pipe, dot)
			w.list(n.List, dot)
			w.list(n.ElseList, dot)
		case *parse.WithNode:
			w.list(n.List, w.pipe(n.Pipe, dot))
			w.list(n.ElseList, dot)
		case *parse.RangeNode:
			w.list(n.List, w.element(n.Pipe, dot))
			w.list(n.ElseList, dot)
		case *parse.TemplateNode:
			w.call(n, dot)
		default:
			w.use(abstract{kind: dataKind})
		}
	}
}

// call notes the data of a template that is called.
func (w *copyWalker) call(n *parse.TemplateNode, dot abstract) {
	var v abstract
	if n.Pipe != nil {
		v = w.pipe(n.Pipe, dot)
	}
	old, there := w.dots[n.Name]
	if there {
		v = old.join(v)
	}
	v.literal = nil
	w.again = w.again || !there || !old.equal(v)
	w.dots[n.Name] = v
}

// element returns an element of what a range goes through.
func (w *copyWalker) element(p *parse.PipeNode, dot abstract) abstract {
	decl := p.Decl
	whole := *p
	whole.Decl = nil
	v := w.pipe(&whole, dot)
	elem := abstract{}
	switch v.kind {
	case cleanKind:
	case containersKind:
		elem = abstract{kind: containerKind}
	case listKind:
		elem = abstract{kind: mixedKind, from: v.from}
	default:
		w.use(v)
	}
	for i, d := range decl {
		if i == len(decl)-1 {
			w.set(d.Ident[0], elem)
		} else {
			w.set(d.Ident[0], abstract{})
		}
	}
	return elem
}

// pipe returns what a pipeline yields.
func (w *copyWalker) pipe(p *parse.PipeNode, dot abstract) abstract {
	var v abstract
	for i, c := range p.Cmds {
		var last *abstract
		if i > 0 {
			before := v
			last = &before
		}
		v = w.command(c, dot, last)
	}
	for _, d := range p.Decl {
		w.set(d.Ident[0], v)
	}
	return v
}

// command returns what a command yields; last is what the command before it has, if there is one.
func (w *copyWalker) command(c *parse.CommandNode, dot abstract, last *abstract) abstract {
	id, isFunction := c.Args[0].(*parse.IdentifierNode)
	if !isFunction && len(c.Args) == 1 && last == nil {
		return w.argument(c.Args[0], dot)
	}
	var args []abstract
	for i, arg := range c.Args {
		if i > 0 || !isFunction {
			args = append(args, w.argument(arg, dot))
		}
	}
	if last != nil {
		args = append(args, *last)
	}
	if !isFunction { // a method with arguments
		w.useAll(args)
		return abstract{}
	}
	return w.function(id.Ident, args)
}

func (w *copyWalker) useAll(args []abstract) {
	for _, v := range args {
		w.use(v)
	}
}

func (w *copyWalker) argument(n parse.Node, dot abstract) abstract {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return w.fields(dot, n.Ident)
	case *parse.VariableNode:
		return w.fields(w.variables[w.tree][n.Ident[0]], n.Ident[1:])
	case *parse.ChainNode:
		return w.fields(w.argument(n.Node, dot), n.Field)
	case *parse.PipeNode:
		return w.pipe(n, dot)
	case *parse.StringNode:
		return abstract{literal: &n.Text}
	case *parse.NumberNode:
		return abstract{literal: &n.Text}
	case *parse.BoolNode, *parse.NilNode:
		return abstract{}
	case *parse.IdentifierNode:
		return w.function(n.Ident, nil)
	}
	w.use(abstract{kind: dataKind})
	return abstract{}
}

func (w *copyWalker) fields(v abstract, names []string) abstract {
	for _, name := range names {
		v = w.field(v, name)
	}
	v.literal = nil
	return v
}

// function returns what a function makes of its arguments. What is not known here reads them.
func (w *copyWalker) function(name string, args []abstract) abstract {
	joined := abstract{}
	texts := true
	for _, v := range args {
		joined = joined.join(v)
		texts = texts && (v.kind == cleanKind || v.kind == textKind || v.kind == mixedKind || v.kind == listKind)
	}
	switch name {
	case printFunction:
		return args[len(args)-1]
	case "render", "tpl", "include", "call":
		w.use(abstract{kind: dataKind})
		return abstract{}
	case "otelResourceAttributes":
		if !w.otel {
			return abstract{}
		}
	case "annotation":
		if len(args) == 3 && args[0].kind == metaKind && args[1].kind == cleanKind {
			return args[2]
		}
	case "index":
		if v, ok := indexed(args); ok {
			return v
		}
	}
	if joined.kind == cleanKind {
		return abstract{}
	}
	if v, known := w.copying(name, args, joined, texts); known {
		return v
	}
	w.useAll(args)
	return abstract{}
}

// indexed returns what index yields.
func indexed(args []abstract) (v abstract, ok bool) {
	switch {
	case len(args) != 2:
		return v, false
	case args[0].kind == labelsKind && args[1].literal != nil:
		return textOf(ReadLabel + *args[1].literal), true
	case args[0].kind == annotationsKind && args[1].kind == cleanKind:
		return v, true
	case args[0].kind == containersKind && args[1].kind == cleanKind:
		return abstract{kind: containerKind}, true
	}
	return v, false
}

// copying returns what the functions yield that copy names, or ask only whether there is one.
func (w *copyWalker) copying(name string, args []abstract, joined abstract, texts bool) (v abstract, known bool) {
	first := args[0]
	switch name {
	case "isset":
		return abstract{}, len(args) == 2 && (first.kind == labelsKind || first.kind == annotationsKind) && args[1].kind == cleanKind
	case "includeInboundPorts", "applicationPorts":
		return abstract{}, first.kind == containersKind
	case "len":
		return abstract{}, first.kind == containersKind || first.kind == labelsKind || first.kind == annotationsKind || first.kind == listKind
	case "not", "empty":
		return abstract{}, true
	case "default", "coalesce", "valueOrDefault", "or", "and":
		return joined, true
	case "toJSON", "toJson":
		if first.kind == labelsKind && len(args) == 1 {
			return abstract{kind: mixedKind, from: []string{ReadLabels}}, true
		}
		return abstract{kind: mixedKind, from: joined.from}, texts
	case "trunc":
		n, err := strconv.Atoi(first.text())
		return joined, err == nil && n >= 63 && len(args) == 2 && args[1].kind == textKind
	case "trimSuffix", "trimPrefix", "trimAll":
		return joined, len(args) == 2 && first.literal != nil && !strings.ContainsFunc(*first.literal, isWordRune) && texts
	case "quote", "squote", "toString", "print", "cat", "join":
		return abstract{kind: mixedKind, from: joined.from}, texts
	case "printf":
		return abstract{kind: mixedKind, from: joined.from}, texts && first.literal != nil && hasPlainVerbs(*first.literal)
	case "list", "append":
		return abstract{kind: listKind, from: joined.from}, texts
	case "first", "last":
		return abstract{kind: mixedKind, from: joined.from}, first.kind == listKind && len(args) == 1
	case "eq", "ne":
		return abstract{}, w.compare(args)
	}
	return v, false
}

func (v abstract) text() string {
	if v.literal == nil {
		return ""
	}
	return *v.literal
}

// compare notes the words that a name is compared with; false where it is something else.
func (w *copyWalker) compare(args []abstract) bool {
	names := 0
	for _, v := range args {
		switch {
		case v.kind == textKind:
			names++
		case v.kind != cleanKind || v.literal == nil:
			return false
		}
	}
	if names != 1 {
		return false
	}
	for _, v := range args {
		if v.literal != nil {
			w.compared[*v.literal] = true
		}
	}
	return true
}

func isWordRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r > 0x7f
}

// hasPlainVerbs reports whether a format prints each argument as it is, or in quotes.
func hasPlainVerbs(format string) bool {
	verbs, flags := verbsOf(format)
	for i, verb := range verbs {
		if flags[i] != "" || !strings.ContainsRune("sqv", verb) {
			return false
		}
	}
	return len(verbs) == strings.Count(strings.ReplaceAll(format, "%%", ""), "%")
}
