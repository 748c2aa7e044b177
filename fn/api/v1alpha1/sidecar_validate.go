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
			ps.add(child(e, "name"), "is empty")
		} else if first, ok := seen[name]; ok {
			ps.add(child(e, "name"), "%q is already given as sidecars[%d]", name, first)
		} else {
			seen[name] = i
			ps.dnsLabel(child(e, "name"), name)
		}
		ps.validateSidecar(e, s)
	}
}

// Problems returns what is wrong with a sidecar by itself. Paths begin below the sidecar.
func (s Sidecar) Problems() []strict.Problem {
	ps := &problems{}
	ps.validateSidecar(nil, s)
	return ps.List
}

func (ps *problems) validateSidecar(at []any, s Sidecar) {
	switch {
	case s.BuiltIn != "":
		for _, f := range []struct {
			name string
			set  bool
		}{{"template", s.Template != ""}, {"containers", len(s.Containers) > 0}, {"objects", s.Objects != ""}} {
			if f.set {
				ps.add(child(at, f.name), "excludes builtIn; change the built-in sidecar by its values, or copy its policy and change that")
			}
		}
	case strings.TrimSpace(s.Template) == "" && len(s.Containers) == 0 && strings.TrimSpace(s.Objects) == "":
		ps.add(child(at, "template"), "is empty, and there are no containers and objects either: there is nothing to inject")
	}
	if s.BuiltIn == "" {
		ps.validateSelected(child(at, "select"), s.Select)
	}
	ps.validateRules(append(child(at, "select"), "rules"), s.Select.Rules)
	lists := ps.validateParameters(child(at, "parameters"), s.Parameters, s.BuiltIn != "")
	for i, prefix := range s.OwnAnnotations {
		if strings.TrimSpace(prefix) == "" {
			ps.add(append(child(at, "ownAnnotations"), i), "is empty, so that every annotation would be meant")
		}
	}
	for i, c := range s.Containers {
		ps.validateContainerPatch(append(child(at, "containers"), i), c, lists)
	}
	ps.validateOrder(child(at, "order"), s.Order)
	ps.validateGuard(child(at, "guard"), s.Guard)
}

// validateSelected rejects a selection that can never match.
func (ps *problems) validateSelected(at []any, s SidecarSelect) {
	for _, r := range s.Rules {
		if r.Action == SidecarInject || r.Action == SidecarFail {
			return
		}
	}
	if s.Default != SidecarInject {
		ps.add(at, "selects no pod; add a rule with the action Inject, or set default: Inject")
	}
}

func (ps *problems) validateRules(at []any, rules []SidecarRule) {
	for i, r := range rules {
		e := child(at, i)
		if r.Labels == nil && r.Annotations == nil && len(r.Kinds)+len(r.Names)+len(r.Namespaces) == 0 {
			ps.add(e, "matches every pod; set labels, annotations, kinds, names or namespaces, or use default")
		}
		if r.On == "Namespace" && r.Labels == nil && r.Annotations == nil {
			ps.add(child(e, "on"), "needs labels or annotations to look at; to match the name of the namespace use namespaces")
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
		ps.add(at, "is empty")
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
			ps.add(child(e, "values"), "is empty; %s needs values", r.Operator)
		case !in && len(r.Values) > 0:
			ps.add(child(e, "values"), "must be empty; %s has no values", r.Operator)
		}
	}
}

func (ps *problems) annotationName(at []any, name string) {
	if msgs := validation.IsQualifiedName(strings.ToLower(name)); len(msgs) > 0 {
		ps.add(at, "%q is not the name of an annotation: %s", name, strings.Join(msgs, "; "))
	}
}

// validateParameters returns the names of those that are lists, or nil where that cannot be known.
func (ps *problems) validateParameters(at []any, params []SidecarParameter, builtIn bool) map[string]bool {
	lists, seen := map[string]bool{}, map[string]int{}
	for i, p := range params {
		e := child(at, i)
		if first, ok := seen[p.Name]; ok {
			ps.add(child(e, "name"), "%q is already given as parameters[%d]", p.Name, first)
		}
		seen[p.Name] = i
		lists[p.Name] = p.Type == "list"
		ps.validateParameter(e, p)
	}
	if builtIn {
		return nil
	}
	return lists
}

func (ps *problems) validateParameter(at []any, p SidecarParameter) {
	if !parameterName.MatchString(p.Name) {
		ps.add(child(at, "name"), "%q is not a name that templates can read as .Params.NAME: letters and digits, a letter first", p.Name)
	}
	if !slices.Contains(parameterTypes, p.Type) {
		ps.add(child(at, "type"), "%q is not one of %s", p.Type, strings.Join(parameterTypes[1:], ", "))
	}
	if p.Prefix != "" && (p.Annotation != "" || len(p.Aliases) > 0) {
		ps.add(child(at, "prefix"), "excludes annotation and aliases; keep one of them")
	}
	if p.Annotation == "" && len(p.Aliases) > 0 {
		ps.add(child(at, "aliases"), "need annotation beside them")
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
			ps.add(child(at, bound.key), "needs the type int, number, duration or quantity")
		}
	}
	if p.Pattern != "" {
		if _, err := regexp.Compile(p.Pattern); err != nil {
			ps.add(child(at, "pattern"), "is not a regular expression: %v", err)
		}
	}
}

func (ps *problems) validateContainerPatch(at []any, c ContainerPatch, lists map[string]bool) {
	if len(c.Names) > 0 && c.NamesFrom != "" {
		ps.add(child(at, "namesFrom"), "excludes names; keep one of them")
	}
	if isList, ok := lists[c.NamesFrom]; c.NamesFrom != "" && lists != nil && !isList {
		why := "is not a parameter"
		if ok {
			why = "is not a parameter of type list"
		}
		ps.add(child(at, "namesFrom"), "%q %s", c.NamesFrom, why)
	}
	if strings.TrimSpace(c.Template) == "" {
		ps.add(child(at, "template"), "is empty")
	}
}

func (ps *problems) validateOrder(at []any, o SidecarOrder) {
	for _, f := range []struct{ position, container, key, of string }{
		{o.Position, o.Container, "container", "position"}, {o.InitPosition, o.InitContainer, "initContainer", "initPosition"},
	} {
		relative := f.position == PositionBefore || f.position == PositionAfter
		switch {
		case relative && f.container == "":
			ps.add(child(at, f.key), "is empty; %s: %s needs the name of a container", f.of, f.position)
		case !relative && f.container != "":
			ps.add(child(at, f.key), "has no meaning without %s: Before or After", f.of)
		}
	}
}

func (ps *problems) validateGuard(at []any, g SidecarGuard) {
	for _, key := range slices.Sorted(maps.Keys(g.Labels)) {
		e := append(child(at, "labels"), key)
		if msgs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(g.Labels[key])...); len(msgs) > 0 {
			ps.add(e, "is not a label: %s", strings.Join(msgs, "; "))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(g.Annotations)) {
		ps.annotationName(append(child(at, "annotations"), key), key)
	}
}
