// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"

	"github.com/prerig/prerig/fn/strict"
)

// codeReads are the values that not only templates read, but the injector itself.
var codeReads = [][]string{
	{"global", "hub"}, {"global", "tag"}, {"global", "variant"}, {"global", "network"},
	{"global", "proxy", "image"}, {"global", "proxy_init", "image"}, {"global", "proxy", "holdApplicationUntilProxyStarts"},
	{"global", "proxy", "resources"}, {"global", "multiCluster", "clusterName"}, {hookValues, "rewriteAppHTTPProbe"},
	{hookValues, "templates"}, {hookValues, "defaultTemplates"}, {hookValues, "alwaysInjectSelector"}, {hookValues, "neverInjectSelector"},
	{hookValues, "injectedAnnotations"}, {"global", "proxy", "autoInject"}, {hookValues, "enableNamespacesByDefault"},
	{hookValues, "objectSelector"}, {hookValues, "useLegacySelectors"}, {hookValues, "injectLabel"}, {hookValues, "revisionLabelPreference"},
	{"pilot", "cni", "enabled"}, {"istio_cni", "enabled"}, {"global", "istiocni", "enabled"},
}

// readValues are the keys of the values that something reads. One without keys below it is read as a whole.
type readValues map[string]readValues

func (r readValues) addReadPath(path []string) {
	if len(path) == 0 {
		return
	}
	below, known := r[path[0]]
	switch {
	case known && len(below) == 0: // it is read as a whole already
	case len(path) == 1:
		r[path[0]] = readValues{}
	default:
		if below == nil {
			below = readValues{}
			r[path[0]] = below
		}
		below.addReadPath(path[1:])
	}
}

// checkOverrides rejects overrides that no cluster accepts, and those without effect: keys that are not in the values and that
// neither a template nor the injector reads.
func checkOverrides(overrides map[string]any, base Values, templates map[string]*Template) error {
	if err := checkOverrideValues(overrides, base); err != nil {
		return err
	}
	reads := valueReads{read: readValues{}, bound: map[string][][]string{}}
	for _, path := range codeReads {
		reads.read.addReadPath(path)
	}
	for _, t := range templates {
		for _, sub := range t.tmpl.Templates() {
			if sub.Tree != nil && sub.Root != nil && !reads.collectValuePaths(sub.Root) {
				return nil
			}
		}
	}
	return unreadKey(overrides, base, reads.read, nil)
}

// unreadKey returns an error about the first key, in order, that is never read.
func unreadKey(over, base map[string]any, read readValues, at []string) error {
	for _, key := range slices.Sorted(maps.Keys(over)) {
		path := append(at[:len(at):len(at)], key)
		below, isRead := read[key]
		under, there := base[key]
		if nested := dottedKey(key); nested != "" && !isRead && !there {
			return overrideError(path, "a key with dots is one name, and the values do not have it; write {%s}", nested)
		}
		if !isRead && !there {
			known := readValues{}
			for k := range base {
				known[k] = nil
			}
			for k := range read {
				known[k] = nil
			}
			where := "there"
			if len(at) > 0 {
				where = "below " + strings.Join(at, ".")
			}
			names := slices.Sorted(maps.Keys(known))
			return overrideError(path, "the values do not have it and no template reads it, so it would change nothing%s; the keys %s are %s",
				strict.DidYouMean(key, names), where, strings.Join(names, ", "))
		}
		if there && !isOfOneForm(over[key], under) {
			return overrideError(path, "must be %s, as in the values", describeValueKind(under))
		}
		sub, isMap := over[key].(map[string]any)
		if !isMap || isRead && len(below) == 0 {
			continue
		}
		baseMap, baseIsMap := under.(map[string]any)
		if !isRead && baseIsMap && len(baseMap) == 0 {
			continue // a map with arbitrary content
		}
		if err := unreadKey(sub, baseMap, below, path); err != nil {
			return err
		}
	}
	return nil
}

// overrideError is an error about one of the overrides.
func overrideError(path []string, format string, args ...any) error {
	at := []any{"injector", "overrides"}
	for _, key := range path {
		at = append(at, key)
	}
	return strict.AtField(fmt.Errorf("reading injector.overrides.%s: %s", strings.Join(path, "."), fmt.Sprintf(format, args...)), at...)
}

