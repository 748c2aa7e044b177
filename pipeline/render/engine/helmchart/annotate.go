// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// A template function does not learn where it is called. Templates of a chart are therefore annotated before it is
// rendered with derived values: a call of such a function gets the number of its place as its first argument, and
// actions that include other templates are wrapped to record the place. The annotations do not show in the rendered
// output:
//
//	{{ randAlphaNum 10 }}            {{ randAlphaNum "7" 10 }}
//	{{ default uuidv4 .id }}         {{ default (uuidv4 "8") .id }}
//	{{ include "name" . | quote }}   {{ include (prerigEnter "9" "name") . | prerigLeave | quote }}
//	{{ tpl .Values.text . }}         {{ tpl (prerigText "10" .Values.text) . | prerigLeave }}
//
// A file begins with prerigBegin and ends with prerigEnd. This changes the columns in errors, so an error is
// searched again in the original templates (derived.go).

// Functions that only annotated templates call.
const (
	funcEnter = "prerigEnter"
	funcText  = "prerigText"
	funcLeave = "prerigLeave"
	funcBegin = "prerigBegin"
	funcEnd   = "prerigEnd"
)

// place is the location of a call.
type place struct {
	// file is the path in the chart, and block the template that is defined around it, if any.
	file, block string
	// line is its text, not its number: lines that come before it do not change what it is.
	line string
}

// annotator annotates one text.
type annotator struct {
	text    string
	file    string
	derived func(name string) bool
	number  func(place) int
	inserts []insert
}

// insert is text to insert before an offset. Of several inserts at one offset, closing ones precede opening ones,
// in the order in which parentheses close and open.
type insert struct {
	at, order int
	text      string
}

// annotate returns a template annotated with its places, or unchanged if it cannot be parsed. whole reports whether
// it is a file.
func annotate(text, file string, whole bool, derived func(name string) bool, number func(place) int) string {
	root := parse.New(file)
	root.Mode = parse.SkipFuncCheck
	trees := map[string]*parse.Tree{}
	if _, err := root.Parse(text, "", "", trees); err != nil {
		return text
	}
	a := &annotator{text: text, file: file, derived: derived, number: number}
	for _, name := range slices.Sorted(maps.Keys(trees)) {
		block := name
		if name == file {
			block = ""
		}
		a.list(block, trees[name].Root)
	}
	slices.SortFunc(a.inserts, func(x, y insert) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.order, y.order)) })
	var out strings.Builder
	if whole {
		fmt.Fprintf(&out, "{{%s %q}}", funcBegin, file)
	}
	last := 0
	for _, one := range a.inserts {
		out.WriteString(text[last:one.at] + one.text)
		last = one.at
	}
	out.WriteString(text[last:])
	if whole {
		fmt.Fprintf(&out, "{{%s}}", funcEnd)
	}
	return out.String()
}

func (a *annotator) list(block string, list *parse.ListNode) {
	if list == nil {
		return
	}
	for _, node := range list.Nodes {
		switch node := node.(type) {
		case *parse.ActionNode:
			a.pipe(block, node.Pipe)
		case *parse.IfNode:
			a.branch(block, &node.BranchNode)
		case *parse.RangeNode:
			a.branch(block, &node.BranchNode)
		case *parse.WithNode:
			a.branch(block, &node.BranchNode)
		case *parse.TemplateNode:
			a.pipe(block, node.Pipe)
		}
	}
}

func (a *annotator) branch(block string, node *parse.BranchNode) {
	a.pipe(block, node.Pipe)
	a.list(block, node.List)
	a.list(block, node.ElseList)
}

func (a *annotator) pipe(block string, pipe *parse.PipeNode) {
	if pipe == nil {
		return
	}
	for _, command := range pipe.Cmds {
		a.command(block, command)
	}
}

func (a *annotator) command(block string, command *parse.CommandNode) {
	for i, arg := range command.Args {
		a.arg(block, arg, i == 0, len(command.Args))
	}
}

// arg annotates one of the words of a command.
func (a *annotator) arg(block string, node parse.Node, first bool, words int) {
	switch node := node.(type) {
	case *parse.PipeNode:
		a.pipe(block, node)
	case *parse.ChainNode: // what comes before the first field is evaluated by itself
		a.arg(block, node.Node, false, 0)
	case *parse.IdentifierNode:
		at, end := int(node.Pos), int(node.Pos)+len(node.Ident)
		if end > len(a.text) || a.text[at:end] != node.Ident {
			return // it is none that the text has
		}
		switch {
		case a.derived(node.Ident) && first:
			a.close(end, fmt.Sprintf(" %q", a.placeAt(block, at)))
		case a.derived(node.Ident):
			a.open(at, "(")
			a.close(end, fmt.Sprintf(" %q)", a.placeAt(block, at)))
		case first && words > 1 && node.Ident == "include":
			a.wrap(block, at, end, funcEnter)
		case first && words > 1 && node.Ident == "tpl":
			a.wrap(block, at, end, funcText)
		}
	}
}

// wrap notes the place around a call whose first argument, behind an offset, is passed through a function.
func (a *annotator) wrap(block string, at, end int, function string) {
	begin := len(a.text) - len(strings.TrimLeft(a.text[end:], space))
	argument := begin + wordLength(a.text[begin:])
	if argument == begin {
		return
	}
	last := argument
	for { // the rest of the command
		rest := strings.TrimLeft(a.text[last:], space)
		word := wordLength(rest)
		if word == 0 || strings.HasPrefix(rest, "-}}") {
			break
		}
		last = len(a.text) - len(rest) + word
	}
	a.open(begin, fmt.Sprintf("(%s %q ", function, a.placeAt(block, at)))
	a.close(last, " | "+funcLeave)
	a.close(argument, ")")
}

// open and close insert what begins and ends something. What begins later ends earlier.
func (a *annotator) open(at int, text string) {
	a.inserts = append(a.inserts, insert{at, len(a.inserts) + 1, text})
}

func (a *annotator) close(at int, text string) {
	a.inserts = append(a.inserts, insert{at, -len(a.inserts) - 1, text})
}

// space is what separates the words of an action.
const space = " \t\r\n"

// placeAt returns the number of the place at an offset.
func (a *annotator) placeAt(block string, at int) string {
	begin := strings.LastIndexByte(a.text[:at], '\n') + 1
	line, _, _ := strings.Cut(a.text[begin:], "\n")
	return fmt.Sprint(a.number(place{a.file, block, strings.Join(strings.Fields(line), " ")}))
}

// wordLength returns the length of the word of an action that a text begins with: everything up to a space, with
// its parentheses and quotes. It is 0 at the end of the command.
func wordLength(text string) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '`', '\'':
			i += quotedLength(text[i:], c)
		case '(':
			depth++
		case ')':
			if depth == 0 {
				return i
			}
			depth--
		case ' ', '\t', '\r', '\n', '|', '}':
			if depth == 0 {
				return i
			}
		}
	}
	return 0
}

// quotedLength returns the offset of the quote that ends what a text begins with.
func quotedLength(text string, quote byte) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote != '`':
			i++
		case text[i] == quote:
			return i
		}
	}
	return len(text)
}
