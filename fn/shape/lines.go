// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package shape

import "strings"

// scanner follows the block collections of a text.
type scanner struct {
	open []frame
	// pending is the key whose value is on the next lines, if wait is set.
	wait    bool
	pending *node
	parent  int // its column
}

// frame is a block collection that is open: a mapping, or a sequence whose dashes are at its column.
type frame struct {
	column   int
	sequence bool
	node     *node
}

// scanLines reads all lines. It returns false where it does not understand one.
func (s *Scan) scanLines(text string, column int) bool {
	s.open, s.wait, s.pending, s.parent = s.open[:0], true, workloadTree, -1
	block := -1 // the column of the collection around a block scalar, while one is read
	started := false
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end < 0 {
			end = len(text)
		} else {
			end += at
		}
		i := at
		for i < end && text[i] == ' ' {
			i++
		}
		indent := i - at
		if at == 0 {
			indent += column
		}
		switch {
		case i == end || block >= 0 && indent > block:
			at = end + 1
			continue
		case text[i] == '#':
			block = -1
			at = end + 1
			continue
		case indent == 0 && (strings.HasPrefix(text[i:end], "---") || text[i] == '%' || strings.HasPrefix(text[i:end], "...")):
			if started || text[i:end] != "---" {
				return false
			}
			at = end + 1
			continue
		}
		block, started = -1, true
		scalar, ok := s.line(i, end, indent)
		if !ok {
			return false
		}
		if scalar {
			block = s.open[len(s.open)-1].column
		}
		at = end + 1
	}
	return started && !s.waitsForBlock()
}

// waitsForBlock reports whether the text ends where slots should come.
func (s *Scan) waitsForBlock() bool { return s.wait && s.pending != nil && s.pending.block }

// line reads the line from i to end whose first character is at a column. scalar reports that a block scalar begins.
func (s *Scan) line(i, end, column int) (scalar, ok bool) {
	text := s.text
	if text[i] == '-' && (i+1 == end || text[i+1] == ' ') {
		elem, ok := s.dash(column)
		if !ok || i+2 >= end || text[i+2] == ' ' || text[i+2] == '#' || text[i+2] == '-' && (i+3 == end || text[i+3] == ' ') {
			return false, false
		}
		i, column = i+2, column+2
		if keyEnd(text, i, end) < 0 {
			return s.scalar(elem, "", i, end)
		}
		s.open = append(s.open, frame{column: column, node: elem})
	} else if !s.mapping(column) {
		return false, false
	}
	colon := keyEnd(text, i, end)
	if colon < 0 {
		return false, false
	}
	key := text[i:colon]
	n := s.open[len(s.open)-1].node.child(key)
	i = colon + 1
	for i < end && text[i] == ' ' {
		i++
	}
	if i == end || text[i] == '#' {
		s.wait, s.pending, s.parent = true, n, column
		return false, true
	}
	return s.scalar(n, key, i, end)
}

// dash opens the sequence whose dash is at a column, or goes on with it. It returns the node of its elements.
func (s *Scan) dash(column int) (elem *node, ok bool) {
	if s.wait && s.parent >= 0 && column >= s.parent {
		if s.pending != nil {
			if s.pending.block && s.pending.elem == nil {
				return nil, false
			}
			elem = s.pending.elem
		}
		s.open = append(s.open, frame{column, true, elem})
		s.wait = false
		return elem, true
	}
	if s.waitsForBlock() {
		return nil, false
	}
	s.wait = false
	s.closeTo(column)
	if len(s.open) == 0 {
		return nil, false
	}
	top := s.open[len(s.open)-1]
	return top.node, top.sequence && top.column == column
}

