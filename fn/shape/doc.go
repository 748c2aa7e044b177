// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package shape reads what workloads have in common from their text, without parsing it: a key that is the text with its slots left out.
// Slots are scalars, such as names and images, that an injection only copies. Documents of one key have the same lines but for their slots.
//
// The scan is strict. A text that it does not understand with certainty (anchors, tags, keys in quotes, collections in flow style over
// several lines, …) has no key, and a value that is not of the class of its slot stays in the key as it is written.
package shape
