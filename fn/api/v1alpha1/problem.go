// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strconv"
	"strings"

	"github.com/prerig/prerig/fn/strict"
)

// PolicyError is everything that is wrong with a policy.
type PolicyError struct {
	// Name of the policy, empty where it is not known.
	Name string
	// Problems are in the order of the file. It has at least one.
	Problems []strict.Problem
}

func (e *PolicyError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	what := "reading InjectionPolicy"
	if e.Name != "" {
		what += " " + strconv.Quote(e.Name)
	}
	return what + ": " + strings.Join(lines, "; ")
}

// problems collects what is wrong with a policy.
type problems struct{ strict.Problems }

// decodeAPIObject reads an object of this package into target, a pointer.
func (ps *problems) decodeAPIObject(at []any, v, target any) {
	strict.Decoder{Enums: enums, Open: lenientTypes, Suggest: suggestImageField}.Decode(at, v, target, &ps.Problems)
}

// imageFields are what people look for to change the proxy's image, by where it is in the injector's values.
var imageFields = map[string]string{"tag": "global.tag", "hub": "global.hub", "variant": "global.variant"}

// suggestImageField suggests where to write a value of the injector that was written as a field of the policy.
func suggestImageField(at []any, key string) string {
	value, ok := imageFields[key]
	outer := len(at) == 1 && at[0] == "spec" || len(at) > 1 && len(at) < 4 && at[1] == "istio"
	if !ok || !outer {
		return ""
	}
	return "; it is written as spec.istio.injector.overrides." + value
}

func child(at []any, e any) []any { return strict.Child(at, e) }
