// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package budget

import "fmt"

// Elements counts the elements of all lists of a JSON text. Three bytes of an empty element may become hundreds in the
// type that it is decoded into, so that a bound on the bytes of an answer bounds its memory only together with this
// one. A text that is no JSON is left to what decodes it.
type Elements struct {
	// Most is the limit of their number.
	Most int

	inList          []bool // of each object and list around the current position, whether it is a list
	quoted, escaped bool
	count           int
}

// maxDepth bounds how deep objects and lists of an answer are nested; encoding/json accepts no more.
const maxDepth = 10_000

// Add counts the next part of the text. It returns an error where it has more elements than it may have.
func (e *Elements) Add(text []byte) error {
	for _, c := range text {
		switch {
		case e.escaped:
			e.escaped = false
		case e.quoted && c == '\\':
			e.escaped = true
		case c == '"':
			e.quoted = !e.quoted
		case e.quoted:
		case c == '{' || c == '[':
			e.inList = append(e.inList, c == '[')
			if c == '[' {
				e.count++
			}
		case (c == '}' || c == ']') && len(e.inList) > 0:
			e.inList = e.inList[:len(e.inList)-1]
		case c == ',' && len(e.inList) > 0 && e.inList[len(e.inList)-1]:
			e.count++
		}
		if e.count > e.Most || len(e.inList) > maxDepth {
			return fmt.Errorf("the answer has lists of more than %d elements", e.Most)
		}
	}
	return nil
}

// leastElements and bytesOfElement bound the elements of all lists of real objects, which have more bytes on average.
const leastElements, bytesOfElement = 10_000, 32

// CheckDensity returns an error where the lists of a JSON text have more elements together than a text of its length has.
func CheckDensity(text []byte) error {
	return CheckElements(text, leastElements+len(text)/bytesOfElement)
}

// CheckElements returns an error where the lists of a JSON text have more than so many elements together.
func CheckElements(text []byte, most int) error { return (&Elements{Most: most}).Add(text) }
