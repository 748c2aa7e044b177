// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
)

// partKind says what a part of a template's own text is for the pods of a class.
type partKind int

const (
	// impurePart may be another thing for each pod.
	impurePart partKind = iota
	// plainText is text, or a mark of steps.
	plainText
	// purePart prints the same for all, and sets variables to the same values.
	purePart
	// pureCondition is an if that holds for all or for none, and has impure parts in it.
	pureCondition
)

// dotKind says what the dot is at a place.
type dotKind int

const (
	rootDot   dotKind = iota // the data of the whole
	pureDot                  // something that is the same for the class
	impureDot                // something else
)

// purity knows which parts of a template are the same for a class of pods, whatever the class.
type purity struct {
	// aliases are variables for the metadata of the pod.
	aliases map[string]bool
	// tainted are variables that may differ in the class, at any place of the template.
	tainted map[string]bool
	// read are variables that anything reads.
	read map[string]bool
}

// newPurity looks at a template. It returns nil where a part that differs may change a map that others see.
func newPurity(t *Template) *purity {
	p := &purity{aliases: map[string]bool{}, tainted: map[string]bool{}, read: map[string]bool{}}
	p.findAliases(t.tmpl.Root)
	for p.taintList(t.tmpl.Root) {
	}
	noteReads(t.tmpl.Root, p.read)
	impure := &parse.ListNode{NodeType: parse.NodeList}
	p.collectImpure(t.tmpl.Root, impure)
	if changesOthers(impure) {
		return nil
	}
	for _, sub := range t.tmpl.Templates() {
		if sub.Tree != nil && sub.Root != nil && sub.Name() != t.name && changesOthers(sub.Root) {
			return nil
		}
	}
	return p
}

// findAliases finds variables that are declared once, at the top, as the pod's metadata.
func (p *purity) findAliases(root *parse.ListNode) {
	u := newVariableUse()
	u.list(root)
	for _, n := range root.Nodes {
		a, ok := n.(*parse.ActionNode)
		if !ok || len(a.Pipe.Decl) != 1 || a.Pipe.IsAssign || len(a.Pipe.Cmds) != 1 || len(a.Pipe.Cmds[0].Args) != 1 {
			continue
		}
		name := a.Pipe.Decl[0].Ident[0]
		if len(u.values[name]) == 1 && p.isMeta(a.Pipe.Cmds[0].Args[0], rootDot) {
			p.aliases[name] = true
		}
	}
}

// isMeta reports whether a node is the metadata of the pod.
func (p *purity) isMeta(n parse.Node, dot dotKind) bool {
	switch n := n.(type) {
	case *parse.FieldNode:
		return dot == rootDot && len(n.Ident) == 1 && n.Ident[0] == "ObjectMeta"
	case *parse.VariableNode:
		return n.Ident[0] == "$" && len(n.Ident) == 2 && n.Ident[1] == "ObjectMeta" || len(n.Ident) == 1 && p.aliases[n.Ident[0]]
	}
	return false
}

// taintList taints what parts that may differ set, and reports whether that was anything new.
func (p *purity) taintList(l *parse.ListNode) bool {
	if l == nil {
		return false
	}
	again := false
	for _, n := range l.Nodes {
		switch p.kindOf(n) {
		case pureCondition:
			branch, _ := n.(*parse.IfNode)
			again = p.taintList(branch.List) || again
			again = p.taintList(branch.ElseList) || again
		case impurePart:
			u := newVariableUse()
			u.list(&parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{n}})
			for name := range u.values {
				again = again || !p.tainted[name]
				p.tainted[name] = true
			}
		case plainText, purePart:
		}
	}
	return again
}

// collectImpure appends the parts that may differ.
func (p *purity) collectImpure(l, out *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch p.kindOf(n) {
		case pureCondition:
			branch, _ := n.(*parse.IfNode)
			p.collectImpure(branch.List, out)
			p.collectImpure(branch.ElseList, out)
		case impurePart:
			out.Nodes = append(out.Nodes, n)
		case plainText, purePart:
		}
	}
}

// changesOthers reports whether a list changes a map that it has not made in the same call.
func changesOthers(l *parse.ListNode) bool {
	u := newVariableUse()
	u.list(l)
	return slices.ContainsFunc(u.calls, func(call mutatingCall) bool { return !u.changesOwn(call) })
}

// changesOwn reports whether a call changes a map that is made for it.
func (u *variableUse) changesOwn(call mutatingCall) bool {
	args := call.command.Args[1:]
	if call.piped || len(args) == 0 {
		return false
	}
	own, ok := args[0].(*parse.PipeNode)
	return ok && u.makesOwnTree(own, call.keys)
}

