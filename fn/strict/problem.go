// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package strict reads Go types from YAML and names everything that is wrong, each with the path of its key, its line and
// what was probably meant. The policies, the pipelines and the daemon's configuration are read with it.
package strict

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Problem is one thing that is wrong with what was read.
type Problem struct {
	// Path of the key: map keys (string) and list indexes (int).
	Path []any
	// Line and Column in the file, counted from 1; 0 where they are not known.
	Line, Column int
	// Message describes the problem and what to do, without the path.
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

// locateInSource finds the line of the key, or of the nearest part of its path that exists.
func (p *Problem) locateInSource(where Locator) {
	for path := p.Path; p.Line == 0 && len(path) > 0; path = path[:len(path)-1] {
		if line, col, ok := where.Locate(path...); ok {
			p.Line, p.Column = line, col
		}
	}
}

// Locator knows where keys are in a file: line and column count from 1. Document is one, and so are the documents of package
// manifest.
type Locator interface {
	Locate(path ...any) (line, col int, ok bool)
}

// Problems collects what is wrong, in the order in which it was found.
type Problems struct{ List []Problem }

// Add adds a problem with the key at a path.
func (ps *Problems) Add(at []any, format string, args ...any) {
	ps.List = append(ps.List, Problem{Path: append([]any(nil), at...), Message: fmt.Sprintf(format, args...)})
}

// Locate sets the line of every problem, and sorts them in the order of the file.
func (ps *Problems) Locate(where Locator) {
	for i := range ps.List {
		ps.List[i].locateInSource(where)
	}
	sort.SliceStable(ps.List, func(i, j int) bool { return ps.List[i].Line < ps.List[j].Line })
}

// Child returns the path of an element (int) or key (string) of what is at a path. The path itself is not changed.
func Child(at []any, e any) []any { return append(at[:len(at):len(at)], e) }

// WrongType adds the problem that a value is not what it must be, such as "a map".
func (ps *Problems) WrongType(at []any, v any, want string) {
	switch v := v.(type) {
	case nil:
		ps.Add(at, "has no value; it must be %s, or remove the key", want)
	case string:
		ps.Add(at, "must be %s, is the text %s", want, quoteShort(v))
	case map[string]any, []any:
		text := Describe(v)
		if want == wantText && len(at) > 0 && slices.Contains(documentKeys, at[len(at)-1]) {
			text += "; to write it as a text, begin it with | after the colon"
		}
		ps.Add(at, "must be %s, is %s", want, text)
	default:
		text := Describe(v)
		if want == wantText {
			text += "; put it in quotes"
		}
		ps.Add(at, "must be %s, is %s", want, text)
	}
}

// documentKeys are the keys of texts that are YAML documents themselves, which people write as maps.
var documentKeys = []any{"meshConfig", "config", "values", "mesh"}

// Describe returns what a value is, in a few words: a text in quotes and shortened if it is long, "a map", "a list", a number.
func Describe(v any) string {
	switch v := v.(type) {
	case string:
		return quoteShort(v)
	case map[string]any:
		return "a map"
	case []any:
		return "a list"
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return fmt.Sprint(v)
}

func quoteShort(s string) string {
	if r := []rune(s); len(r) > 40 {
		return strconv.Quote(string(r[:40])) + "…"
	}
	return strconv.Quote(s)
}
