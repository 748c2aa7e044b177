// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package v1alpha1 holds the InjectionPolicy: its types, strict decoding, defaults and validation, and writing it back.
//
// Reading is strict so that a typo never means "no injection": an unknown key, a key given twice, a value of the wrong
// type and a setting that contradicts another one are errors that name the key's path and line. The only places where
// unknown keys pass are metadata, where tools add their own, and webhook entries, which are pasted from a cluster.
//
// The comments of the types are their documentation and the source of the JSON Schema. Two markers in them mean
// something to the decoder as well: +enum lists the values of a field, and +lenient lets a type have unknown keys. A field
// without omitempty is required. After a change run:
//
//	go run ./schemas/generate
package v1alpha1
