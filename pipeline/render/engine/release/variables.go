// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prerig/prerig/internal/lazyregexp"
)

// variable matches a variable that kustomize-controller substitutes.
var variable = lazyregexp.New(`\$\{#?([_a-zA-Z][_a-zA-Z0-9]*)`)

// FindVariable returns the path of the first field whose text or key has a variable of Flux that is asked for, and its
// name; "" where none has. Keys are visited in order.
func FindVariable(value any, wanted func(name string) bool) (field, name string) {
	return findVariable("", value, wanted)
}

func findVariable(at string, value any, wanted func(name string) bool) (field, name string) {
	switch value := value.(type) {
	case string:
		for _, match := range variable.FindAllStringSubmatch(value, -1) {
			if wanted(match[1]) {
				return at, match[1]
			}
		}
	case []any:
		for i, element := range value {
			if field, name = findVariable(fmt.Sprintf("%s[%d]", at, i), element, wanted); name != "" {
				return field, name
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			below := key
			if at != "" {
				below = at + "." + key
			}
			if _, name = findVariable("", key, wanted); name != "" {
				return below, name
			}
			if field, name = findVariable(below, value[key], wanted); name != "" {
				return field, name
			}
		}
	}
	return "", ""
}

// literalHint is what to do about a variable in a release.
const literalHint = "build its Kustomization with spec.build.flux, which substitutes it; where the text is meant as it is, " +
	"annotate the object with " + substituteKey + ": disabled"

// substituteKey is the label or annotation by which kustomize-controller leaves an object as it is.
const substituteKey = "kustomize.toolkit.fluxcd.io/substitute"

// checkVariables refuses variables of Flux that nothing has substituted in a part of an object: charts would render
// their text.
func (s *Set) checkVariables(in *Object, at string, value any) (field, message string) {
	if s.in.Substituted || isLiteral(in) {
		return "", ""
	}
	below, name := FindVariable(value, func(string) bool { return true })
	if name == "" {
		return "", ""
	}
	return strings.TrimSuffix(at+"."+below, "."), fmt.Sprintf("the variable %s has no value here; %s", name, literalHint)
}

// isLiteral reports whether an object asks that its text is left as it is.
func isLiteral(o *Object) bool {
	metadata, _ := o.Value["metadata"].(map[string]any)
	for _, key := range []string{"annotations", "labels"} {
		values, _ := metadata[key].(map[string]any)
		if values[substituteKey] == "disabled" {
			return true
		}
	}
	return false
}
