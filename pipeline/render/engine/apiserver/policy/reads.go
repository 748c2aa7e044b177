// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/environment"
)

// read is what an expression reads, with the variables that it uses.
type read struct {
	authorizer, user, namespace bool
	// fields are the fields of the object.
	fields [][]string
}

// readsUnknownValues reports whether the expression reads unknown values. The answer of an authorizer is always
// unknown.
func (r read) readsUnknownValues(v variant) bool {
	return r.authorizer || r.user && !v.user || r.namespace && !v.namespace
}

func (r *read) mergeReads(other read) {
	r.authorizer, r.user, r.namespace = r.authorizer || other.authorizer, r.user || other.user, r.namespace || other.namespace
	r.fields = append(r.fields, other.fields...)
}

// reads is what the expressions of a policy read, by their indexes.
type reads struct {
	conditions, validations, messages, annotations []read
}

func readsOf(spec *admissionv1.ValidatingAdmissionPolicySpec, minor uint) (reads, []Problem) {
	var out reads
	var problems []Problem
	env, err := environmentOf(minor).Env(environment.StoredExpressions)
	if err != nil {
		return out, []Problem{{Message: err.Error()}}
	}
	known := map[string]read{}
	of := func(text string, path ...any) read {
		if text == "" {
			return read{}
		}
		r, err := readOf(env, text, known)
		if err != nil {
			problems = append(problems, Problem{Path: append([]any{"spec"}, path...), Message: err.Error()})
		}
		return r
	}
	for i, v := range spec.Variables {
		known[v.Name] = of(v.Expression, "variables", i, "expression")
	}
	for i, c := range spec.MatchConditions {
		out.conditions = append(out.conditions, of(c.Expression, "matchConditions", i, "expression"))
	}
	for i, v := range spec.Validations {
		out.validations = append(out.validations, of(v.Expression, "validations", i, "expression"))
		out.messages = append(out.messages, of(v.MessageExpression, "validations", i, "messageExpression"))
	}
	for i, a := range spec.AuditAnnotations {
		out.annotations = append(out.annotations, of(a.ValueExpression, "auditAnnotations", i, "valueExpression"))
	}
	return out, problems
}

// readOf finds what an expression reads; known holds the variables before it.
func readOf(env *cel.Env, text string, known map[string]read) (read, error) {
	parsed, issues := env.Parse(text)
	if issues.Err() != nil {
		return read{}, issues.Err()
	}
	w := &walker{known: known}
	w.walk(ast.NavigateAST(parsed.NativeRep()))
	return w.out, nil
}

// walker walks an expression from the outside in.
type walker struct {
	known map[string]read
	out   read
}

func (w *walker) walk(e ast.NavigableExpr) {
	if root, path, ok := readFieldChain(e); ok && w.recordFieldChain(root, path) {
		return
	}
	for _, child := range e.Children() {
		w.walk(child)
	}
}

// recordFieldChain records a chain of fields that begins with a name and reports whether the API server provides that
// name.
func (w *walker) recordFieldChain(root string, path []string) bool {
	switch root {
	case "authorizer":
		w.out.authorizer = true
	case "namespaceObject":
		w.out.namespace = true
	case "request":
		if len(path) == 0 || path[0] == "userInfo" {
			w.out.user = true
		}
	case "object":
		w.out.fields = append(w.out.fields, path)
	case "variables":
		if len(path) == 0 {
			for _, r := range w.known {
				w.out.mergeReads(r)
			}
			return true
		}
		known := w.known[path[0]]
		w.out.authorizer, w.out.user = w.out.authorizer || known.authorizer, w.out.user || known.user
		w.out.namespace = w.out.namespace || known.namespace
		w.out.fields = append(w.out.fields, known.fields...)
	default:
		return false
	}
	return true
}

// readFieldChain reads a chain of fields: object.spec, object.?spec and object["spec"] alike.
func readFieldChain(e ast.NavigableExpr) (root string, path []string, ok bool) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), nil, true
	case ast.SelectKind:
		children := e.Children()
		if len(children) != 1 {
			return "", nil, false
		}
		root, path, ok = readFieldChain(children[0])
		return root, append(path, e.AsSelect().FieldName()), ok
	case ast.CallKind:
		name := e.AsCall().FunctionName()
		children := e.Children()
		if len(children) != 2 || name != operators.Index && name != operators.OptIndex && name != operators.OptSelect {
			return "", nil, false
		}
		if children[1].Kind() != ast.LiteralKind {
			return "", nil, false
		}
		key, isText := children[1].AsLiteral().(types.String)
		if !isText {
			return "", nil, false
		}
		root, path, ok = readFieldChain(children[0])
		return root, append(path, string(key)), ok
	}
	return "", nil, false
}

// commonFieldPath returns the field of an object that expressions about it are about: what all of the fields that they
// read have in common.
func (r read) commonFieldPath() []any {
	var common []string
	for i, f := range r.fields {
		if i == 0 {
			common = f
			continue
		}
		n := 0
		for n < len(f) && n < len(common) && f[n] == common[n] {
			n++
		}
		common = common[:n]
	}
	var out []any
	for _, key := range common {
		out = append(out, key)
	}
	return out
}
