// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package ambient

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/result"
)

// Level is what a note or a finding means for a move.
type Level string

// The levels: Blocked means that the workloads cannot move, Change that people have to change something first, Elsewhere that a part of the move
// belongs into files that are not here, Stays that the object is left as it is and works at a waypoint, Info that a setting has no effect any more.
const (
	Blocked   Level = "blocked"
	Change    Level = "change"
	Elsewhere Level = "elsewhere"
	Stays     Level = "stays"
	Info      Level = "info"
)

// Note is something that no step writes with the same meaning.
type Note struct {
	Namespace string `json:"namespace"`
	Object    string `json:"object,omitempty"`
	Field     string `json:"field,omitempty"`
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Level     Level  `json:"level"`
	Code      string `json:"code,omitempty"`
	Message   string `json:"message"`
	Fix       string `json:"fix,omitempty"`
}

// String is the note for people.
func (n Note) String() string {
	out := n.Message
	if n.Object != "" {
		out = strings.TrimSpace(n.Object+" "+n.Field) + ": " + out
	}
	switch {
	case n.File != "" && n.Line > 0:
		out = fmt.Sprintf("%s:%d: %s", n.File, n.Line, out)
	case n.File != "":
		out = n.File + ": " + out
	}
	if n.Code != "" {
		out += " [" + n.Code + "]"
	}
	return out
}

func (t *tree) note(o *object, field string, level Level, message string) Note {
	from, at, field := origin(t, o, field)
	return Note{
		Namespace: o.namespace, Object: o.String(), Field: field, File: from.files[at.file].Path, Line: from.lineOf(at, field), Level: level, Message: message,
	}
}

