// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"slices"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/strict"
)

// Source is where the content of a policy comes from.
type Source struct {
	// File is the policy's file; empty where it is not known.
	File string
	// Flags are the values that flags set.
	Flags []FlagValue

	// Text is the content of the file.
	Text []byte
}

// FlagValue is a field of a policy that a flag sets.
type FlagValue struct {
	// Flag has the name with its dashes, and Field is the path, such as spec.defaultNamespace.
	Flag, Field, Value string
}

// FlagOf returns the flag that sets a field.
func (s Source) FlagOf(path []any) (FlagValue, bool) {
	field := strict.FieldPath(path...)
	i := slices.IndexFunc(s.Flags, func(f FlagValue) bool { return f.Field == field })
	if i < 0 {
		return FlagValue{}, false
	}
	return s.Flags[i], true
}

// Place returns the file and the line of a field, or of the nearest part of its path that exists; nil where the file
// is not known. Where the field is a text of several lines, line counts in it, from 1; 0 is the field itself.
func (s Source) Place(path []any, line int) *result.File {
	if s.File == "" {
		return nil
	}
	out := &result.File{Path: s.File}
	if doc, err := strict.ReadOne(s.Text, MaxBytes); err == nil {
		out.Line = doc.LineIn(path, line)
	}
	return out
}
