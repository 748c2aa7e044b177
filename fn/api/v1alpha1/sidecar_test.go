// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"
)

func TestSidecarProblems(t *testing.T) {
	for name, tc := range map[string]struct{ sidecar, want string }{
		"nothing":              {"{name: a, select: {default: Inject}}", "sidecars[0].template: is empty, and there are no containers and objects either"},
		"no name":              {"{template: x, select: {default: Inject}}", "sidecars[0].name: is empty"},
		"bad name":             {"{name: A_b, template: x, select: {default: Inject}}", `sidecars[0].name: "A_b" is not a name`},
		"selects none":         {"{name: a, template: x}", "sidecars[0].select: selects no pod"},
		"selects only to skip": {"{name: a, template: x, select: {rules: [{kinds: [Job], action: Skip}]}}", "selects no pod"},
		"rule of nothing":      {"{name: a, template: x, select: {rules: [{action: Inject}]}}", "select.rules[0]: matches every pod"},
		"rule on nothing":      {"{name: a, template: x, select: {rules: [{'on': Namespace, names: [a], action: Inject}]}}", "select.rules[0].on: needs labels or annotations"},
		"rule without action":  {"{name: a, template: x, select: {rules: [{names: [a]}]}}", "select.rules[0].action: is required"},
		"label":                {"{name: a, template: x, select: {rules: [{labels: {matchLabels: {a: 'b c'}}, action: Inject}]}}", "select.rules[0].labels.matchLabels.a:"},
		"annotation name":      {"{name: a, template: x, select: {rules: [{annotations: {matchLabels: {'a b': c}}, action: Inject}]}}", `"a b" is not the name of an annotation`},
		"annotation values":    {"{name: a, template: x, select: {rules: [{annotations: {matchExpressions: [{key: a, operator: In}]}, action: Inject}]}}", "matchExpressions[0].values: is empty; In needs values"},
		"annotation no values": {"{name: a, template: x, select: {rules: [{annotations: {matchExpressions: [{key: a, operator: Exists, values: [x]}]}, action: Inject}]}}", "must be empty; Exists has no values"},
		"annotation of none":   {"{name: a, template: x, select: {rules: [{annotations: {}, action: Inject}]}}", "select.rules[0].annotations: is empty"},
		"built-in template":    {"{builtIn: fluent-bit, template: x}", "sidecars[0].template: excludes builtIn"},
		"parameter name":       {"{name: a, template: x, select: {default: Inject}, parameters: [{name: a-b}]}", "parameters[0].name:"},
		"parameter twice":      {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p}, {name: p}]}", `"p" is already given as parameters[0]`},
		"parameter type":       {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p, type: integer}]}", `"integer" is not one of string, int`},
		"prefix, annotation":   {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p, prefix: a, annotation: b}]}", "parameters[0].prefix: excludes annotation"},
		"aliases alone":        {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p, aliases: [b]}]}", "parameters[0].aliases: need annotation"},
		"bounds of a string":   {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p, minimum: '1'}]}", "parameters[0].minimum: needs the type int"},
		"pattern":              {"{name: a, template: x, select: {default: Inject}, parameters: [{name: p, pattern: '('}]}", "parameters[0].pattern: is not a regular expression"},
		"names twice":          {"{name: a, select: {default: Inject}, parameters: [{name: p, type: list}], containers: [{names: [a], namesFrom: p, template: x}]}", "containers[0].namesFrom: excludes names"},
		"names from nothing":   {"{name: a, select: {default: Inject}, containers: [{namesFrom: p, template: x}]}", `"p" is not a parameter`},
		"names from a string":  {"{name: a, select: {default: Inject}, parameters: [{name: p}], containers: [{namesFrom: p, template: x}]}", `"p" is not a parameter of type list`},
		"container template":   {"{name: a, select: {default: Inject}, containers: [{template: ' '}]}", "containers[0].template: is empty"},
		"before nothing":       {"{name: a, template: x, select: {default: Inject}, order: {position: Before}}", "order.container: is empty; position: Before needs"},
		"first of something":   {"{name: a, template: x, select: {default: Inject}, order: {initPosition: First, initContainer: a}}", "order.initContainer: has no meaning"},
		"guard label":          {"{name: a, template: x, select: {default: Inject}, guard: {labels: {a: 'b c'}}}", "guard.labels.a: is not a label"},
		"own annotations":      {"{name: a, template: x, select: {default: Inject}, ownAnnotations: ['']}", "ownAnnotations[0]: is empty"},
		"unknown field":        {"{name: a, template: x, select: {defualt: Inject}}", "select.defualt: unknown field, did you mean default?"},
		"a position":           {"{name: a, template: x, select: {default: Inject}, order: {position: first}}", `order.position: "first" is not one of First, Last, Before, After, did you mean First?`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec:\n  sidecars:\n  - " + tc.sidecar + "\n"))
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "line 6: ") {
				t.Errorf("got %v, want %q with its line", err, tc.want)
			}
		})
	}
}

// TestSidecarNames sees that a built-in sidecar's name counts where it has none of its own.
func TestSidecarNames(t *testing.T) {
	_, err := Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec:\n  sidecars:\n  - {builtIn: dapr}\n  - {builtIn: dapr}\n"))
	if err == nil || !strings.Contains(err.Error(), `line 7: spec.sidecars[1].name: "dapr" is already given as sidecars[0]`) {
		t.Errorf("got %v", err)
	}
	if _, err := Parse([]byte("apiVersion: prerig.dev/v1alpha1\nkind: InjectionPolicy\nmetadata: {name: x}\nspec:\n  sidecars:\n  - {builtIn: dapr}\n  - {builtIn: dapr, name: other}\n")); err != nil {
		t.Error(err)
	}
}