// Plan is what a move of namespaces takes.
type Plan struct {
	// Namespaces are in the order in which they should move.
	Namespaces []Namespace `json:"namespaces"`
	// Unknown are the namespaces of objects, of which no file shows whether they have sidecars.
	Unknown []string `json:"unknown,omitempty"`
	// Mesh are the notes about no single namespace, and Remarks what applies to all of them.
	Mesh    []Note   `json:"mesh,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
}

// Namespace is the plan of one namespace.
type Namespace struct {
	Name string `json:"name"`
	// State is now, change or blocked.
	State string `json:"state"`
	// Waypoint is the name of the waypoint; empty if it needs none. Reason is the object that needs it.
	Waypoint string `json:"waypoint,omitempty"`
	Reason   string `json:"reason,omitempty"`
	// Steps are the ones that change a file, and what they solve, by codes of rules.
	Steps []PlannedStep `json:"steps"`
	// Solved are the findings that the steps end, by code.
	Solved map[string]int `json:"solved,omitempty"`
	// Open are what remains: blockers first.
	Open []Note `json:"open,omitempty"`
	// Advice are findings of the lowest severity: settings without effect.
	Advice []Note `json:"advice,omitempty"`
	// Gaps are where enforcement differs on the way, and how to avoid that. Remarks are what else changes without a finding.
	Gaps    []string `json:"gaps,omitempty"`
	Remarks []string `json:"remarks,omitempty"`
	// partly reports that objects without a namespace were left out, which may be its.
	partly bool
	// Workloads is the number of workloads among the files; with none, little is known of the namespace.
	Workloads int `json:"workloads"`
	// Before and After are what sidecars and waypoints ask for.
	Before Usage `json:"before"`
	After  Usage `json:"after"`
}

// PlannedStep is a step with the number of files that it changes.
type PlannedStep struct {
	Step
	Files int `json:"files"`
}

// The states of a namespace.
const (
	stateNow     = "now"
	stateChange  = "change"
	stateBlocked = "blocked"
)

// blockers are the rules whose findings no file can solve.
var blockers = []string{"PR915", "PR926", "PR927", "PR928", "PR938", "PR951"}

// ofMesh are rules whose findings are about the mesh, wherever the object is. The plan has them once.
var ofMesh = []string{"PR928", "PR937", "PR938", "PR940", "PR942", "PR943", "PR947"}

// answered are rules whose findings the plan answers by the order of namespaces and by notes.
var answered = []string{"PR914", "PR934"}

// New plans the move. usage are the requests and limits of the sidecars of each namespace.
func New(files []File, o Options, usage map[string]Usage) (*Plan, error) {
	start, err := readTree(files, o)
	if err != nil {
		return nil, err
	}
	if err := checkNamespaces(start); err != nil {
		return nil, err
	}
	p := &Plan{Unknown: unknownNamespaces(start)}
	without := withoutNamespace(start)
	if without != "" {
		p.Mesh = append(p.Mesh, Note{Level: Change, Message: without + ": left out of the plan, whichever namespace it belongs to; set --namespace"})
	}
	names := slices.DeleteFunc(start.moving(), func(name string) bool { return name == "" })
	callers := callers(start, names)
	for _, name := range order(names, callers) {
		one, err := planNamespace(start, name, o, usage[name])
		if err != nil {
			return nil, fmt.Errorf("planning namespace %s: %w", name, err)
		}
		if without != "" && one.State == stateNow {
			one.State = stateChange
		}
		one.partly = without != ""
		one.Gaps = gaps(start, one, callers[name])
		one.Remarks = remarks(start, one)
		p.Namespaces = append(p.Namespaces, *one)
	}
	return p, p.addMesh(start, names)
}

// addMesh adds the findings about the mesh: of the control plane, its gateways to other networks, and what reads metrics.
func (p *Plan) addMesh(start *tree, names []string) error {
	found, err := findings(start, names)
	if err != nil {
		return err
	}
	for _, r := range found {
		if slices.Contains(ofMesh, r.Tags[result.TagCode]) {
			p.Mesh = append(p.Mesh, newNote("", r))
		}
	}
	for i := range p.Namespaces {
		n := &p.Namespaces[i]
		for _, note := range p.Mesh {
			switch {
			case note.Level == Blocked:
				n.State = stateBlocked
			case note.Code == "PR937" && n.State == stateNow:
				n.State = stateChange
			}
		}
	}
	if len(p.Namespaces) > 0 {
		p.Remarks = append(p.Remarks, beforeTheFirst)
		if len(p.Unknown) > 0 && len(start.options.Namespaces) == 0 {
			p.Remarks = append(p.Remarks, "Whether pods have sidecars is not known in "+strings.Join(p.Unknown, ", ")+", as no file has the labels of the namespace; --only plans these.")
		}
	}
	return nil
}

// planNamespace makes all steps in memory, and compares the findings before and after.
func planNamespace(start *tree, name string, o Options, usage Usage) (*Namespace, error) {
	out := &Namespace{Name: name, State: stateNow, Steps: []PlannedStep{}, Before: usage, Workloads: countWorkloads(start, name)}
	if need := start.needsWaypoint(name); need != nil {
		out.Waypoint, out.Reason = start.waypointName(name).Name, need.String()
		out.After = waypointUsage
	}
	o.Namespaces = []string{name}
	read := func(files []File) (*tree, error) { return readAfter(start, files, o) }
	for _, file := range o.Broken {
		if slices.ContainsFunc(start.of[name], func(o *object) bool { return start.files[o.file].Path == file }) {
			out.Open = append(out.Open, Note{Namespace: name, Level: Change, File: file, Message: "it cannot be read in full, so that no step changes it or the namespace"})
		}
	}
	files := around(start, name)
	t, err := read(files)
	if err != nil {
		return nil, err
	}
	clean, _, err := makeStep(t, "sidecars")
	if err != nil {
		return nil, err
	}
	if t, err = read(clean); err != nil {
		return nil, err
	}
	before, err := findingsIn(t, name)
	if err != nil {
		return nil, err
	}
	for _, step := range Steps {
		if t, err = read(files); err != nil {
			return nil, err
		}
		next, notes, err := makeStep(t, step.Name)
		if err != nil {
			return nil, err
		}
		if step.Name == "label" && start.namespaceObject(name) == nil {
			step.Title = "Label Services for gateways, and pods that stay out of the mesh (the Namespace is not among the files)"
		}
		if changed := countChanged(files, next); changed > 0 {
			out.Steps = append(out.Steps, PlannedStep{Step: step, Files: changed})
		}
		out.Open = append(out.Open, notes...)
		files = next
	}
	if t, err = read(files); err != nil {
		return nil, err
	}
	after, err := findingsIn(t, name)
	if err != nil {
		return nil, err
	}
	out.compare(before, after)
	return out, nil
}

// countChanged returns the number of files that differ.
func countChanged(before, after []File) (count int) {
	for i := range after {
		if !slices.Equal(after[i].Docs, before[i].Docs) && string(after[i].Bytes()) != string(before[i].Bytes()) {
			count++
		}
	}
	return count
}

// findingsIn returns the findings about one namespace and the root namespace.
func findingsIn(t *tree, name string) (result.Results, error) {
	found, err := findings(t, []string{name})
	return slices.DeleteFunc(found, func(r result.Result) bool {
		in := namespaceOf(r)
		return in != name && in != t.options.RootNamespace || slices.Contains(ofMesh, r.Tags[result.TagCode])
	}), err
}

// compare sorts what is found after all steps, and counts what they have ended.
func (n *Namespace) compare(before, after result.Results) {
	count := map[string]int{}
	for _, r := range before {
		count[r.Tags[result.TagCode]]++
	}
	for _, r := range after {
		code := r.Tags[result.TagCode]
		count[code]--
		if slices.Contains(answered, code) {
			continue
		}
		note := newNote(n.Name, originalOf(r, before))
		switch {
		case r.Severity == result.Info:
			n.Advice = append(n.Advice, note)
		case !slices.ContainsFunc(n.Open, note.isAbout):
			n.Open = append(n.Open, note)
		}
	}
	n.Solved = map[string]int{}
	for code, c := range count {
		if c > 0 && !slices.Contains(answered, code) {
			n.Solved[code] = c
		}
	}
	slices.SortStableFunc(n.Open, func(a, b Note) int { return cmp.Compare(a.Level, b.Level) })
	for _, note := range n.Open {
		switch {
		case note.Level == Blocked:
			n.State = stateBlocked
		case note.Level == Change && n.State == stateNow:
			n.State = stateChange
		}
	}
}

// isAbout reports whether another note is about the same field of the same object in the same file: a step has explained it.
func (n Note) isAbout(other Note) bool {
	return other.Object == n.Object && other.Field == n.Field && other.File == n.File && other.Line == n.Line
}

// originalOf returns the finding about the policy of which a step wrote the copy that a finding is about, if it has the same.
func originalOf(r result.Result, before result.Results) result.Result {
	for _, other := range before {
		same := other.Tags[result.TagCode] == r.Tags[result.TagCode] && other.ResourceRef != nil && r.ResourceRef != nil && other.ResourceRef.Kind == r.ResourceRef.Kind
		if same && other.ResourceRef.Name+copySuffix == r.ResourceRef.Name && other.Field != nil && r.Field != nil && other.Field.Path == r.Field.Path {
			return other
		}
	}
	return r
}

func newNote(namespace string, r result.Result) Note {
	n := Note{Namespace: namespace, Level: Change, Code: r.Tags[result.TagCode], Message: r.Message}
	if r.ResourceRef != nil {
		n.Object = r.ResourceRef.String()
	}
	if r.Field != nil {
		n.Field = r.Field.Path
	}
	if r.File != nil {
		n.File, n.Line = r.File.Path, r.File.Line
	}
	if rule, ok := lint.Lookup(n.Code); ok {
		n.Fix = strings.TrimSpace(rule.Change)
	}
	switch {
	case r.Severity == result.Info:
		n.Level = Info
	case slices.Contains(blockers, n.Code):
		n.Level = Blocked
	}
	return n
}

// callers returns, for each namespace, those that its policies name as callers and that move too.
func callers(t *tree, names []string) map[string][]string {
	out := map[string][]string{}
	for _, name := range names {
		for _, o := range t.in(name, authorizationPolicies) {
			for _, rule := range podmap.Maps(o.spec["rules"]) {
				for _, from := range podmap.Maps(rule["from"]) {
					out[name] = append(out[name], namedNamespaces(podmap.MapAt(from, "source"), names, name)...)
				}
			}
		}
		slices.Sort(out[name])
		out[name] = slices.Compact(out[name])
	}
	return out
}

func namedNamespaces(source map[string]any, names []string, own string) (out []string) {
	for _, other := range names {
		if other == own {
			continue
		}
		named := slices.Contains(textList(source["namespaces"]), other)
		for _, principal := range textList(source["principals"]) {
			named = named || strings.Contains(principal, "/ns/"+other+"/")
		}
		if named {
			out = append(out, other)
		}
	}
	return out
}

// order sorts namespaces so that callers move before those that they call; of a circle, the first by name moves first.
func order(names []string, callers map[string][]string) (out []string) {
	left := slices.Clone(names)
	for len(left) > 0 {
		i := slices.IndexFunc(left, func(name string) bool {
			return !slices.ContainsFunc(callers[name], func(c string) bool { return slices.Contains(left, c) })
		})
		i = max(i, 0)
		out = append(out, left[i])
		left = slices.Delete(left, i, i+1)
	}
	return out
}