// kindOf says what a part of the template's own text is, outside of loops.
func (p *purity) kindOf(n parse.Node) partKind {
	if _, text := n.(*parse.TextNode); text {
		return plainText
	}
	if a, ok := n.(*parse.ActionNode); ok && len(a.Pipe.Decl) == 1 && p.aliases[a.Pipe.Decl[0].Ident[0]] {
		return purePart
	}
	if p.isPure(n, rootDot) {
		return purePart
	}
	if branch, ok := n.(*parse.IfNode); ok && len(branch.Pipe.Decl) == 0 && p.isPureValue(branch.Pipe, rootDot) &&
		!declares(branch.List) && !declares(branch.ElseList) {
		return pureCondition
	}
	return impurePart
}

// declares reports whether a list declares variables of its own, which must not be seen after it.
func declares(l *parse.ListNode) bool {
	return l != nil && slices.ContainsFunc(l.Nodes, func(n parse.Node) bool {
		a, ok := n.(*parse.ActionNode)
		return ok && len(a.Pipe.Decl) > 0 && !a.Pipe.IsAssign
	})
}

// isPure reports whether a statement is the same for the class with all that is in it.
func (p *purity) isPure(n parse.Node, dot dotKind) bool {
	switch n := n.(type) {
	case *parse.TextNode, *parse.BreakNode, *parse.ContinueNode, *parse.CommentNode:
		return true
	case *parse.ActionNode:
		return p.isPureValue(n.Pipe, dot)
	case *parse.IfNode:
		return p.isPureValue(n.Pipe, dot) && p.isPureList(n.List, dot) && p.isPureList(n.ElseList, dot)
	case *parse.WithNode:
		return p.isPureValue(n.Pipe, dot) && p.isPureList(n.List, pureDot) && p.isPureList(n.ElseList, dot)
	case *parse.RangeNode:
		return p.isPureValue(n.Pipe, dot) && p.isPureList(n.List, pureDot) && p.isPureList(n.ElseList, dot)
	default:
		return false
	}
}

func (p *purity) isPureList(l *parse.ListNode, dot dotKind) bool {
	return l == nil || !slices.ContainsFunc(l.Nodes, func(n parse.Node) bool { return !p.isPure(n, dot) })
}

// isPureValue reports whether a value is the same for the class.
func (p *purity) isPureValue(n parse.Node, dot dotKind) bool {
	switch n := n.(type) {
	case *parse.StringNode, *parse.NumberNode, *parse.BoolNode, *parse.NilNode:
		return true
	case *parse.DotNode:
		return dot == pureDot
	case *parse.FieldNode:
		return dot == pureDot || dot == rootDot && isShared(n.Ident)
	case *parse.VariableNode:
		switch name := n.Ident[0]; {
		case name == "$":
			return isShared(n.Ident[1:])
		case p.aliases[name]:
			return len(n.Ident) > 1 && n.Ident[1] == "Annotations"
		default:
			return !p.tainted[name]
		}
	case *parse.ChainNode:
		return p.isPureValue(n.Node, dot)
	case *parse.IdentifierNode:
		return !gotemplate.Refused(n.Ident)
	case *parse.PipeNode:
		return !slices.ContainsFunc(n.Cmds, func(c *parse.CommandNode) bool { return !p.isPureCommand(c, dot) })
	default:
		return false
	}
}

func (p *purity) isPureCommand(c *parse.CommandNode, dot dotKind) bool {
	args := c.Args
	if calls(c, "annotation") && len(args) > 1 && p.isMeta(args[1], dot) {
		args = args[2:] // it reads the annotations alone
	}
	return !slices.ContainsFunc(args, func(arg parse.Node) bool { return !p.isPureValue(arg, dot) })
}

// isShared reports whether a field of the data is the same for a class.
func isShared(field []string) bool {
	if len(field) == 0 {
		return false
	}
	return samePods[field[0]] || classFields[field[0]] || len(field) > 1 && field[0] == "ObjectMeta" && field[1] == "Annotations"
}

// namesIn are the variables that a part sets or reads.
func namesIn(n parse.Node) map[string]bool {
	list := &parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{n}}
	out := map[string]bool{}
	noteReads(list, out)
	u := newVariableUse()
	u.list(list)
	for name := range u.values {
		out[name] = true
	}
	return out
}

// noteReads notes the variables that a list reads.
func noteReads(l *parse.ListNode, out map[string]bool) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			noteValueReads(n.Pipe, out)
		case *parse.TemplateNode:
			if n.Pipe != nil {
				noteValueReads(n.Pipe, out)
			}
		case *parse.IfNode:
			noteBranchReads(&n.BranchNode, out)
		case *parse.WithNode:
			noteBranchReads(&n.BranchNode, out)
		case *parse.RangeNode:
			noteBranchReads(&n.BranchNode, out)
		}
	}
}

func noteBranchReads(n *parse.BranchNode, out map[string]bool) {
	noteValueReads(n.Pipe, out)
	noteReads(n.List, out)
	noteReads(n.ElseList, out)
}

func noteValueReads(n parse.Node, out map[string]bool) {
	switch n := n.(type) {
	case *parse.VariableNode:
		out[n.Ident[0]] = true
	case *parse.ChainNode:
		noteValueReads(n.Node, out)
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			for _, arg := range c.Args {
				noteValueReads(arg, out)
			}
		}
	}
}
