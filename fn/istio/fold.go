// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
)

// Folding evaluates once what is the same for every pod: most of a stock template asks the values. The folded template prints the
// same text for every pod and takes the same steps; what cannot be evaluated stays as it is, with its error for when it is rendered.

// foldAfter is for how many pods a template is rendered as it is written: for a few, folding takes longer than it saves.
const foldAfter = 16

// samePods are the fields of TemplateData that are the same for every pod.
var samePods = map[string]bool{
	"Values": true, "MeshConfig": true, "Revision": true, "CompliancePolicy": true, "InboundTrafficPolicyMode": true, "NativeSidecars": true,
}

// folder folds one template.
type folder struct {
	in   *Injector
	tmpl *template.Template
	data *TemplateData
	out  *gotemplate.Output
	// constants are variables that are the same for every pod, and declared their declarations.
	constants map[string]bool
	declared  []parse.Node
}

// fold folds a template and the templates that it defines.
func (in *Injector) fold(t *Template) error {
	if t.asWritten {
		return nil
	}
	scratch, err := in.language.base.Clone()
	if err != nil {
		return err
	}
	f := &folder{in: in, tmpl: scratch, out: gotemplate.NewOutput(maxRendered, t.marks), constants: map[string]bool{}, data: &TemplateData{ProxyConfig: in.mesh.GetDefaultConfig(), MeshConfig: in.mesh, NativeSidecars: in.native}}
	in.complete(f.data, t)
	if t.tmpl.Tree != nil && t.tmpl.Root != nil {
		f.noteConstants(t.tmpl.Root, variablesOf(t.tmpl))
	}
	roots := rootTemplates(t.tmpl)
	for _, sub := range t.tmpl.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			f.list(sub.Root, roots[sub.Name()])
		}
	}
	return nil
}

// list folds the nodes of a list. root says that the dot is the data of the whole.
func (f *folder) list(l *parse.ListNode, root bool) {
	if l == nil {
		return
	}
	var out []parse.Node
	for _, n := range l.Nodes {
		out = joinTexts(f.out.Marks, out, f.node(n, root)...)
	}
	l.Nodes = out
}

// joinTexts appends nodes and joins texts that follow each other and are not marks.
func joinTexts(marks gotemplate.Marks, out []parse.Node, nodes ...parse.Node) []parse.Node {
	for _, n := range nodes {
		text, ok := n.(*parse.TextNode)
		if !ok || marks.IsMark(text) {
			out = append(out, n)
			continue
		}
		if len(out) > 0 {
			if last, ok := out[len(out)-1].(*parse.TextNode); ok && !marks.IsMark(last) {
				joined := *last
				joined.Text = append(append([]byte(nil), last.Text...), text.Text...)
				out[len(out)-1] = &joined
				continue
			}
		}
		out = append(out, text)
	}
	return out
}

// node returns what stands for a node.
func (f *folder) node(n parse.Node, root bool) []parse.Node {
	switch n := n.(type) {
	case *parse.ActionNode:
		if text, ok := f.print(n.Pipe, root); ok {
			return []parse.Node{&parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: []byte(text)}}
		}
		f.arguments(n.Pipe, root)
	case *parse.IfNode:
		f.list(n.List, root)
		f.list(n.ElseList, root)
		return f.branch(n, &n.BranchNode, root)
	case *parse.WithNode:
		f.list(n.List, false)
		f.list(n.ElseList, root)
		if holds, ok := f.holds(n.Pipe, root); ok && !holds {
			return f.branch(n, &n.BranchNode, root)
		}
		f.arguments(n.Pipe, root)
	case *parse.RangeNode:
		f.list(n.List, false)
		f.list(n.ElseList, root)
		f.arguments(n.Pipe, root)
	}
	return []parse.Node{n}
}

