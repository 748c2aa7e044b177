// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
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
					return path // a key of a list of mappings: the list says enough
				}
				key = i
			}
		} else {
			key, text = firstKey(text, object)
		}
		path = append(path, key)
		object = child(object, key)
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

func child(object, key any) any {
	switch k := key.(type) {
	case string:
		fields, _ := object.(map[string]any)
		return fields[k]
	case int:
		if list, ok := object.([]any); ok && k >= 0 && k < len(list) {
			return list[k]
		}
	}
	return nil
}

// errorMessage is what the API server says about a field, without the field, which stands beside it.
func errorMessage(o Object, err *field.Error) string {
	if isSecret(o) {
		return err.Type.String() + ": " + err.Detail // the value is nobody's to see
	}
	return err.ErrorBody()
}

func isSecret(o Object) bool {
	ref := o.Ref()
	return ref.Kind == "Secret" && ref.APIVersion == "v1"
}
