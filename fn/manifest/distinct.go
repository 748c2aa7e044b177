// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"slices"
	"strings"
)

// hasDistinctKeys reports whether no mapping of a document has a key twice, by its lines alone. It returns false also for what lines
// do not show, such as anchors, quoted keys and values of several lines: then the document has to be parsed.
func hasDistinctKeys(text string) bool {
	s := keyScan{mappings: make([]keysAt, 0, 12)}
	for line := range strings.Lines(text) {
		if !s.read(strings.TrimRight(line, " \r\n")) {
			return false
		}
	}
	return true
}

// keyScan reads the lines of a document in block style.
type keyScan struct {
	mappings []keysAt
	// scalar is the indentation that the lines of a block scalar exceed, if inScalar is set.
	scalar   int
	inScalar bool
}

// keysAt are the keys of a mapping so far, and their column.
type keysAt struct {
	column int
	keys   []string
}

// maxScannedKeys is the number of keys up to which comparing each with all others is fast.
const maxScannedKeys = 48

// read reads a line without its end, and returns false if it cannot, or if it repeats a key.
func (s *keyScan) read(line string) bool {
	content := strings.TrimLeft(line, " ")
	column := len(line) - len(content)
	if content == "" || s.inScalar && column > s.scalar {
		return true
	}
	s.inScalar = false
	switch {
	case content[0] == '#', line == "---":
		return true
	case content == "-":
		s.leave(column)
		return true
	case strings.HasPrefix(content, "- "):
		s.leave(column)
		item := strings.TrimLeft(content[2:], " ")
		outer := column
		column += len(content) - len(item)
		if key, value, ok := cutKey(item); ok {
			s.enter(column)
			return s.add(key, column, value)
		}
		return s.skip(item, outer)
	}
	key, value, ok := cutKey(content)
	if !ok {
		return false
	}
	s.leave(column)
	if n := len(s.mappings); n == 0 || s.mappings[n-1].column < column {
		s.enter(column)
	}
	return s.add(key, column, value)
}

// enter begins a mapping whose keys are at a column, in the memory of one that has ended.
func (s *keyScan) enter(column int) {
	n := len(s.mappings)
	if n == cap(s.mappings) {
		s.mappings = append(s.mappings, keysAt{column: column})
		return
	}
	s.mappings = s.mappings[:n+1]
	s.mappings[n].column, s.mappings[n].keys = column, s.mappings[n].keys[:0]
}

// leave ends the mappings whose keys are right of a column.
func (s *keyScan) leave(column int) {
	for n := len(s.mappings); n > 0 && s.mappings[n-1].column > column; n-- {
		s.mappings = s.mappings[:n-1]
	}
}

// add adds a key to the innermost mapping.
func (s *keyScan) add(key string, column int, value string) bool {
	at := &s.mappings[len(s.mappings)-1]
	if len(at.keys) == maxScannedKeys || slices.Contains(at.keys, key) {
		return false
	}
	at.keys = append(at.keys, key)
	return s.skip(value, column)
}

// skip returns false for a value that can have keys, or that can go on in the next line. Lines of a block scalar follow it, right of
// a column.
func (s *keyScan) skip(value string, column int) bool {
	if value == "" || value[0] == '#' || value == "{}" {
		return true
	}
	last := value[len(value)-1]
	switch value[0] {
	case '|', '>':
		s.inScalar, s.scalar = true, column
		return true
	case '"', '\'':
		return len(value) > 1 && last == value[0] && strings.Count(value, value[:1]) == 2
	case '[':
		return last == ']' && !strings.ContainsAny(value, "{\"'") && strings.Count(value, "[") == 1
	case '{', '&', '*', '!', '?', '%', '@', '`', '-':
		return value[0] == '-' && len(value) > 1 && value[1] != ' '
	}
	return !strings.Contains(value, ": ") && last != ':'
}

// cutKey returns the key and the value of a line like "key: value", if the key is a text that needs no quotes: numbers and truth values
// are equal that are written differently.
func cutKey(content string) (key, value string, ok bool) {
	end := strings.IndexByte(content, ':')
	if end <= 0 || end+1 < len(content) && content[end+1] != ' ' {
		return "", "", false
	}
	for i := range end {
		if c := content[i]; !isAlphanumeric(c) && !strings.ContainsRune("_./-", rune(c)) {
			return "", "", false
		}
	}
	if first := content[0]; !isAlphanumeric(first) || first <= '9' || len(content[:end]) < 6 && isConstant(content[:end]) {
		return "", "", false
	}
	return content[:end], strings.TrimLeft(content[end+1:], " "), true
}

// isConstant reports whether a key can be another value than a text.
func isConstant(key string) bool {
	switch strings.ToLower(key) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
		return true
	}
	return false
}
