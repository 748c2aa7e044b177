// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package istio

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/template/parse"

	"github.com/prerig/prerig/fn/gotemplate"
)

// Specializing goes on where folding ends: most of what a folded template still asks are the pod's annotations, which are alike for
// many pods. A template is evaluated once for all pods that have the same of what it reads apart from names, labels and containers.
// The specialized template prints the same text for such a pod and takes the same steps. One that fails is rendered as it was.

const (
	// maxClasses bounds how many specialized forms a template has.
	maxClasses = 64
	// maxClassKey bounds what of a pod is kept to know it by.
	maxClassKey = 4 << 10
)

// classes are the specialized forms of a template, by what pods have in common.
type classes struct {
	mu    sync.Mutex
	known map[string]*class
}

// class are pods for which a template has one specialized form.
type class struct {
	seen        int64
	specialized func() *Template
}

// specialized returns the form of a folded template for the class of a pod; nil where it has none.
func (in *Injector) specialized(t *Template, data *TemplateData) *Template {
	if t.asWritten || in.plainProxyConfig == nil || data.ProxyConfig != in.plainProxyConfig {
		return nil
	}
	key := classKey(data)
	if key == "" {
		return nil
	}
	t.classes.mu.Lock()
	c := t.classes.known[key]
	if c == nil {
		if t.classes.known == nil || len(t.classes.known) >= maxClasses {
			t.classes.known = map[string]*class{}
		}
		shared := sharedData(data)
		c = &class{specialized: sync.OnceValue(func() *Template { return in.specialize(t, shared) })}
		t.classes.known[key] = c
	}
	c.seen++
	ready := c.seen > in.foldAfter
	t.classes.mu.Unlock()
	if !ready {
		return nil
	}
	return c.specialized()
}

// classFields are the fields of TemplateData that pods of a class have in common, beside those that all pods have. Of ObjectMeta
// they have the annotations.
var classFields = map[string]bool{
	"TypeMeta": true, "ProxyConfig": true, "EstimatedConcurrency": true, "ProxyImage": true, "ProxyInitImage": true,
	"ProxyUID": true, "ProxyGID": true,
}

// sharedData returns what a pod's data has of classFields and annotations. It does not share the annotations.
func sharedData(d *TemplateData) *TemplateData {
	out := &TemplateData{TypeMeta: d.TypeMeta, ProxyConfig: d.ProxyConfig, MeshConfig: d.MeshConfig, EstimatedConcurrency: d.EstimatedConcurrency,
		ProxyUID: d.ProxyUID, ProxyGID: d.ProxyGID}
	out.ObjectMeta.Annotations = maps.Clone(d.ObjectMeta.Annotations)
	return out
}

// classKey returns a text that is the same for two pods exactly where sharedData is, but for the proxy config; "" where it would be
// too long.
func classKey(d *TemplateData) string {
	size := 0
	for k, v := range d.ObjectMeta.Annotations {
		size += len(k) + len(v)
	}
	if size > maxClassKey {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%q %q %q %q %d %d %d %t", d.TypeMeta.APIVersion, d.TypeMeta.Kind, d.ProxyImage, d.ProxyInitImage,
		d.EstimatedConcurrency, d.ProxyUID, d.ProxyGID, d.ObjectMeta.Annotations == nil)
	for _, k := range sortedKeys(d.ObjectMeta.Annotations) {
		fmt.Fprintf(&b, " %q %q", k, d.ObjectMeta.Annotations[k])
	}
	return b.String()
}

// specialize returns the form of a template for a class; nil where it has none.
func (in *Injector) specialize(t *Template, shared *TemplateData) *Template {
	if t.tmpl.Tree == nil || t.tmpl.Root == nil {
		return nil
	}
	p := newPurity(t)
	if p == nil {
		return nil
	}
	in.complete(shared, t)
	found, err := in.evaluate(t, p, shared)
	if err != nil {
		return nil // each pod is told in its turn
	}
	w := &specialWriter{purity: p, found: found, name: t.name, marks: maps.Clone(t.marks)}
	w.findLive(t.tmpl.Root)
	tree := *t.tmpl.Tree
	tree.Root = &parse.ListNode{NodeType: parse.NodeList, Pos: t.tmpl.Root.Pos, Nodes: w.rewrite(nil, t.tmpl.Root)}
	clone, err := t.tmpl.Clone()
	if err != nil {
		return nil
	}
	if clone, err = clone.AddParseTree(t.name, &tree); err != nil {
		return nil
	}
	return &Template{name: t.name, tmpl: clone, marks: w.marks}
}

