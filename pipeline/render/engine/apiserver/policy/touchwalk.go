// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"
)

// touchWalker finds what the expressions of a policy read. What it does not understand reads all that it is given.
type touchWalker struct {
	env *cel.Env
	// variables are those of the policy that are but a chain of fields. Of others, all that they read counts wherever they are used.
	variables map[string]touch
	// scope are the variables of comprehensions around, with the elements that they are; nil for those that are read already.
	scope map[string]*touch
	out   []touch
	all   bool
}

func newTouchWalker(minor uint) *touchWalker {
	env, err := environmentOf(minor).Env(environment.StoredExpressions)
	return &touchWalker{env: env, variables: map[string]touch{}, scope: map[string]*touch{}, all: err != nil}
}

func (w *touchWalker) addVariables(list []admissionv1.Variable) {
	for _, v := range list {
		parsed := w.parse(v.Expression)
		if parsed == nil {
			continue
		}
		if chain, ok := w.chainOf(parsed); ok {
			w.variables[v.Name] = chain
			continue
		}
		w.walk(parsed)
	}
}

func (w *touchWalker) addExpression(text string) {
	if parsed := w.parse(text); parsed != nil {
		w.walk(parsed)
	}
}

// addContainerNames adds the names of containers: an apply configuration merges those of equal names.
func (w *touchWalker) addContainerNames() {
	for _, list := range []string{"containers", "initContainers", "ephemeralContainers"} {
		w.out = append(w.out, touch{root: "object", path: []string{"spec", list, anyElement, "name"}})
	}
}

func (w *touchWalker) parse(text string) ast.Expr {
	if text == "" || w.all {
		return nil
	}
	parsed, issues := w.env.Parse(text)
	if issues.Err() != nil {
		w.all = true
		return nil
	}
	return parsed.NativeRep().Expr()
}

// walk records what an expression reads.
func (w *touchWalker) walk(e ast.Expr) {
	if chain, ok := w.chainOf(e); ok {
		w.record(chain, wholly)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.walkOperand(e.AsSelect().Operand(), e.AsSelect().IsTestOnly())
	case ast.CallKind:
		w.walkCall(e.AsCall())
	case ast.ListKind:
		for _, one := range e.AsList().Elements() {
			w.walk(one)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.walk(entry.AsMapEntry().Key())
			w.walk(entry.AsMapEntry().Value())
		}
	case ast.StructKind:
		w.walkStruct(e.AsStruct())
	case ast.ComprehensionKind:
		w.walkComprehension(e.AsComprehension())
	case ast.UnspecifiedExprKind:
		w.all = true
	}
}

// walkOperand records what the operand of a selection is read for: has() asks for keys, which no two pods of a shape have differently.
func (w *touchWalker) walkOperand(e ast.Expr, presence bool) {
	if chain, ok := w.chainOf(e); ok && presence {
		w.record(chain, itself)
		return
	}
	w.walk(e)
}

func (w *touchWalker) walkCall(call ast.CallExpr) {
	args := slices.Clone(call.Args())
	if call.IsMemberFunction() {
		args = append(args, call.Target())
	}
	how := wholly
	switch {
	case call.FunctionName() == "size" && len(args) == 1:
		how = itself
	case call.FunctionName() == operators.In && len(args) == 2:
		w.walk(args[0])
		args, how = args[1:], elements
	}
	for _, arg := range args {
		if chain, ok := w.chainOf(arg); ok {
			w.record(chain, how)
			continue
		}
		w.walk(arg)
	}
}

// plainOperations are the operations of a JSONPatch that write what the expression computes. The others read the pod by themselves.
var plainOperations = []string{"add", "replace", "remove"}

func (w *touchWalker) walkStruct(s ast.StructExpr) {
	plain := s.TypeName() != "JSONPatch"
	for _, field := range s.Fields() {
		f := field.AsStructField()
		w.walk(f.Value())
		if f.Name() == "op" && f.Value().Kind() == ast.LiteralKind {
			op, ok := f.Value().AsLiteral().(types.String)
			plain = plain || ok && slices.Contains(plainOperations, string(op))
		}
	}
	w.all = w.all || !plain
}

// walkComprehension takes the variables for the elements, so that of elements only what is used counts.
func (w *touchWalker) walkComprehension(c ast.ComprehensionExpr) {
	var element *touch
	if chain, ok := w.chainOf(c.IterRange()); ok {
		w.record(chain, itself)
		if chain.root != "" {
			chain.path = append(slices.Clone(chain.path), anyElement)
			element = &chain
		}
	} else {
		w.walk(c.IterRange())
	}
	w.walk(c.AccuInit())
	names := map[string]*touch{c.AccuVar(): nil, c.IterVar(): element}
	if c.HasIterVar2() {
		names[c.IterVar()], names[c.IterVar2()] = nil, element // the first is the index or key
	}
	outer := map[string]*touch{}
	for name, stands := range names {
		if before, had := w.scope[name]; had {
			outer[name] = before
		}
		w.scope[name] = stands
	}
	w.walk(c.LoopCondition())
	w.walk(c.LoopStep())
	w.walk(c.Result())
	for name := range names {
		delete(w.scope, name)
	}
	for name, before := range outer {
		w.scope[name] = before
	}
}

// record records a read of a chain. A chain without a root is read already.
func (w *touchWalker) record(chain touch, how touchKind) {
	if chain.root == "" {
		return
	}
	w.all = w.all || chain.root == "variables"
	chain.how = how
	w.out = append(w.out, chain)
}

// chainOf reads a chain of fields: object.spec, object.?spec, object["spec"] and object.list[0].
func (w *touchWalker) chainOf(e ast.Expr) (touch, bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return w.rootOf(e.AsIdent()), true
	case ast.SelectKind:
		if e.AsSelect().IsTestOnly() {
			return touch{}, false
		}
		return w.extend(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		name := call.FunctionName()
		if len(call.Args()) != 2 || name != operators.Index && name != operators.OptIndex && name != operators.OptSelect {
			return touch{}, false
		}
		if call.Args()[1].Kind() != ast.LiteralKind {
			return touch{}, false
		}
		switch key := call.Args()[1].AsLiteral().(type) {
		case types.String:
			return w.extend(call.Args()[0], string(key))
		case types.Int:
			return w.extend(call.Args()[0], anyElement)
		}
	}
	return touch{}, false
}

// rootOf returns the chain that a name is short for.
func (w *touchWalker) rootOf(name string) touch {
	if stands, bound := w.scope[name]; bound {
		if stands == nil {
			return touch{}
		}
		return *stands
	}
	return touch{root: name}
}

// extend returns the chain of an operand with a further field.
func (w *touchWalker) extend(operand ast.Expr, key string) (touch, bool) {
	chain, ok := w.chainOf(operand)
	if !ok || chain.root == "" {
		return chain, ok
	}
	if chain.root == "variables" && len(chain.path) == 0 {
		known, isChain := w.variables[key]
		if isChain {
			return known, true
		}
		return touch{}, true // what it reads is recorded
	}
	chain.path = append(slices.Clone(chain.path), key)
	return chain, true
}