// mapping opens the mapping whose key is at a column, or goes on with it.
func (s *Scan) mapping(column int) bool {
	if s.wait && column > s.parent {
		s.open = append(s.open, frame{column: column, node: s.pending})
		s.wait = false
		return s.pending == nil || s.pending.elem == nil
	}
	if s.waitsForBlock() {
		return false
	}
	s.wait = false
	s.closeTo(column)
	if n := len(s.open); n > 0 && s.open[n-1].sequence && s.open[n-1].column == column {
		s.open = s.open[:n-1] // its dashes were at the column of the mapping around it
	}
	n := len(s.open)
	return n > 0 && !s.open[n-1].sequence && s.open[n-1].column == column
}

// closeTo closes the collections that are deeper than a column.
func (s *Scan) closeTo(column int) {
	n := len(s.open)
	for n > 0 && s.open[n-1].column > column {
		n--
	}
	s.open = s.open[:n]
}

// keyEnd returns the offset of the colon of the key that begins at i; -1 where the text is no plain key.
func keyEnd(text string, i, end int) int {
	for j := i; j < end; j++ {
		c := text[j]
		switch {
		case c == ':':
			if j > i && (j+1 == end || text[j+1] == ' ') {
				return j
			}
			return -1
		case isLower(c), isUpper(c), isDigit(c), c == '/', c == '.', c == '_':
		case c == '-' && j > i:
		default:
			return -1
		}
	}
	return -1
}

// scalar reads the value from i to the end of the line. block reports that a block scalar begins.
func (s *Scan) scalar(n *node, key string, i, end int) (block, ok bool) {
	text := s.text
	if n != nil && (n.block || n.what == originAnnotations && text[i] != '{') {
		return false, false
	}
	switch c := text[i]; c {
	case '"', '\'':
		close := strings.IndexByte(text[i+1:end], c)
		if close < 0 {
			return false, false
		}
		close += i + 1
		if strings.IndexByte(text[i:close], '\\') >= 0 || !onlyComment(text, close+1, end) {
			return false, false
		}
		return false, n == nil || s.value(n, key, c, i+1, close)
	case '|', '>':
		header := strings.TrimRight(text[i+1:end], " ")
		if strings.Trim(header, "+-123456789") != "" || len(header) > 2 {
			return false, false
		}
		s.origins += strings.Count(key, originMark)
		return true, n == nil || n.what == plainRole && (n.slot != Origin || originPart(key) < 0)
	case '{', '[':
		closed, ok := flowEnd(text, i, end)
		return false, ok && onlyComment(text, closed, end) && (n == nil || n.what == plainRole || n.what == originAnnotations)
	case '&', '*', '!', '%', '@', '`', '?', ',', ']', '}', ':':
		return false, false
	}
	stop := plainEnd(text, i, end)
	if stop < 0 {
		return false, false
	}
	return false, n == nil || s.value(n, key, 0, i, stop)
}

// onlyComment reports whether the rest of a line is blank, or a comment after a blank.
func onlyComment(text string, i, end int) bool {
	rest := strings.TrimLeft(text[i:end], " ")
	return rest == "" || rest[0] == '#' && len(rest) < end-i
}

// plainEnd returns the end of the scalar without quotes from i; -1 where it is none.
func plainEnd(text string, i, end int) int {
	v := text[i:end]
	if j := strings.Index(v, " #"); j >= 0 {
		v = v[:j]
	}
	v = strings.TrimRight(v, " ")
	if strings.Contains(v, ": ") || strings.HasSuffix(v, ":") || strings.HasPrefix(v, "- ") || v == "-" {
		return -1
	}
	return i + len(v)
}

// flowEnd returns the offset after the collection in flow style at i; false where it does not end in the line, or has anchors, aliases, tags
// or escapes.
func flowEnd(text string, i, end int) (int, bool) {
	depth := 0
	for ; i < end; i++ {
		switch c := text[i]; c {
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1, true
			}
		case '"', '\'':
			close := strings.IndexByte(text[i+1:end], c)
			if close < 0 || strings.IndexByte(text[i+1:i+1+close], '\\') >= 0 {
				return 0, false
			}
			i += close + 1
		case '&', '*', '!', '#', '?', '|', '>', '%', '@', '`':
			return 0, false
		}
	}
	return 0, false
}
