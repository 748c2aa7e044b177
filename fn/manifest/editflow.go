// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// flowEditor edits collections in flow style.
type flowEditor struct {
	*editedText
	json   bool // the whole document is JSON
	inFlow bool // the document is inside a flow collection
}

// flowStyle returns how to write new text inside or in the place of a node in flow style, and the indentation of the line
// that the text is in.
func (f *flowEditor) flowStyle(n *yamlNode) (flowWriter, string) {
	w := flowWriter{nl: f.nl, json: f.json || n.isFlow() && n.n > 0 && jsonLike(n)}
	pad := f.indentBefore(n.start)
	if c := n.first; n.isFlow() && c != nil {
		if i := strings.LastIndexByte(f.src[n.start:c.prop], '\n'); i >= 0 { // several lines
			inner := f.src[n.start+i+1 : c.prop]
			if w.json && strings.HasPrefix(inner, pad) && len(inner) > len(pad) {
				w.unit = inner[len(pad):]
			}
			pad = inner
		}
	} else if f.json && f.prettyUnit() != "" {
		w.unit = f.prettyUnit()
	}
	w.tight = f.isCompactJSON()
	return w, pad
}

// prettyUnit returns the indentation of one level of a JSON document in several lines, "" where it is on one line.
func (f *flowEditor) prettyUnit() string {
	i := strings.IndexByte(f.src, '{')
	if i < 0 {
		return ""
	}
	rest := strings.TrimLeft(f.src[i+1:], " \t\r\n")
	gap := f.src[i+1 : len(f.src)-len(rest)]
	j := strings.LastIndexByte(gap, '\n')
	if j < 0 {
		return ""
	}
	unit := gap[j+1:]
	pad := f.indentBefore(i)
	if lineStart(f.src, i) == 0 && f.inFlow {
		pad = strings.Repeat(" ", f.col0)
	}
	if len(unit) > len(pad) && strings.HasPrefix(unit, pad) {
		return unit[len(pad):]
	}
	return unit
}

// isCompactJSON reports whether the document is JSON without blanks after colons.
func (f *flowEditor) isCompactJSON() bool {
	i := strings.Index(f.src, `":`)
	return f.json && i >= 0 && i+2 < len(f.src) && !isBlankOrEnd(f.src[i+2])
}

// flowSep returns the separator between two entries of a flow collection.
func (f *flowEditor) flowSep(n *yamlNode, w flowWriter, pad string) string {
	if strings.Contains(f.src[n.start:n.first.prop], "\n") {
		return "," + f.nl + pad
	}
	if w.tight {
		return ","
	}
	return ", "
}

// flowEntries removes entries from a flow mapping and appends others.
func (f *flowEditor) flowEntries(n *yamlNode, pairs []keyValue, keep []bool, added map[string]any) {
	c := flowCollection{closing: n.end - 1, spans: make([][2]int, len(pairs)), keep: keep}
	for i, p := range pairs {
		c.spans[i] = [2]int{p.key.prop, p.val.end}
		if keep[i] {
			c.last = i
		}
	}
	cut := c.last < len(pairs)-1
	if cut || len(added) > 0 {
		f.fillAbsent(pairs[c.last])
	}
	if cut {
		f.quoteEndingColon(pairs[c.last].lastNode())
	}
	f.flowRemove(c, len(added) > 0)
	if len(added) == 0 {
		return
	}
	w, pad := f.flowStyle(n)
	var texts []string
	for _, k := range sortedKeys(added, false) {
		texts = append(texts, w.entryText(k, added[k], pad))
	}
	f.flowInsert(c, c.last, texts, f.flowSep(n, w, pad))
}

// fillAbsent writes null as the value of a key that has no text after its colon, as the colon would become part of
// the key without the blank after it.
func (f *flowEditor) fillAbsent(p keyValue) {
	if !p.val.isAbsent() || p.key.colon < 0 {
		return
	}
	for _, ed := range f.edits {
		if ed.start == p.val.start && ed.text != "" {
			return
		}
	}
	f.replaceBytes(p.val.start, p.val.start, " null")
}

// quoteEndingColon quotes an unquoted scalar that ends with a colon, as in {a:,b}: without the comma directly after
// it, the colon would turn the scalar into a key.
func (f *flowEditor) quoteEndingColon(n *yamlNode) {
	if n.kind == scalarKind && n.style == plainStyle && strings.HasSuffix(f.src[n.start:n.end], ":") {
		f.replaceBytes(n.start, n.end, quoteString(n.val, true, plainStyle))
	}
}

// flowCollection is a sequence or mapping in flow style, of which some entries stay.
type flowCollection struct {
	closing int      // where the closing bracket is
	spans   [][2]int // of entries
	keep    []bool   // which of them stay
	last    int      // the last that stays
}

// gapAfterEntry returns the text between an entry and the next one, or the closing bracket: blanks, a comma, comments.
func (f *flowEditor) gapAfterEntry(c flowCollection, i int) flowGap {
	if i+1 < len(c.spans) {
		return flowGap(f.src[c.spans[i][1]:c.spans[i+1][0]])
	}
	return flowGap(f.src[c.spans[i][1]:c.closing])
}

// flowGap is the text between two entries.
type flowGap string

// restOfLineLength returns the length of the rest of the entry's line, all of the gap where it does not end in it.
func (g flowGap) restOfLineLength() int { return lineEnd(string(g), 0) }

