// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// templateLine is a line of an injection template that sets a field, by the keys around it. The text is read by its indentation, without
// its actions, so that a field that an action prints as a whole belongs to the key above it.
type templateLine struct {
	number int
	path   []*templateKey
}

// templateKey is a key, or an element of a list with the values that identify it.
type templateKey struct {
	indent    int
	name      string
	isElement bool
	ids       []string
}

// keyLine matches a key with its value.
var keyLine = lazyregexp.New(`^["']?([A-Za-z0-9_./-]+)["']?:(?: +["']?(.*?)["']?)?$`)

// flowID matches a value that identifies an element in flow style.
var flowID = lazyregexp.New(`[{,] *(?:name|mountPath|containerPort|key|ip): *["']?([^,}"']+)`)

// identifying are the keys whose values name the elements of lists in the paths of fields.
var identifying = []string{"name", "mountPath", "containerPort", "key", "ip"}

// readTemplateLines returns the lines with keys.
func readTemplateLines(text string) []templateLine {
	var out []templateLine
	var stack []*templateKey
	push := func(k *templateKey) {
		for len(stack) > 0 && stack[len(stack)-1].indent >= k.indent {
			stack = stack[:len(stack)-1]
		}
		stack = append(stack, k)
	}
	for i, line := range strings.Split(text, "\n") {
		content := strings.TrimLeft(line, " ")
		indent := len(line) - len(content)
		if rest, ok := strings.CutPrefix(content, "- "); ok {
			// An element may be at the indentation of its list's key.
			element := &templateKey{indent: indent*2 + 1, isElement: true}
			push(element)
			content, indent = strings.TrimLeft(rest, " "), indent+2
			if strings.HasPrefix(content, "{") && !strings.HasPrefix(content, "{{") {
				for _, found := range flowID.FindAllStringSubmatch(content, -1) {
					element.ids = append(element.ids, found[1])
				}
				out = append(out, templateLine{i + 1, slices.Clone(stack)})
				continue
			}
		}
		found := keyLine.FindStringSubmatch(strings.TrimSpace(content))
		if found == nil {
			continue
		}
		push(&templateKey{indent: indent * 2, name: found[1]})
		if above := len(stack) - 2; above >= 0 && stack[above].isElement && slices.Contains(identifying, found[1]) {
			stack[above].ids = append(stack[above].ids, found[2])
		}
		out = append(out, templateLine{i + 1, slices.Clone(stack)})
	}
	return out
}

// lineOfField returns the first line that sets a field or, if none does, the deepest field around it, and how much of the path that is.
func lineOfField(lines []templateLine, field string) (number, depth int) {
	wanted := splitField(field)
	for _, line := range lines {
		n := 0
		for n < len(line.path) && n < len(wanted) && line.path[n].matches(wanted[n]) {
			n++
		}
		if n == len(line.path) && n > depth {
			number, depth = line.number, n
		}
	}
	return number, depth
}

// matches reports whether the key is a part of a field's path. Native sidecars and containers are in either list of a template.
func (k *templateKey) matches(part string) bool {
	if element, ok := strings.CutPrefix(part, "["); ok {
		id, _, _ := strings.Cut(element, "/")
		return k.isElement && slices.ContainsFunc(k.ids, func(text string) bool {
			return text == element || text == id || strings.HasPrefix(text, "{{") && strings.Contains(text, `"`+id+`"`)
		})
	}
	return !k.isElement && (k.name == part || part == "initContainers" && k.name == "containers")
}

// splitField returns the parts of a path: keys, and the names of elements behind an opening bracket.
func splitField(field string) (out []string) {
	for field != "" {
		switch {
		case strings.HasPrefix(field, `["`):
			key, rest, _ := strings.Cut(field[2:], `"]`)
			out, field = append(out, key), rest
		case field[0] == '[':
			element, rest, _ := strings.Cut(field, "]")
			out, field = append(out, element), rest
		case field[0] == '.':
			field = field[1:]
		default:
			end := strings.IndexAny(field, ".[")
			if end < 0 {
				end = len(field)
			}
			out, field = append(out, field[:end]), field[end:]
		}
	}
	return out
}
