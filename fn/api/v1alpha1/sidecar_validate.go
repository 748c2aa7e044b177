// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/prerig/prerig/fn/strict"
	"github.com/prerig/prerig/internal/lazyregexp"
)

// parameterTypes are the types of parameters.
var parameterTypes = []string{"", "string", "int", "number", "bool", "duration", "quantity", "list", "json"}

var parameterName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9]*$`)

func (ps *problems) validateSidecars(at []any, sidecars []Sidecar) {
	seen := map[string]int{}
	for i, s := range sidecars {
		e, name := child(at, i), s.Name
		if name == "" {
			name = s.BuiltIn
		}
		if name == "" {
			ps.Add(child(e, "name"), "is empty")
		} else if first, ok := seen[name]; ok {
			ps.Add(child(e, "name"), "%q is already given as sidecars[%d]", name, first)
		} else {
			seen[name] = i
			ps.dnsLabel(child(e, "name"), name)
		}
		sidecarProblems{ps, e, s}.validate()
	}
}

// Problems returns what is wrong with a sidecar by itself. Paths begin below the sidecar.
func (s Sidecar) Problems() []strict.Problem {
	ps := &problems{}
	sidecarProblems{ps, nil, s}.validate()
	return ps.List
}

// sidecarProblems collects what is wrong with one sidecar.
type sidecarProblems struct {
	*problems
	at      []any
	sidecar Sidecar
}

func (ps sidecarProblems) validate() {
	at, s := ps.at, ps.sidecar
	switch {
	case s.BuiltIn != "":
		for _, f := range []struct {
			name string
			set  bool
		}{{"template", s.Template != ""}, {"containers", len(s.Containers) > 0}, {"objects", s.Objects != ""}} {
			if f.set {
				ps.Add(child(at, f.name), "excludes builtIn; change the built-in sidecar by its values, or copy its policy and change that")
			}
		}
	case strings.TrimSpace(s.Template) == "" && len(s.Containers) == 0 && strings.TrimSpace(s.Objects) == "":
		ps.Add(child(at, "template"), "is empty, and there are no containers and objects either: there is nothing to inject")
	}
	ps.validateSelected()
	ps.validateRules()
	lists := ps.validateParameters()
	for i, prefix := range s.OwnAnnotations {
		if strings.TrimSpace(prefix) == "" {
			ps.Add(append(child(at, "ownAnnotations"), i), "is empty, so that every annotation would be meant")
		}
	}
	for i, c := range s.Containers {
		ps.validateContainerPatch(append(child(at, "containers"), i), c, lists)
	}
	ps.validateOrder()
	ps.validateGuard()
}

// validateSelected rejects a selection that can never match.
func (ps sidecarProblems) validateSelected() {
	s := ps.sidecar.Select
	if ps.sidecar.BuiltIn != "" {
		return
	}
	for _, r := range s.Rules {
		if r.Action == SidecarInject || r.Action == SidecarFail {
			return
		}
	}
	if s.Default != SidecarInject {
		ps.Add(child(ps.at, "select"), "selects no pod; add a rule with the action Inject, or set default: Inject")
	}
}

func (ps sidecarProblems) validateRules() {
	at := append(child(ps.at, "select"), "rules")
	for i, r := range ps.sidecar.Select.Rules {
		e := child(at, i)
		if r.Labels == nil && r.Annotations == nil && len(r.Kinds)+len(r.Names)+len(r.Namespaces) == 0 {
			ps.Add(e, "matches every pod; set labels, annotations, kinds, names or namespaces, or use default")
		}
		if r.On == "Namespace" && r.Labels == nil && r.Annotations == nil {
			ps.Add(child(e, "on"), "needs labels or annotations to look at; to match the name of the namespace use namespaces")
		}
		ps.validateSelector(child(e, "labels"), r.Labels)
		ps.validateTexts(child(e, "annotations"), r.Annotations)
	}
}

// validateTexts checks a selector of annotations, whose values may be any text.
func (ps *problems) validateTexts(at []any, s *LabelSelector) {
	if s == nil {
		return
	}
	if len(s.MatchLabels)+len(s.MatchExpressions) == 0 {
		ps.Add(at, "is empty")
	}
	for _, key := range slices.Sorted(maps.Keys(s.MatchLabels)) {
		ps.annotationName(append(child(at, "matchLabels"), key), key)
	}
	for i, r := range s.MatchExpressions {
		e := append(child(at, "matchExpressions"), i)
		ps.annotationName(child(e, "key"), r.Key)
		in := r.Operator == "In" || r.Operator == "NotIn"
		switch {
		case in && len(r.Values) == 0:
			ps.Add(child(e, "values"), "is empty; %s needs values", r.Operator)
		case !in && len(r.Values) > 0:
			ps.Add(child(e, "values"), "must be empty; %s has no values", r.Operator)
		}
	}
}

func (ps *problems) annotationName(at []any, name string) {
	if msgs := validation.IsQualifiedName(strings.ToLower(name)); len(msgs) > 0 {
		ps.Add(at, "%q is not the name of an annotation: %s", name, strings.Join(msgs, "; "))
	}
}

// validateParameters returns the names of those that are lists, or nil where that cannot be known.
func (ps sidecarProblems) validateParameters() map[string]bool {
	lists, seen := map[string]bool{}, map[string]int{}
	for i, p := range ps.sidecar.Parameters {
		e := append(child(ps.at, "parameters"), i)
		if first, ok := seen[p.Name]; ok {
			ps.Add(child(e, "name"), "%q is already given as parameters[%d]", p.Name, first)
		}
		seen[p.Name] = i
		lists[p.Name] = p.Type == "list"
		ps.validateParameter(e, p)
	}
	if ps.sidecar.BuiltIn != "" {
		return nil
	}
	return lists
}

func (ps *problems) validateParameter(at []any, p SidecarParameter) {
	if !parameterName.MatchString(p.Name) {
		ps.Add(child(at, "name"), "%q is not a name that templates can read as .Params.NAME: letters and digits, a letter first", p.Name)
	}
	if !slices.Contains(parameterTypes, p.Type) {
		ps.Add(child(at, "type"), "%q is not one of %s", p.Type, strings.Join(parameterTypes[1:], ", "))
	}
	if p.Prefix != "" && (p.Annotation != "" || len(p.Aliases) > 0) {
		ps.Add(child(at, "prefix"), "excludes annotation and aliases; keep one of them")
	}
	if p.Annotation == "" && len(p.Aliases) > 0 {
		ps.Add(child(at, "aliases"), "need annotation beside them")
	}
	if p.Annotation != "" {
		ps.annotationName(child(at, "annotation"), p.Annotation)
	}
	for i, alias := range p.Aliases {
		ps.annotationName(append(child(at, "aliases"), i), alias)
	}
	bounded := p.Type == "int" || p.Type == "number" || p.Type == "duration" || p.Type == "quantity"
	for _, bound := range []struct{ key, value string }{{"minimum", p.Minimum}, {"maximum", p.Maximum}} {
		if bound.value != "" && !bounded {
			ps.Add(child(at, bound.key), "needs the type int, number, duration or quantity")
		}
	}
	if p.Pattern != "" {
		if _, err := regexp.Compile(p.Pattern); err != nil {
			ps.Add(child(at, "pattern"), "is not a regular expression: %v", err)
		}
	}
}

func (ps sidecarProblems) validateContainerPatch(at []any, c ContainerPatch, lists map[string]bool) {
	if len(c.Names) > 0 && c.NamesFrom != "" {
		ps.Add(child(at, "namesFrom"), "excludes names; keep one of them")
	}
	if isList, ok := lists[c.NamesFrom]; c.NamesFrom != "" && lists != nil && !isList {
		why := "is not a parameter"
		if ok {
			why = "is not a parameter of type list"
		}
		ps.Add(child(at, "namesFrom"), "%q %s", c.NamesFrom, why)
	}
	if strings.TrimSpace(c.Template) == "" {
		ps.Add(child(at, "template"), "is empty")
	}
}

func (ps sidecarProblems) validateOrder() {
	at, o := child(ps.at, "order"), ps.sidecar.Order
	for _, f := range []struct{ position, container, key, of string }{
		{o.Position, o.Container, "container", "position"}, {o.InitPosition, o.InitContainer, "initContainer", "initPosition"},
	} {
		relative := f.position == PositionBefore || f.position == PositionAfter
		switch {
		case relative && f.container == "":
			ps.Add(child(at, f.key), "is empty; %s: %s needs the name of a container", f.of, f.position)
		case !relative && f.container != "":
			ps.Add(child(at, f.key), "has no meaning without %s: Before or After", f.of)
		}
	}
}

func (ps sidecarProblems) validateGuard() {
	at, g := child(ps.at, "guard"), ps.sidecar.Guard
	for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
		e := append(child(at, "labels"), key)
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(g.Labels[key])...); len(msgs) > 0 {
			ps.Add(e, "is not a label: %s", strings.Join(msgs, "; "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Annotations)) {
		ps.annotationName(append(child(at, "annotations"), key), key)
	}
}
