// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Steps are counted, so that a template which loops for ever without printing anything fails, and at the same place on
// every machine. text/template has no hook for that, but it writes every text of a template, even an empty one: at the
// beginning of every loop's body and of every template stands an empty text, behind whose end its line and its cost are
// kept. The Output that gets it counts. That costs nothing that could be measured, and needs no state beside the writer.

// MaxSteps bounds how many steps one rendering takes: iterations of loops, calls of templates, and the function calls in
// both. Istio's own templates take a few hundred.
const MaxSteps = 1 << 18

// Output is what a template prints to. It fails where the template prints, or does, too much.
type Output struct {
	bytes.Buffer
	// Max bounds what is printed, in bytes.
	Max int
	// Spent are the steps that were taken. Outputs of templates that render each other share one.
	Spent *int
}

// NewOutput is an Output that counts its own steps.
func NewOutput(maxBytes int) *Output { return &Output{Max: maxBytes, Spent: new(int)} }

// Write takes text, or an empty one that stands for steps.
func (o *Output) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, o.step(p[:cap(p)])
	}
	if o.Len()+len(p) > o.Max {
		return 0, fmt.Errorf("it prints more than %d bytes", o.Max)
	}
	return o.Buffer.Write(p)
}

// Reset forgets what was printed and the steps.
func (o *Output) Reset() {
	o.Buffer.Reset()
	*o.Spent = 0
}

// step counts. mark is COST:LINE:TEMPLATE, or nothing.
func (o *Output) step(mark []byte) error {
	if len(mark) == 0 {
		return nil
	}
	cost := 0
	for _, c := range mark {
		if c < '0' || c > '9' {
			break
		}
		cost = cost*10 + int(c-'0')
	}
	if *o.Spent += cost; *o.Spent <= MaxSteps {
		return nil
	}
	parts := strings.SplitN(string(mark), ":", 3)
	line, _ := strconv.Atoi(parts[1])
	return &TemplateError{Template: parts[2], Line: line, Err: errSteps}
}

var errSteps = fmt.Errorf("it takes more than %d steps; a loop in it goes on for too long, or for ever", MaxSteps)

// CountSteps makes a template and the templates that it defines count their steps. It is called before any of them is
// executed; those that count already stay as they are.
func CountSteps(t *template.Template) {
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		if len(sub.Root.Nodes) > 0 {
			if text, ok := sub.Root.Nodes[0].(*parse.TextNode); ok && isMark(text) {
				continue
			}
		}
		counter{name: sub.ParseName}.mark(sub.Root, firstLine(sub.Tree))
	}
}

// firstLine is the line on which the content of a template begins.
func firstLine(t *parse.Tree) int {
	if len(t.Root.Nodes) == 0 {
		return 1
	}
	return walker{tree: t}.at(t.Root.Nodes[0]).line
}

// counter puts the marks into one text.
type counter struct{ name string }

// mark puts the mark at the beginning of a list, and into the loops in it.
func (c counter) mark(l *parse.ListNode, line int) {
	cost := 1 + c.list(l)
	text := slices.Clip(fmt.Appendf(nil, "%d:%d:%s", cost, line, c.name))
	l.Nodes = slices.Insert(l.Nodes, 0, parse.Node(&parse.TextNode{NodeType: parse.NodeText, Pos: l.Pos, Text: text[:0]}))
}

// isMark says whether a text stands for steps.
func isMark(t *parse.TextNode) bool { return len(t.Text) == 0 && cap(t.Text) > 0 }

// list gives how many function calls a list has, without those of its loops, which get marks of their own.
func (c counter) list(l *parse.ListNode) int {
	if l == nil {
		return 0
	}
	calls := 0
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			calls += c.calls(n.Pipe)
		case *parse.TemplateNode:
			calls += c.calls(n.Pipe)
		case *parse.IfNode:
			calls += c.calls(n.Pipe) + c.list(n.List) + c.list(n.ElseList)
		case *parse.WithNode:
			calls += c.calls(n.Pipe) + c.list(n.List) + c.list(n.ElseList)
		case *parse.RangeNode:
			calls += c.calls(n.Pipe) + c.list(n.ElseList)
			c.mark(n.List, n.Line)
		}
	}
	return calls
}

// calls counts the function calls in a pipeline.
func (c counter) calls(n parse.Node) int {
	calls := 0
	switch n := n.(type) {
	case *parse.PipeNode:
		if n == nil {
			return 0
		}
		for _, command := range n.Cmds {
			for _, arg := range command.Args {
				calls += c.calls(arg)
			}
		}
	case *parse.ChainNode:
		calls = c.calls(n.Node)
	case *parse.IdentifierNode:
		calls = 1
	}
	return calls
}