// evaluation is what came of the parts of a template that are the same for a class.
type evaluation struct {
	// texts are what parts print, and steps what they take.
	texts map[parse.Node]string
	steps map[parse.Node]int
	// taken are the sides of conditions that hold, or do not, for the class; nil where that is none.
	taken map[parse.Node]*parse.ListNode
}

// cutWriter notes where in what a template prints its parts begin and end. They begin and end with empty texts that it knows.
type cutWriter struct {
	*gotemplate.Output
	cuts map[*byte]func()
}

// Write takes a text.
func (w *cutWriter) Write(p []byte) (int, error) {
	if len(p) == 0 && cap(p) > 0 {
		if cut := w.cuts[&p[:1][0]]; cut != nil {
			cut()
			return 0, nil
		}
	}
	return w.Output.Write(p)
}

// cutAt returns an empty text that calls do where it is printed.
func (w *cutWriter) cutAt(do func()) parse.Node {
	text := make([]byte, 1)
	w.cuts[&text[0]] = do
	return &parse.TextNode{NodeType: parse.NodeText, Text: text[:0]}
}

// evaluate executes the parts of a template that are the same for a class, in their order.
func (in *Injector) evaluate(t *Template, p *purity, shared *TemplateData) (*evaluation, error) {
	found := &evaluation{texts: map[parse.Node]string{}, steps: map[parse.Node]int{}, taken: map[parse.Node]*parse.ListNode{}}
	w := &cutWriter{Output: gotemplate.NewOutput(maxRendered, t.marks), cuts: map[*byte]func(){}}
	tmpl, err := in.language.base.Clone()
	if err != nil {
		return nil, err
	}
	tree := &parse.Tree{Name: "specialize", ParseName: "specialize", Root: found.pureParts(w, p, t.tmpl.Root)}
	if tmpl, err = tmpl.AddParseTree("specialize", tree); err != nil {
		return nil, err
	}
	return found, tmpl.Execute(w, shared)
}

// pureParts returns the parts of a list that are the same for a class, each between two cuts.
func (v *evaluation) pureParts(w *cutWriter, p *purity, l *parse.ListNode) *parse.ListNode {
	out := &parse.ListNode{NodeType: parse.NodeList}
	if l == nil {
		return out
	}
	for _, n := range l.Nodes {
		switch p.kindOf(n) {
		case purePart:
			begin, steps := 0, 0
			before := w.cutAt(func() { begin, steps = w.Len(), *w.Spent })
			after := w.cutAt(func() {
				v.texts[n], v.steps[n] = string(w.Bytes()[begin:]), *w.Spent-steps
			})
			out.Nodes = append(out.Nodes, before, n, after)
		case pureCondition:
			branch := *n.(*parse.IfNode) //nolint:forcetypeassert // no other is a pureCondition
			for _, side := range []**parse.ListNode{&branch.List, &branch.ElseList} {
				whole := *side
				parts := v.pureParts(w, p, whole)
				parts.Nodes = slices.Insert(parts.Nodes, 0, w.cutAt(func() { v.taken[n] = whole }))
				*side = parts
			}
			out.Nodes = append(out.Nodes, &branch)
		case plainText, impurePart:
		}
	}
	return out
}

// specialWriter puts a specialized template together.
type specialWriter struct {
	*purity
	found *evaluation
	name  string
	marks gotemplate.Marks
	// live are variables that are read by what is not the same for the class.
	live map[string]bool
	// kept are parts that are evaluated for each pod because they set such a variable.
	kept map[parse.Node]bool
}

