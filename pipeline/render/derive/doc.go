// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package derive derives random-looking values from a key and a name: texts, numbers, private keys, certificates
// and password hashes.
//
// The same key and name yield the same bytes with every version of Go and of Prerig. Hence this package asks no
// function of the standard library for randomness: its key functions do not promise how they use the reader they
// are passed, and ignore it since Go 1.26.
package derive
