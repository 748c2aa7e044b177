// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"fmt"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with a policy.
type Problem struct {
	// Path of the key: map keys (string) and list indexes (int).
	Path []any
	// Line and Column in the file, counted from 1; 0 where they are not known.
	Line, Column int
	// Message says what is wrong and what to do, without the path.
	Message string
}

// Field is Path for people: spec.webhooks[0].name.
func (p Problem) Field() string {
	var b strings.Builder
	for _, e := range p.Path {
		switch e := e.(type) {
		case int:
			b.WriteString("[" + strconv.Itoa(e) + "]")
		case string:
			if e == "" || strings.ContainsAny(e, ".[]/\" \n") {
				b.WriteString("[" + strconv.Quote(e) + "]")
				continue
			}
			if b.Len() > 0 {
				b.WriteByte('.')
			}
			b.WriteString(e)
		}
	}
	return b.String()
}

func (p Problem) String() string {
	var b strings.Builder
	if p.Line > 0 {
		fmt.Fprintf(&b, "line %d: ", p.Line)
	}
	if f := p.Field(); f != "" {
		b.WriteString(f + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// PolicyError is everything that is wrong with a policy.
type PolicyError struct {
	// Name of the policy, empty where it is not known.
	Name string
	// Problems in the order of the file. There is at least one.
	Problems []Problem
}

func (e *PolicyError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	what := "reading InjectionPolicy"
	if e.Name != "" {
		what += " " + strconv.Quote(e.Name)
	}
	return what + ": " + strings.Join(lines, "; ")
}

// problems collects what is wrong.
type problems struct {
	list []Problem
}

func (ps *problems) add(at []any, format string, args ...any) {
	ps.list = append(ps.list, Problem{Path: append([]any(nil), at...), Message: fmt.Sprintf(format, args...)})
}

func child(at []any, e any) []any { return append(at[:len(at):len(at)], e) }
