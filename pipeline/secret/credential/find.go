// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package credential finds credentials in objects other than Secrets, where every reader of the published objects
// can read them. It recognizes them by their own form, not by the names of fields, so that false positives are
// rare; a password that looks like any other text is not found.
package credential

import (
	"maps"
	"slices"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// Code is the stable code of the results.
const Code = "credential"

// Find returns a warning for each field of a document that holds a credential, in order, with the line where the
// document is of a file. Secrets, and what cannot be read, have none. No result holds a value.
func Find(doc *manifest.Document) result.Results {
	if !mayHold(doc.Text()) {
		return nil
	}
	object, err := doc.Object()
	if err != nil {
		return nil
	}
	ref := result.RefTo(object)
	if ref.Kind == "Secret" {
		return nil
	}
	var found result.Results
	walkTexts(object, nil, func(path []any, value string) {
		name := formOf(value)
		if name == "" {
			return
		}
		one := result.Result{
			Severity: result.Warning, ResourceRef: &ref, Field: &result.Field{Path: workload.FieldString(path)},
			Tags:    map[string]string{result.TagCode: Code},
			Message: name + " can be read by all who can read what is published; keep it in a Secret that is not, and replace it if others have seen it",
		}
		if doc.Path() != "" {
			line, _, _ := doc.Locate(path...)
			one.File = &result.File{Path: doc.Path(), Index: doc.Index(), Line: line}
		}
		found = append(found, one)
	})
	return found
}

// walkTexts calls visit with each text of a value, in the order of sorted keys.
func walkTexts(value any, path []any, visit func(path []any, text string)) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			walkTexts(value[key], append(slices.Clip(path), key), visit)
		}
	case []any:
		for i, element := range value {
			walkTexts(element, append(slices.Clip(path), i), visit)
		}
	case string:
		visit(path, value)
	}
}

// IsOne reports whether a text holds a credential, as Find would find it in a field.
func IsOne(text string) bool { return formOf(text) != "" }
