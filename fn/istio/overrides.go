// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"strings"
	"text/template/parse"
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

func (r readValues) add(path []string) {
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
		below.add(path[1:])
	}
}

// checkOverrides refuses overrides that would change nothing: keys that are not in the values and that neither a template
// nor the injector reads.
func (in *Injector) checkOverrides(base Values) error {
	if len(in.opts.Overrides) == 0 {
		return nil
	}
	read := readValues{}
	for _, path := range codeReads {
		read.add(path)
	}
	for _, t := range in.templates {
		for _, sub := range t.tmpl.Templates() {
			if sub.Tree != nil && sub.Root != nil && !collectValues(sub.Root, read) {
				return nil
			}
		}
	}
	return unreadKey(in.opts.Overrides, base, read, nil)
}

// unreadKey is an error about the first key in order that nothing reads.
func unreadKey(over, base map[string]any, read readValues, at []string) error {
	for _, key := range sortedKeys(over) {
		path := append(at[:len(at):len(at)], key)
		below, isRead := read[key]
		under, there := base[key]
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
			return fmt.Errorf("reading injector.overrides.%s: the values do not have it and no template reads it, so it would change nothing; the keys %s are %s",
				strings.Join(path, "."), where, strings.Join(sortedKeys(known), ", "))
		}
		sub, isMap := over[key].(map[string]any)
		if !isMap || isRead && len(below) == 0 {
			continue
		}
		baseMap, baseIsMap := under.(map[string]any)
		if !isRead && baseIsMap && len(baseMap) == 0 {
			continue // a map that anything may stand in
		}
		if err := unreadKey(sub, baseMap, below, path); err != nil {
			return err
		}
	}
	return nil
}

// collectValues adds the paths below .Values that a node reads. It is false where the values are read as a whole.
func collectValues(n parse.Node, read readValues) bool {
	ok := true
	each := func(nodes ...parse.Node) {
		for _, n := range nodes {
			ok = collectValues(n, read) && ok
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
			if path, indexed := indexedValues(c); indexed {
				read.add(path)
				continue
			}
			each(c.Args...)
		}
	case *parse.ChainNode:
		each(n.Node)
	case *parse.FieldNode:
		ok = addValues(n.Ident, read)
	case *parse.VariableNode:
		if n.Ident[0] == "$" {
			ok = addValues(n.Ident[1:], read)
		}
	}
	return ok
}

func addValues(ident []string, read readValues) bool {
	if len(ident) == 0 || ident[0] != "Values" {
		return true
	}
	read.add(ident[1:])
	return len(ident) > 1
}

// indexedValues is the path of a call such as index .Values "global" "x".
func indexedValues(c *parse.CommandNode) ([]string, bool) {
	if len(c.Args) < 3 {
		return nil, false
	}
	if f, ok := c.Args[0].(*parse.IdentifierNode); !ok || f.Ident != "index" {
		return nil, false
	}
	var path []string
	switch n := c.Args[1].(type) {
	case *parse.FieldNode:
		path = n.Ident
	case *parse.VariableNode:
		path = n.Ident[1:]
	}
	if len(path) == 0 || path[0] != "Values" {
		return nil, false
	}
	path = append([]string(nil), path[1:]...)
	for _, arg := range c.Args[2:] {
		s, ok := arg.(*parse.StringNode)
		if !ok {
			break
		}
		path = append(path, s.Text)
	}
	return path, len(path) > 0
}
