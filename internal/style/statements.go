// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package style

import (
	"go/ast"
	"go/token"
	"slices"
)

// Problems returns what make verify-style refuses: unrelated initialisers, forbidden words in comments, and types with
// too many methods.
func (t *Tree) Problems() []Problem {
	return slices.Concat(t.unrelatedInitialisers(), t.forbiddenWordProblems(), t.messageProblems(), t.methodProblems())
}

// unrelatedInitialisers returns the assignments that hide before a condition: in an `if` whose condition uses no
// assigned value, and in a `switch` without a value.
func (t *Tree) unrelatedInitialisers() []Problem {
	var problems []Problem
	report := func(position token.Pos, message string) {
		problems = append(problems, Problem{Place: placeOf(t.Set.Position(position)), Message: message})
	}
	for _, source := range t.Sources {
		ast.Inspect(source.File, func(node ast.Node) bool {
			switch statement := node.(type) {
			case *ast.IfStmt:
				assignment, ok := statement.Init.(*ast.AssignStmt)
				if ok && !usesAny(statement.Cond, assignment.Lhs) {
					report(statement.Pos(), "the condition uses nothing of the assignment before it: write two statements")
				}
			case *ast.SwitchStmt:
				if statement.Init != nil && statement.Tag == nil {
					report(statement.Pos(), "a switch without a value has an initialiser: write it before the switch")
				}
			}
			return true
		})
	}
	return problems
}

// usesAny reports whether the condition mentions one of the assigned expressions.
func usesAny(condition ast.Expr, assigned []ast.Expr) bool {
	names := map[string]bool{}
	for _, expression := range assigned {
		if name := expressionText(expression); name != "" && name != "_" {
			names[name] = true
		}
	}
	used := false
	ast.Inspect(condition, func(node ast.Node) bool {
		expression, ok := node.(ast.Expr)
		if ok && names[expressionText(expression)] {
			used = true
		}
		return !used
	})
	return used
}

// expressionText returns an identifier, a selector or an index expression as text, and "" for other expressions.
func expressionText(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return expressionText(e.X) + "." + e.Sel.Name
	case *ast.IndexExpr:
		return expressionText(e.X) + "[" + expressionText(e.Index) + "]"
	case *ast.StarExpr:
		return expressionText(e.X)
	case *ast.BasicLit:
		return e.Value
	}
	return ""
}
