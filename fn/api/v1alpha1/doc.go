// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the InjectionPolicy: its types, strict decoding, defaults and validation, and encoding.
//
// Decoding is strict so that a typo never means "no injection": an unknown key, a duplicate key, a value of the
// wrong type and a setting that contradicts another one are errors that name the key's path and line. Unknown keys
// are only allowed in metadata, where tools add their own, and in webhook entries, which are pasted from a cluster.
//
// The comments of the types are their documentation and the source of the JSON Schema. Two markers in them are also
// read by the decoder: +enum lists the values of a field, and +lenient lets a type have unknown keys. A field
// without omitempty is required. After a change run:
//
//	go run ./schemas/generate
package v1alpha1