// isOfOneForm reports whether a value can replace another: null can replace everything, and anything can replace
// null, an empty map or an empty text.
func isOfOneForm(value, base any) bool {
	if value == nil || base == nil || base == "" {
		return true
	}
	if empty, ok := base.(map[string]any); ok && len(empty) == 0 {
		return true
	}
	return describeValueKind(value) == describeValueKind(base)
}

// describeValueKind returns what a value is in words.
func describeValueKind(value any) string {
	switch value.(type) {
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	}
	return oneValue
}

// oneValue is what a text, a number, true or false is in messages.
const oneValue = "one value"

// valueReads are what templates read of the values, followed through variables.
type valueReads struct {
	read readValues
	// bound maps variables to the paths they refer to, all of them if several variables of a name are declared.
	bound map[string][][]string
}

// collectValuePaths adds the paths below .Values that a node reads. It is false where the values are read as a whole.
func (r valueReads) collectValuePaths(n parse.Node) bool {
	ok := true
	each := func(nodes ...parse.Node) {
		for _, n := range nodes {
			ok = r.collectValuePaths(n) && ok
		}
	}
	branch := func(b *parse.BranchNode) {
		each(b.Pipe, b.List)
		if b.ElseList != nil {
			each(b.ElseList)
		}
	}
	switch n := n.(type) {
	case *parse.ListNode:
		if n != nil {
			each(n.Nodes...)
		}
	case *parse.ActionNode:
		if r.bindValuesVariable(n.Pipe) {
			return true
		}
		each(n.Pipe)
	case *parse.IfNode:
		branch(&n.BranchNode)
	case *parse.WithNode:
		branch(&n.BranchNode)
	case *parse.RangeNode:
		branch(&n.BranchNode)
	case *parse.TemplateNode:
		if n.Pipe != nil {
			each(n.Pipe)
		}
	case *parse.PipeNode:
		for _, c := range n.Cmds {
			if paths := r.pathsOfIndexCall(c); len(paths) > 0 {
				ok = r.addReadPaths(paths) && ok
				continue
			}
			each(c.Args...)
		}
	case *parse.ChainNode:
		each(n.Node)
	case *parse.FieldNode, *parse.VariableNode:
		ok = r.addReadPaths(r.pathsReadBy(n))
	}
	return ok
}

// bindValuesVariable records a variable that refers to a part of the values, such as $global := .Values.global, which
// by itself does not read any of it. It reports whether the pipeline does only that.
func (r valueReads) bindValuesVariable(pipe *parse.PipeNode) bool {
	if len(pipe.Decl) != 1 || len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	paths := r.pathsReadBy(pipe.Cmds[0].Args[0])
	if len(paths) == 0 {
		return false
	}
	name := pipe.Decl[0].Ident[0]
	r.bound[name] = append(r.bound[name], paths...)
	return true
}

// pathsReadBy returns the paths in the values that a field or a variable refers to, or none if it refers to something
// other than the values. The path of the whole values is empty.
func (r valueReads) pathsReadBy(n parse.Node) [][]string {
	var ident []string
	switch n := n.(type) {
	case *parse.FieldNode:
		ident = n.Ident
	case *parse.VariableNode:
		if bound := r.bound[n.Ident[0]]; len(bound) > 0 {
			var paths [][]string
			for _, path := range bound {
				paths = append(paths, slices.Concat(path, n.Ident[1:]))
			}
			return paths
		}
		if n.Ident[0] == "$" {
			ident = n.Ident[1:]
		}
	}
	if len(ident) == 0 || ident[0] != "Values" {
		return nil
	}
	return [][]string{ident[1:]}
}

// addReadPaths notes that paths are read. It is false where one of them is all of the values.
func (r valueReads) addReadPaths(paths [][]string) bool {
	ok := true
	for _, path := range paths {
		r.read.addReadPath(path)
		ok = ok && len(path) > 0
	}
	return ok
}

// pathsOfIndexCall returns the paths of a call such as index .Values "global" "x".
func (r valueReads) pathsOfIndexCall(c *parse.CommandNode) [][]string {
	if len(c.Args) < 3 {
		return nil
	}
	if f, ok := c.Args[0].(*parse.IdentifierNode); !ok || f.Ident != "index" {
		return nil
	}
	var keys []string
	for _, arg := range c.Args[2:] {
		s, ok := arg.(*parse.StringNode)
		if !ok {
			break
		}
		keys = append(keys, s.Text)
	}
	var paths [][]string
	for _, path := range r.pathsReadBy(c.Args[1]) {
		if path = slices.Concat(path, keys); len(path) > 0 {
			paths = append(paths, path)
		}
	}
	return paths
}
