// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/prerig/prerig/pipeline/render/gate"
)

// fieldPath reads a path as the API server writes it, such as spec.ports[0].name or data[a.b], where a key may have dots of its own: of
// those that fit, the longest key that the object has is meant.
func fieldPath(text string, object any) []any {
	var path []any
	for text = strings.TrimPrefix(text, "."); text != ""; text = strings.TrimPrefix(text, ".") {
		var key any
		if strings.HasPrefix(text, "[") {
			inside, rest, closed := strings.Cut(text[1:], "]")
			if !closed {
				return path
			}
			key, text = inside, rest
			if _, isList := object.([]any); isList {
				i, err := strconv.Atoi(inside)
				if err != nil {
					return path // a key of a list of mappings: the list is precise enough
				}
				key = i
			}
		} else {
			key, text = firstKey(text, object)
		}
		path = append(path, key)
		object = gate.Child(object, key)
	}
	return path
}

// firstKey cuts the first key off a path.
func firstKey(text string, object any) (key any, rest string) {
	fields, _ := object.(map[string]any)
	for end := len(text); end > 0; end = strings.LastIndexAny(text[:end], ".[") {
		if _, ok := fields[text[:end]]; ok {
			return text[:end], text[end:]
		}
	}
	if end := strings.IndexAny(text, ".["); end > 0 {
		return text[:end], text[end:]
	}
	return text, ""
}

// errorMessage returns the API server's message about a field, without the field, which is shown next to it.
func errorMessage(o gate.Object, err *field.Error) string {
	if isSecret(o) {
		return err.Type.String() + ": " + err.Detail // the value must stay hidden
	}
	return err.ErrorBody()
}

func isSecret(o gate.Object) bool {
	ref := o.Ref()
	return ref.Kind == "Secret" && ref.APIVersion == "v1"
}