// hasComment reports whether the entry's line ends with a comment, which belongs to the entry.
func (g flowGap) hasComment() bool { return strings.Contains(string(g[:g.restOfLineLength()]), "#") }

// nextComment returns the offset of the first comment on a line of its own, which belongs to the next entry, or -1.
func (g flowGap) nextComment() int {
	if i := strings.IndexByte(string(g[g.restOfLineLength():]), '#'); i >= 0 {
		return g.restOfLineLength() + i
	}
	return -1
}

// commaOffset returns the offset of the comma, or -1.
func (g flowGap) commaOffset() int {
	at := 0
	for line := range strings.Lines(string(g)) {
		text, _, _ := strings.Cut(line, "#")
		if i := strings.IndexByte(text, ','); i >= 0 {
			return at + i
		}
		at += len(line)
	}
	return -1
}

// takesBehindComment reports whether another entry can follow the comment on the entry's line: the comma does not
// come after the comment.
func (g flowGap) takesBehindComment() bool {
	return g.hasComment() && g.commaOffset() <= g.restOfLineLength()
}

// flowInsert puts texts behind an entry that stays, and behind the comment on its line.
func (f *flowEditor) flowInsert(c flowCollection, i int, texts []string, sep string) {
	end, gap := c.spans[i][1], f.gapAfterEntry(c, i)
	if !gap.takesBehindComment() {
		f.replaceBytes(end, end, sep+strings.Join(texts, sep))
		return
	}
	if gap.commaOffset() < 0 {
		f.replaceBytes(end, end, ",")
	}
	next := f.nl + f.entryIndent(c, i)
	text := next + strings.Join(texts, ","+next)
	if i < c.last {
		text += ","
	}
	f.replaceBytes(end+gap.restOfLineLength(), end+gap.restOfLineLength(), text)
}

// entryIndent returns the indentation of an entry that gets a line of its own behind another: that of the one which follows or, behind
// the last, that of the line which the last begins.
func (f *flowEditor) entryIndent(c flowCollection, i int) string {
	if i+1 < len(c.spans) {
		start := c.spans[i+1][0]
		return f.src[lineStart(f.src, start):start]
	}
	start := c.spans[i][0]
	pad := f.indentBefore(start)
	if lineStart(f.src, start)+len(pad) < start { // the bracket precedes it
		return pad + "  "
	}
	return pad
}

// flowRemove removes entries with the comments on their lines: each up to the next entry or its comments, those at
// the end from the last entry that stays. more reports whether other entries follow.
func (f *flowEditor) flowRemove(c flowCollection, more bool) {
	for i := range c.spans {
		if c.keep[i] || i >= c.last {
			continue
		}
		to, gap := c.spans[i+1][0], f.gapAfterEntry(c, i)
		if at := gap.nextComment(); at > gap.commaOffset() {
			to = c.spans[i][1] + at
		}
		f.replaceBytes(c.spans[i][0], to, "")
	}
	if c.last < len(c.spans)-1 {
		f.flowCutOff(c, more)
	}
}

// flowCutOff removes the entries after the last one that stays.
func (f *flowEditor) flowCutOff(c flowCollection, more bool) {
	from, to := c.spans[c.last][1], c.spans[len(c.spans)-1][1]
	gap, end := f.gapAfterEntry(c, c.last), f.gapAfterEntry(c, len(c.spans)-1)
	if !gap.hasComment() && gap.nextComment() < 0 {
		f.replaceBytes(from, to, "")
		return
	}
	comma, more := from+gap.commaOffset(), more && gap.takesBehindComment()
	if gap.nextComment() >= 0 || end.restOfLineLength() == len(end) { // what is about the next one stays, and a bracket needs a line
		if !more {
			f.replaceBytes(comma, comma+1, "")
		}
		f.replaceBytes(c.spans[c.last+1][0], to, "")
		return
	}
	if !more && end.commaOffset() < 0 {
		f.replaceBytes(comma, comma+1, "")
	}
	f.replaceBytes(from+gap.restOfLineLength(), to+end.restOfLineLength(), "")
}

// flowElements removes elements from a flow sequence and inserts others.
func (f *flowEditor) flowElements(n *yamlNode, old []*yamlNode, texts []string, stay map[int]int) {
	c := flowCollection{closing: n.end - 1, spans: make([][2]int, len(old)), keep: make([]bool, len(old))}
	at := make(map[int]int, len(stay))
	firstKept := -1
	for i, o := range old {
		c.spans[i] = [2]int{o.prop, o.end}
		if j, in := stay[i]; in {
			c.keep[i], c.last, at[j] = true, i, i
			if firstKept < 0 {
				firstKept = i
			}
		}
	}
	w, pad := f.flowStyle(n)
	sep := f.flowSep(n, w, pad)
	fresh := make(map[int][]string) // by the element that they come behind
	behind := -1
	for j, t := range texts {
		if i, in := at[j]; in {
			behind = i
		} else if behind < 0 {
			f.replaceBytes(c.spans[firstKept][0], c.spans[firstKept][0], t+sep)
		} else {
			fresh[behind] = append(fresh[behind], t)
		}
	}
	for i := range old {
		if len(fresh[i]) > 0 {
			f.flowInsert(c, i, fresh[i], sep)
		}
	}
	if c.last < len(old)-1 {
		f.quoteEndingColon(old[c.last])
	}
	f.flowRemove(c, len(fresh[c.last]) > 0)
}
