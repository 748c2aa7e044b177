// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/manifest"
)

// maxSlots bounds the slots of a document. One with more has no key.
const maxSlots = 200

// maxText bounds the text that is scanned, in bytes, and maxColumn where it begins.
const (
	maxText   = 64 << 10
	maxColumn = 100
)

// Slot is a place in the text that a value of its own is in.
type Slot struct {
	Start, End int
	// Value is the number of the value.
	Value int
	Field Field
	class byte
}

// Scan is what a text has in common with others, and what it has not. It can be used again.
type Scan struct {
	// Key is what all texts of the shape have in common. Two texts of one key have the same lines but for the values of their slots.
	Key []byte
	// Slots are the places in the order of the text, and Values what is in them.
	Slots  []Slot
	Values []string
	// Namespace and Account are those of the workload's pods as they are written; "" where there are none.
	Namespace, Account string
	// Origin has the path and the index of internal.config.kubernetes.io, and then those of config.kubernetes.io.
	Origin [4]string

	rules  *Rules
	free   [fields]bool
	pinned []string // values that are in the key as well
	text   string
	copied int // offset up to which the text is in the key
	scanner
	origins    int
	containers []string
}

// NewScan returns a Scan by the rules.
func NewScan(r *Rules) *Scan {
	s := &Scan{rules: r}
	for f := range fields {
		s.free[f] = f != none && r.Free(f)
	}
	return s
}

// marker begins a slot in the key. No text that has a key has the character.
const marker = 0x01

// Read scans the text of a document of an apps/v1 workload, whose first byte is at a column. It returns false where the text has no key.
func (s *Scan) Read(text string, column int) bool {
	s.text, s.Key, s.Slots, s.Values, s.copied = text, append(s.Key[:0], byte(column)), s.Slots[:0], nil, 0
	s.Namespace, s.Account, s.Origin, s.origins = "", "", [4]string{}, 0
	s.pinned, s.containers = s.pinned[:0], s.containers[:0]
	if len(text) > maxText || column > maxColumn || !isPrintable(text) {
		return false
	}
	if !s.scanLines(text, column) || s.origins != strings.Count(text, originMark) {
		return false
	}
	s.Key = append(s.Key, text[s.copied:]...)
	s.addContainerOrder()
	return s.pinValues()
}

// isPrintable reports whether a text has no control characters but line breaks, and no other characters that break lines.
func isPrintable(text string) bool {
	foreign := false
	for i := range len(text) {
		c := text[i]
		if c < 0x20 && c != '\n' || c == 0x7f {
			return false
		}
		foreign = foreign || c >= 0x80
	}
	return !foreign || !strings.ContainsAny(text, "\u0085\u2028\u2029\ufeff")
}

// addContainerOrder adds the order of the containers' names to the key, as the injection sorts by them.
func (s *Scan) addContainerOrder() {
	if len(s.containers) < 2 {
		return
	}
	s.Key = append(s.Key, marker)
	for i, name := range s.containers {
		for _, other := range s.containers[:i] {
			s.Key = append(s.Key, byte('1'+strings.Compare(name, other)))
		}
	}
}

// pinValues puts the names into the key that the rest of the key has somewhere, too: an injection could compare the two.
func (s *Scan) pinValues() bool {
	named := 0
	for _, slot := range s.Slots {
		if !slot.Field.isName() || slot.Value < named {
			continue
		}
		named = slot.Value + 1
		if v := s.Values[slot.Value]; bytes.Contains(s.Key, []byte(v)) {
			s.pinned = append(s.pinned, v)
		}
	}
	s.pinContainers()
	if len(s.pinned) == 0 {
		return true
	}
	s.Slots = slices.DeleteFunc(s.Slots, func(slot Slot) bool {
		if !slot.Field.isName() || !slices.Contains(s.pinned, s.Values[slot.Value]) {
			return false
		}
		// The number distinguishes a namespace from a container of the same name.
		s.Key = append(append(append(s.Key, marker, 'p', byte(slot.Value)), s.Values[slot.Value]...), '\n')
		return true
	})
	return true
}

// pinContainers puts the names of all containers into the key where one is there, as their order counts and made-up names have the same.
func (s *Scan) pinContainers() {
	free := func(name string) bool {
		return !slices.Contains(s.pinned, name) && slices.ContainsFunc(s.Slots, func(slot Slot) bool { return slot.Field == Container && s.Values[slot.Value] == name })
	}
	for _, name := range s.containers {
		if len(s.containers) > 1 && !free(name) {
			s.pinned = append(s.pinned, s.containers...)
			return
		}
	}
}

