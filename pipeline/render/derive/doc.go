// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package derive makes what looks random out of a key and a name: texts, numbers, private keys, certificates and hashes of passwords.
//
// The same key and name give the same bytes with every version of Go and of Prerig. Hence nothing here asks a function of the
// standard library for something random: its functions for keys do not promise what they make of a given reader, and ignore it
// since Go 1.26.
package derive
