// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// marks are what templates have where YAML has a key, a value or the start of a line: the actions of Go's templates and
// of Jinja, ERB's tags, and the placeholders of scripts.
var marks = lazyregexp.New(`(?:^|[:,\[({-]\s)\s*(?:\{\{|\{%|\{#|<%|@[A-Za-z_]\w*@|%[A-Za-z_]\w*%|\{\w+\}[\w./-])|^(?:\{\{|\{%|\{#|<%)|":(?:\{\{|\{%|<%)`)

// quoted are the texts in quotes of a line, and a comment at its end.
var quoted = lazyregexp.New(`"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|(?:^|\s)#.*$`)

// blockStart is the end of a line after which a literal or folded text begins.
var blockStart = lazyregexp.New(`(?:^|[:-]\s+)[|>][-+0-9]*\s*(?:#.*)?$`)

// annotated are the comments in which ytt has its code.
var annotated = lazyregexp.New(`(?m)(?:^|\s)#@(?:[ /]|$)`)

// isTemplate reports whether a text that cannot be read as YAML has the marks of a template, outside of quotes,
// comments and literal text: a ConfigMap may well hold a template that is meant to stay one.
func isTemplate(text string) bool {
	literal := -1 // the column that a literal text is indented deeper than
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, "\r")
		trimmed := strings.TrimLeft(line, " ")
		if trimmed == "" {
			continue
		}
		column := len(line) - len(trimmed)
		if literal >= 0 {
			if column > literal {
				continue
			}
			literal = -1
		}
		bare := quoted.ReplaceAllStringFunc(trimmed, func(s string) string {
			if s[0] == '"' || s[0] == '\'' {
				return `""`
			}
			return ""
		})
		if marks.MatchString(bare) {
			return true
		}
		if blockStart.MatchString(bare) {
			literal = column
		}
	}
	return false
}

// mayBeTemplate reports whether a text contains any of a template's markers. It is very cheap.
func mayBeTemplate(text string) bool {
	return strings.Contains(text, "{{") || strings.Contains(text, "{%") || strings.Contains(text, "<%")
}

// isAnnotated reports whether a document is a template of ytt, which is YAML with code in comments.
func isAnnotated(d *manifest.Document) bool {
	text := d.Text()
	if !strings.Contains(text, "#@") || !annotated.MatchString(text) {
		return false
	}
	comments, err := d.Comments()
	return err != nil || slices.ContainsFunc(comments, annotated.MatchString)
}