// addSlot makes a part of the text a slot.
func (s *Scan) addSlot(f Field, class byte, start, end int) bool {
	if len(s.Slots) == maxSlots {
		return false
	}
	value := s.text[start:end]
	number := -1
	if f.isName() {
		for _, slot := range s.Slots {
			if slot.Field.isName() && s.Values[slot.Value] == value {
				number = slot.Value
				break
			}
		}
	}
	if number < 0 {
		number = len(s.Values)
		if s.Values == nil {
			s.Values = make([]string, 0, 16)
		}
		s.Values = append(s.Values, value)
	}
	s.Key = append(s.Key, s.text[s.copied:start]...)
	s.Key = append(s.Key, marker, class, byte(f), byte(number), marker)
	s.copied = end
	s.Slots = append(s.Slots, Slot{start, end, number, f, class})
	return true
}

// value handles a scalar at a node. quote is that of the text, or 0. It returns false where the text is to have no key.
func (s *Scan) value(n *node, key string, quote byte, start, end int) bool {
	v := s.text[start:end]
	switch n.what {
	case objectName, objectNamespace, accountName:
		if quote == 0 && !manifest.PlainSafe(v) {
			return false // it may be null, or no string
		}
		if n.what == objectNamespace {
			s.Namespace = v
		} else if n.what == accountName {
			s.Account = v
		}
	case containerName:
		s.containers = append(s.containers, v)
	}
	f := n.slot
	switch {
	case f == none:
		return true
	case f == Origin:
		return s.origin(key, quote, start, end)
	case !s.free[f]:
		return true
	case f == Replicas:
		if quote == 0 && numberEnd(v) == len(v) {
			return s.addSlot(f, numberClass, start, end)
		}
		return true
	case f == Quantity:
		if i := numberEnd(v); quote == 0 && i > 0 && isUnit(v[i:]) {
			return s.addSlot(f, numberClass, start, start+i)
		}
		return true
	case f == Checksum && !strings.HasPrefix(key, "checksum/"):
		return true
	case !f.isName() && !copyable(v, quote):
		return true
	case f.isName():
		return s.name(f, key, v, start, end)
	}
	return s.addSlot(f, copyClass, start, end)
}

// name handles a name.
func (s *Scan) name(f Field, key, v string, start, end int) bool {
	class := nameClass(v)
	label := f == ObjectLabel || f == Selected || f == Label
	switch {
	case class == 0 || class != dnsClass && !label,
		label && !s.rules.FreeLabel(key),
		f == Namespace && s.rules.KnownNamespace(v),
		s.rules.Reserved(v):
		return true
	}
	return s.addSlot(f, class, start, end)
}

// origin handles an annotation of the workload.
func (s *Scan) origin(key string, quote byte, start, end int) bool {
	part, value := originPart(key), s.text[start:end]
	s.origins += strings.Count(key, originMark) + strings.Count(value, originMark)
	switch {
	case part < 0 && (!isOrchestrators(key) || !copyable(value, quote)):
		return true
	case part >= 0 && (!copyable(value, quote) || s.Origin[part] != ""):
		return false
	case part >= 0:
		s.Origin[part] = value
	}
	return s.addSlot(Origin, copyClass, start, end)
}

// IsName reports whether the slot is one for names, which an injection may print.
func (s Slot) IsName() bool { return s.Field.isName() }

// IsOrigin reports whether a value is an orchestrator's annotation.
func (s *Scan) IsOrigin(value int) bool {
	return slices.ContainsFunc(s.Slots, func(slot Slot) bool { return slot.Value == value && slot.Field == Origin })
}

// With returns the text with other values in the slots.
func (s *Scan) With(values []string) string {
	var b strings.Builder
	at := 0
	for _, slot := range s.Slots {
		b.WriteString(s.text[at:slot.Start])
		b.WriteString(values[slot.Value])
		at = slot.End
	}
	b.WriteString(s.text[at:])
	return b.String()
}

// StandIn returns a made-up value of a slot's class, another for each value and round. Those of names are in the order of the names.
func (s *Scan) StandIn(slot Slot, round int) string {
	n := slot.Value + round*maxSlots
	switch slot.class {
	case dnsClass:
		rank := 0
		for _, v := range s.Values {
			if v < s.Values[slot.Value] {
				rank++
			}
		}
		return fmt.Sprintf("zqx-%03dj%s", rank+round*maxSlots, strings.Repeat("w", round*10))
	case labelClass:
		return fmt.Sprintf("Zqx_%d.j%s", n, strings.Repeat("w", round*9))
	case versionClass:
		return fmt.Sprintf("971.%d.%d", 1000+n, 973+round)
	case numberClass:
		return fmt.Sprint(97000 + n)
	}
	return fmt.Sprintf("zqc%d/j%s", n, strings.Repeat("w", round*30))
}
