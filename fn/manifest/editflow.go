// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import "strings"

// flowStyle returns how to write new text inside or in the place of a node in flow style, and the indentation of the line
// that the text is in.
func (e *documentEditor) flowStyle(n *yamlNode) (flowWriter, string) {
	w := flowWriter{nl: e.w.nl, json: e.json || n.isFlow() && n.n > 0 && jsonLike(n)}
	bol := lineStart(e.src, n.start)
	pad := e.src[bol:n.start]
	pad = pad[:len(pad)-len(strings.TrimLeft(pad, " \t"))]
	if c := n.first; n.isFlow() && c != nil {
		if i := strings.LastIndexByte(e.src[n.start:c.prop], '\n'); i >= 0 { // several lines
			inner := e.src[n.start+i+1 : c.prop]
			if w.json && strings.HasPrefix(inner, pad) && len(inner) > len(pad) {
				w.unit = inner[len(pad):]
			}
			pad = inner
		}
	} else if e.json && e.prettyUnit() != "" {
		w.unit = e.prettyUnit()
	}
	w.tight = e.isCompactJSON()
	return w, pad
}

// prettyUnit returns the indentation of one level of a JSON document in several lines, "" where it is on one line.
func (e *documentEditor) prettyUnit() string {
	i := strings.IndexByte(e.src, '{')
	if i < 0 {
		return ""
	}
	rest := strings.TrimLeft(e.src[i+1:], " \t\r\n")
	gap := e.src[i+1 : len(e.src)-len(rest)]
	j := strings.LastIndexByte(gap, '\n')
	if j < 0 {
		return ""
	}
	unit := gap[j+1:]
	bol := lineStart(e.src, i)
	pad := e.src[bol:i]
	pad = pad[:len(pad)-len(strings.TrimLeft(pad, " \t"))]
	if bol == 0 && e.d.inFlow {
		pad = strings.Repeat(" ", e.d.col0)
	}
	if len(unit) > len(pad) && strings.HasPrefix(unit, pad) {
		return unit[len(pad):]
	}
	return unit
}

// isCompactJSON reports whether the document is JSON without blanks after colons.
func (e *documentEditor) isCompactJSON() bool {
	i := strings.Index(e.src, `":`)
	return e.json && i >= 0 && i+2 < len(e.src) && !isBlankOrEnd(e.src[i+2])
}

// flowSep returns what stands between two entries of a flow collection.
func (e *documentEditor) flowSep(n *yamlNode, w flowWriter, pad string) string {
	if strings.Contains(e.src[n.start:n.first.prop], "\n") {
		return "," + e.w.nl + pad
	}
	if w.tight {
		return ","
	}
	return ", "
}

// flowEntries takes entries out of a flow mapping and appends others.
func (e *documentEditor) flowEntries(n *yamlNode, pairs []keyValue, keep []bool, added map[string]any) {
	spans := make([][2]int, len(pairs))
	last := 0
	for i, p := range pairs {
		spans[i] = [2]int{p.key.prop, p.val.end}
		if keep[i] {
			last = i
		}
	}
	if len(added) > 0 || last < len(pairs)-1 {
		e.fillAbsent(pairs[last])
	}
	e.flowRemove(spans, keep, last)
	if len(added) == 0 {
		return
	}
	w, pad := e.flowStyle(n)
	sep := e.flowSep(n, w, pad)
	var b strings.Builder
	for _, k := range sortedKeys(added, false) {
		b.WriteString(sep)
		b.WriteString(w.entryText(k, added[k], pad))
	}
	e.replaceBytes(spans[last][1], spans[last][1], b.String())
}

// fillAbsent writes the null that a key stands for with nothing behind its colon, as the colon would become part of the
// key without the blank after it.
func (e *documentEditor) fillAbsent(p keyValue) {
	if !p.val.isAbsent() || p.key.colon < 0 {
		return
	}
	for _, ed := range e.edits {
		if ed.start == p.val.start && ed.text != "" {
			return
		}
	}
	e.replaceBytes(p.val.start, p.val.start, " null")
}

// flowRemove takes entries out: each up to the next one, those at the end from the last that stays.
func (e *documentEditor) flowRemove(spans [][2]int, keep []bool, last int) {
	for i := range spans {
		if !keep[i] && i < last {
			e.replaceBytes(spans[i][0], spans[i+1][0], "")
		}
	}
	if last == len(spans)-1 {
		return
	}
	from, to := spans[last][1], spans[len(spans)-1][1]
	gap := e.src[from:spans[last+1][0]]
	if !strings.Contains(gap, "#") {
		e.replaceBytes(from, to, "")
		return
	}
	comma := from + strings.IndexByte(gap, ',') // a comment between stays
	e.replaceBytes(comma, comma+1, "")
	e.replaceBytes(spans[last+1][0], to, "")
}

// flowElements takes elements out of a flow sequence and puts others in.
func (e *documentEditor) flowElements(n *yamlNode, old []*yamlNode, texts []string, stay map[int]int) {
	spans := make([][2]int, len(old))
	keep := make([]bool, len(old))
	at := make(map[int]int, len(stay))
	last, firstKept := 0, -1
	for i, o := range old {
		spans[i] = [2]int{o.prop, o.end}
		if j, in := stay[i]; in {
			keep[i], last, at[j] = true, i, i
			if firstKept < 0 {
				firstKept = i
			}
		}
	}
	w, pad := e.flowStyle(n)
	sep := e.flowSep(n, w, pad)
	pos := -1
	for j, t := range texts {
		if i, in := at[j]; in {
			pos = old[i].end
			continue
		}
		if pos < 0 {
			e.replaceBytes(spans[firstKept][0], spans[firstKept][0], t+sep)
		} else {
			e.replaceBytes(pos, pos, sep+t)
		}
	}
	e.flowRemove(spans, keep, last)
}