// findLive finds the variables that have to be there, and the parts that set them.
func (w *specialWriter) findLive(root *parse.ListNode) {
	w.live, w.kept = map[string]bool{}, map[parse.Node]bool{}
	var setters []*setter
	w.eachTaken(root, func(n parse.Node, k partKind) {
		if k == impurePart {
			w.addLive(namesIn(n))
		} else if s := setterOf(n); k == purePart && s != nil {
			setters = append(setters, s)
		}
	})
	for _, s := range setters {
		s.reach(setters)
	}
	for again := true; again; {
		again = false
		for _, s := range setters {
			if !w.kept[s.node] && anyOf(s.reached, w.live) {
				w.kept[s.node], again = true, true
				w.addLive(s.names)
			}
		}
	}
}

func (w *specialWriter) addLive(names map[string]bool) {
	for name := range names {
		if w.read[name] {
			w.live[name] = true
		}
	}
}

// setter is a part that sets variables, or changes maps.
type setter struct {
	node parse.Node
	// names are all variables that it names, sets those that it sets, and changes those whose map it changes.
	names, sets, changes map[string]bool
	// reached are the variables that have another value without it.
	reached map[string]bool
}

// setterOf returns what a part sets outside of itself; nil for nothing.
func setterOf(n parse.Node) *setter {
	s := &setter{node: n, names: namesIn(n), sets: map[string]bool{}, changes: map[string]bool{}}
	u := newVariableUse()
	u.list(&parse.ListNode{NodeType: parse.NodeList, Nodes: []parse.Node{n}})
	maps.DeleteFunc(u.assigned, func(_ string, assigned bool) bool { return !assigned })
	maps.Copy(s.sets, u.assigned)
	if a, ok := n.(*parse.ActionNode); ok {
		for _, v := range a.Pipe.Decl {
			s.sets[v.Ident[0]] = true
		}
	}
	for _, call := range u.calls {
		if !u.changesOwn(call) { // as newPurity has seen, it changes the map of a variable
			maps.Copy(s.changes, namesIn(&parse.ActionNode{NodeType: parse.NodeAction, Pipe: &parse.PipeNode{NodeType: parse.NodePipe, Cmds: []*parse.CommandNode{call.command}}}))
		}
	}
	if len(s.sets)+len(s.changes) == 0 {
		return nil
	}
	return s
}

// reach finds what the part changes: what it sets, and where it changes a map every variable that may hold the same map.
func (s *setter) reach(all []*setter) {
	holders := maps.Clone(s.changes)
	for again := true; again; {
		before := len(holders)
		for _, other := range all {
			if anyOf(other.names, holders) {
				maps.Copy(holders, other.sets)
				maps.Copy(holders, other.changes)
			}
		}
		again = len(holders) > before
	}
	s.reached = maps.Clone(s.sets)
	maps.Copy(s.reached, holders)
}

// anyOf reports whether one of the names is among others.
func anyOf(names, others map[string]bool) bool {
	for name := range names {
		if others[name] {
			return true
		}
	}
	return false
}

// eachTaken calls do for the parts of a list and of the sides that the class takes.
func (w *specialWriter) eachTaken(l *parse.ListNode, do func(parse.Node, partKind)) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		if k := w.kindOf(n); k == pureCondition {
			w.eachTaken(w.found.taken[n], do)
		} else {
			do(n, k)
		}
	}
}

// rewrite appends what stands for the parts of a list.
func (w *specialWriter) rewrite(out []parse.Node, l *parse.ListNode) []parse.Node {
	w.eachTaken(l, func(n parse.Node, k partKind) {
		if k != purePart || w.kept[n] {
			out = joinTexts(w.marks, out, n)
			return
		}
		if text := w.found.texts[n]; text != "" {
			out = joinTexts(w.marks, out, &parse.TextNode{NodeType: parse.NodeText, Pos: n.Position(), Text: []byte(text)})
		}
		if steps := w.found.steps[n]; steps > 0 {
			out = append(out, w.marks.Mark(steps, w.name, n.Position()))
		}
	})
	return out
}
