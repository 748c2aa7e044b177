// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"slices"
	"text/template"
	"text/template/parse"
)

// variableUse is what the texts of a template do with its variables, by name. Variables of the same name count as one. It decides
// whether rendering may change the injector's values, which all pods share.
type variableUse struct {
	// values are the pipelines of declarations and assignments.
	values map[string][]*parse.PipeNode
	// assigned are variables that are assigned to, and ranged those that a range declares or assigns to.
	assigned, ranged map[string]bool
	// scope are the variables that are declared at the place that the walk has reached, the last declared at the end.
	scope []scopedVariable
	// calls are the calls of functions that change a map.
	calls []mutatingCall
}

// scopedVariable is a declared variable, and whether it holds keys of a range.
type scopedVariable struct {
	name string
	key  bool
}

// mutatingCall is a call of a function that changes its first argument.
type mutatingCall struct {
	command *parse.CommandNode
	piped   bool // the last argument is not among the command's
	// scope are the variables at the call. Those of keys hold keys of ranges, unless they are assigned to.
	scope []scopedVariable
}

func newVariableUse() *variableUse {
	return &variableUse{values: map[string][]*parse.PipeNode{}, assigned: map[string]bool{}, ranged: map[string]bool{}}
}

// variablesOf walks the texts of a template and the templates that it defines.
func variablesOf(t *template.Template) *variableUse {
	u := newVariableUse()
	for _, sub := range t.Templates() {
		if sub.Tree != nil && sub.Root != nil {
			u.scope = nil
			u.visitListNode(sub.Root)
		}
	}
	return u
}

func (u *variableUse) visitListNode(l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		switch n := n.(type) {
		case *parse.ActionNode:
			u.visitPipeNode(n.Pipe, false)
		case *parse.TemplateNode:
			u.visitPipeNode(n.Pipe, false)
		case *parse.IfNode:
			u.visitBranchNode(&n.BranchNode, false)
		case *parse.WithNode:
			u.visitBranchNode(&n.BranchNode, false)
		case *parse.RangeNode:
			u.visitBranchNode(&n.BranchNode, true)
		}
	}
}

func (u *variableUse) visitBranchNode(n *parse.BranchNode, ranges bool) {
	outer := len(u.scope)
	u.visitPipeNode(n.Pipe, ranges)
	u.visitListNode(n.List)
	u.scope = u.scope[:outer]
	u.visitListNode(n.ElseList)
	u.scope = u.scope[:outer]
}

func (u *variableUse) visitPipeNode(p *parse.PipeNode, ranges bool) {
	if p == nil {
		return
	}
	for i, v := range p.Decl {
		name := v.Ident[0]
		u.assigned[name] = u.assigned[name] || p.IsAssign
		u.ranged[name] = u.ranged[name] || ranges
		u.values[name] = append(u.values[name], p)
		u.scope = append(u.scope, scopedVariable{name, ranges && i == 0 && len(p.Decl) == 2 && !p.IsAssign})
	}
	for i, c := range p.Cmds {
		if id, ok := c.Args[0].(*parse.IdentifierNode); ok && mutatingFunctions[id.Ident] {
			u.calls = append(u.calls, mutatingCall{c, i > 0, slices.Clone(u.scope)})
		}
		for _, arg := range c.Args {
			u.visitArgumentNode(arg)
		}
	}
}

func (u *variableUse) visitArgumentNode(n parse.Node) {
	switch n := n.(type) {
	case *parse.PipeNode:
		u.visitPipeNode(n, false)
	case *parse.ChainNode:
		u.visitArgumentNode(n.Node)
	}
}

// mutatesShared reports whether a call may change a map that is not the template's own, such as the injector's values. Its
// own maps are those that dict or a reader of JSON just created.
func (u *variableUse) mutatesShared() bool {
	for _, call := range u.calls {
		args := call.command.Args[1:]
		if call.piped || len(args) == 0 {
			return true
		}
		id, _ := call.command.Args[0].(*parse.IdentifierNode)
		switch id.Ident {
		case "set", "unset": // change the map alone, not what is in it
			if v, ok := args[0].(*parse.VariableNode); !ok || len(v.Ident) != 1 || !u.holdsOwnMap(v.Ident[0]) {
				return true
			}
		default: // merges nested maps too, so that a later source would change an earlier one
			if p, ok := args[0].(*parse.PipeNode); !ok || len(args) != 2 || !u.makesOwnTree(p, call.scope) {
				return true
			}
		}
	}
	return false
}

// holdsOwnMap reports whether every value of a variable is a map that dict created for it.
func (u *variableUse) holdsOwnMap(name string) bool {
	if len(u.values[name]) == 0 || u.ranged[name] {
		return false
	}
	for _, p := range u.values[name] {
		if c := onlyCommand(p); c == nil || !callsFunction(c, "dict") {
			return false
		}
	}
	return true
}

// makesOwnTree reports whether a pipeline makes a map that shares no map with anything.
func (u *variableUse) makesOwnTree(p *parse.PipeNode, scope []scopedVariable) bool {
	c := onlyCommand(p)
	if c == nil || len(p.Decl) > 0 {
		return false
	}
	if callsFunction(c, "fromJSON") || callsFunction(c, "fromJson") {
		return true
	}
	if !callsFunction(c, "dict") {
		return false
	}
	for _, arg := range c.Args[1:] {
		switch arg := arg.(type) {
		case *parse.StringNode, *parse.NumberNode, *parse.BoolNode:
		case *parse.VariableNode:
			if name := arg.Ident[0]; len(arg.Ident) != 1 || !holdsKey(scope, name) || u.assigned[name] {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// holdsKey reports whether a variable holds a key of a range.
func holdsKey(scope []scopedVariable, name string) bool {
	for _, v := range slices.Backward(scope) {
		if v.name == name {
			return v.key
		}
	}
	return false
}

// onlyCommand returns the command of a single-command pipeline, or nil.
func onlyCommand(p *parse.PipeNode) *parse.CommandNode {
	if len(p.Cmds) != 1 {
		return nil
	}
	return p.Cmds[0]
}

// callsFunction reports whether a command calls a function.
func callsFunction(c *parse.CommandNode, name string) bool {
	id, ok := c.Args[0].(*parse.IdentifierNode)
	return ok && id.Ident == name
}
