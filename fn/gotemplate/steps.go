// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"text/template/parse"
)

// Steps are counted, so that a template which loops for ever without printing anything fails, and at the same place
// on every machine. text/template has no hook for that, but it writes every text of a template, even an empty one:
// every loop's body and every template begins with an empty text of its own, which the receiving Output identifies
// by its address. The cost is not measurable, and the Output needs no further state.

// MaxSteps bounds the steps of one rendering: iterations of loops, calls of templates, and the function calls in
// both. Istio's own templates need a few hundred.
const MaxSteps = 1 << 18

// Marks are the empty texts that represent steps, by their address.
type Marks map[*byte]stepMark

// stepMark is what an empty text costs, and where it is.
type stepMark struct {
	cost, line int
	template   string
}

// markOfText returns the mark of a text, if it is one.
func (m Marks) markOfText(text []byte) (stepMark, bool) {
	if len(text) > 0 || cap(text) == 0 {
		return stepMark{}, false
	}
	found, ok := m[&text[:1][0]]
	return found, ok
}

// Output is what a template prints to. It fails where the template prints, or does, too much.
type Output struct {
	bytes.Buffer
	// Max bounds what is printed, in bytes.
	Max int
	// MaxSteps bounds the steps; 0 means MaxSteps of this package.
	MaxSteps int
	// Marks are those of the template.
	Marks Marks
	// Spent are the steps that were taken. Outputs of templates that render each other share one.
	Spent *int
}

// NewOutput is an Output that counts its own steps.
func NewOutput(maxBytes int, marks Marks) *Output {
	return &Output{Max: maxBytes, Marks: marks, Spent: new(int)}
}

// Write receives text, or an empty text that may represent steps.
func (o *Output) Write(p []byte) (int, error) {
	if len(p) == 0 {
		m, ok := o.Marks.markOfText(p)
		if !ok {
			return 0, nil
		}
		if limit := cmp.Or(o.MaxSteps, MaxSteps); *o.Spent+m.cost > limit {
			return 0, &Error{Template: m.template, Line: m.line, Err: errSteps(limit)}
		}
		*o.Spent += m.cost
		return 0, nil
	}
	if o.Len()+len(p) > o.Max {
		return 0, fmt.Errorf("it prints more than %d bytes", o.Max)
	}
	return o.Buffer.Write(p)
}

// Reset forgets what was printed and the steps, for a template with these marks.
func (o *Output) Reset(marks Marks) {
	o.Buffer.Reset()
	*o.Spent, o.Marks = 0, marks
}

// errSteps is the number of steps that were too many.
type errSteps int

func (e errSteps) Error() string {
	return fmt.Sprintf("it takes more than %d steps; a loop in it goes on for too long, or for ever", int(e))
}

// Count makes a template and the templates that it defines count their steps, and adds their marks. It is called before
// any of them is executed; those that count already stay as they are.
func (m Marks) Count(t *template.Template) {
	for _, sub := range t.Templates() {
		if sub.Tree == nil || sub.Root == nil {
			continue
		}
		if len(sub.Root.Nodes) > 0 && m.IsMark(sub.Root.Nodes[0]) {
			continue
		}
		stepCounter{marks: m, name: sub.ParseName}.insertListMarks(sub.Root, firstLine(sub.Tree))
	}
}

// IsMark reports whether a node represents steps.
func (m Marks) IsMark(n parse.Node) bool {
	text, ok := n.(*parse.TextNode)
	if ok {
		_, ok = m.markOfText(text.Text)
	}
	return ok
}

// Mark adds an empty text that represents steps at a position of a template, and returns it.
func (m Marks) Mark(steps int, template string, at parse.Pos) *parse.TextNode {
	text := make([]byte, 1)
	m[&text[0]] = stepMark{cost: steps, template: template}
	return &parse.TextNode{NodeType: parse.NodeText, Pos: at, Text: text[:0]}
}

// firstLine is the line on which the content of a template begins.
func firstLine(t *parse.Tree) int {
	if len(t.Root.Nodes) == 0 {
		return 1
	}
	return LineOf(t, t.Root.Nodes[0])
}

// LineOf returns the line of a node in the text that its tree was parsed from, from 1; 0 where it is not known.
func LineOf(t *parse.Tree, n parse.Node) int {
	location, _ := t.ErrorContext(n)
	parts := strings.Split(location, ":")
	if len(parts) < 2 {
		return 0
	}
	line, _ := strconv.Atoi(parts[len(parts)-2])
	return line
}

// stepCounter puts the marks into one text.
type stepCounter struct {
	marks Marks
	name  string
}

// insertListMarks puts the mark at the beginning of a list, and into the loops in it.
func (c stepCounter) insertListMarks(l *parse.ListNode, line int) {
	text := make([]byte, 1)
	c.marks[&text[0]] = stepMark{cost: 1 + c.countList(l), line: line, template: c.name}
	l.Nodes = slices.Insert(l.Nodes, 0, parse.Node(&parse.TextNode{NodeType: parse.NodeText, Pos: l.Pos, Text: text[:0]}))
}

// countList returns how many function calls a list has, without those of its loops, which get marks of their own.
func (c stepCounter) countList(l *parse.ListNode) int {
	if l == nil {
		return 0
	}
	calls := 0
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			calls += c.countCalls(n.Pipe)
		case *parse.TemplateNode:
			calls += c.countCalls(n.Pipe)
		case *parse.IfNode:
			calls += c.countCalls(n.Pipe) + c.countList(n.List) + c.countList(n.ElseList)
		case *parse.WithNode:
			calls += c.countCalls(n.Pipe) + c.countList(n.List) + c.countList(n.ElseList)
		case *parse.RangeNode:
			calls += c.countCalls(n.Pipe) + c.countList(n.ElseList)
			c.insertListMarks(n.List, n.Line)
		}
	}
	return calls
}

// countCalls counts the function calls in a pipeline.
func (c stepCounter) countCalls(n parse.Node) int {
	calls := 0
	switch n := n.(type) {
	case *parse.PipeNode:
		if n == nil {
			return 0
		}
		for _, command := range n.Cmds {
			for _, arg := range command.Args {
				calls += c.countCalls(arg)
			}
		}
	case *parse.ChainNode:
		calls = c.countCalls(n.Node)
	case *parse.IdentifierNode:
		calls = 1
	}
	return calls
}