// branch puts the side that is always taken in the place of the whole. A side that declares variables stays, because they
// must not be seen after it.
func (f *folder) branch(whole parse.Node, n *parse.BranchNode, root bool) []parse.Node {
	holds, ok := f.holds(n.Pipe, root)
	if !ok {
		f.arguments(n.Pipe, root)
		return []parse.Node{whole}
	}
	side := n.ElseList
	if holds {
		side = n.List
	}
	if side == nil {
		return nil
	}
	for _, inner := range side.Nodes {
		if a, ok := inner.(*parse.ActionNode); ok && len(a.Pipe.Decl) > 0 && !a.Pipe.IsAssign {
			return []parse.Node{whole}
		}
	}
	return side.Nodes
}

// print is what a pipeline prints, if that is the same for every pod.
func (f *folder) print(p *parse.PipeNode, root bool) (string, bool) {
	if len(p.Decl) > 0 || !f.same(p, root) {
		return "", false
	}
	return f.run(&parse.ActionNode{NodeType: parse.NodeAction, Pos: p.Pos, Line: p.Line, Pipe: p})
}

// holds reports whether a condition holds, if that is the same for every pod.
func (f *folder) holds(p *parse.PipeNode, root bool) (holds, ok bool) {
	if len(p.Decl) > 0 || !f.same(p, root) {
		return false, false
	}
	yes := &parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{&parse.TextNode{NodeType: parse.NodeText, Text: []byte("yes")}}}
	text, ok := f.run(&parse.IfNode{BranchNode: parse.BranchNode{NodeType: parse.NodeIf, Pos: p.Pos, Line: p.Line, Pipe: p, List: yes}})
	return text == "yes", ok
}

// run executes one node on the data that all pods share.
func (f *folder) run(n parse.Node) (string, bool) {
	tree := &parse.Tree{Name: "fold", ParseName: "fold", Root: &parse.ListNode{NodeType: parse.NodeList, Nodes: append(slices.Clone(f.declared), n)}}
	t, err := f.tmpl.AddParseTree("fold", tree)
	if err != nil {
		return "", false
	}
	// The steps of all that is folded count together.
	f.out.Truncate(0)
	if err := t.Execute(f.out, f.data); err != nil {
		return "", false
	}
	return f.out.String(), true
}

// same reports whether a node has the same value for every pod.
func (f *folder) same(n parse.Node, root bool) bool {
	switch n := n.(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	case *parse.FieldNode:
		return root && samePods[n.Ident[0]]
	case *parse.VariableNode:
		return f.constants[n.Ident[0]] || n.Ident[0] == "$" && len(n.Ident) > 1 && root && samePods[n.Ident[1]]
	case *parse.ChainNode:
		return f.same(n.Node, root)
	case *parse.IdentifierNode:
		return !gotemplate.Refused(n.Ident)
	case *parse.PipeNode:
		return len(n.Decl) == 0 && f.sameCommands(n, root)
	default:
		return false
	}
}

// sameCommands reports whether the commands of a pipeline give the same value for every pod.
func (f *folder) sameCommands(p *parse.PipeNode, root bool) bool {
	for _, c := range p.Cmds {
		for _, arg := range c.Args {
			if !f.same(arg, root) {
				return false
			}
		}
	}
	return true
}

// arguments puts plain values of the injector's values in the place of their paths in a pipeline that is not the same for
// every pod.
func (f *folder) arguments(p *parse.PipeNode, root bool) {
	for i, c := range p.Cmds {
		for j, arg := range c.Args {
			if sub, ok := arg.(*parse.PipeNode); ok {
				f.arguments(sub, root)
				continue
			}
			if j == 0 && (len(c.Args) > 1 || i > 0) {
				continue
			}
			if literal := f.literal(arg, root); literal != nil {
				c.Args[j] = literal
			}
		}
	}
}

// literal is the node of a string, bool or number of the values, or nil.
func (f *folder) literal(n parse.Node, root bool) parse.Node {
	field, ok := n.(*parse.FieldNode)
	if !ok || !root || field.Ident[0] != "Values" {
		return nil
	}
	switch v := f.in.values.at(field.Ident[1:]...).(type) {
	case string:
		return &parse.StringNode{NodeType: parse.NodeString, Pos: field.Pos, Quoted: strconv.Quote(v), Text: v}
	case bool:
		return &parse.BoolNode{NodeType: parse.NodeBool, Pos: field.Pos, True: v}
	default:
		return nil
	}
}
