// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"math/rand"
	"strings"
)

// gen makes values and texts in the many styles that people write.
type gen struct {
	r        *rand.Rand
	crlf     bool
	seqs     int // indentation of sequences
	step     int
	comments bool
	marks    int
}

func newGen(seed int64) *gen {
	r := rand.New(rand.NewSource(seed))
	return &gen{r: r, crlf: r.Intn(6) == 0, seqs: r.Intn(2) * 2, step: 2 + r.Intn(3), comments: r.Intn(4) > 0}
}

var genStrings = []string{"", "a", "web", "on", "no", "012", "1_000", "1e3", "12:30", "1.10", "null", "~", "# no comment", " lead", "trail ",
	"a: b", "a #b", "x:", "é ü 漢字", "line one\nline two\n", "no end\nof line", "keep\n\n\n", "\tindented tab\nx\n", "  spaces\n first\n",
	"{curly", "[square", "*star", "&and", "!bang", "%percent", "@at", "`tick", "'single'", `"double"`, `back\slash`, "- dash", "-", "?", "? q", "comma, here",
	"2020-01-01", "<<", "=", "---", "...", "---\nx: y\n---\n", "very long " + "text that goes on and on and on and on and on and on and on and on and on and on and on", "\u2028", "\u0085", "a\r\nb", "\x7f", "😀", "trailing space \nnext\n", "\n lead\n", "\n\nx\n", "0x1F", "+1", ".5", "0o7", "0b1", "y", "N", "http://x.example:80/?a=b", "#", ":", "a\n#b\n"}

func (g *gen) str() string { return genStrings[g.r.Intn(len(genStrings))] }

var genKeys = []string{"name", "image", "app", "a.b/c", "labels", "args", "env", "on", "y", "1", "key", "spec", "metadata", "x-y", "値", "a b", "mountPath", "containerPort"}

func (g *gen) value(depth int) any {
	n := g.r.Intn(10)
	switch {
	case depth > 0 && n < 3:
		return g.mapping(depth)
	case depth > 0 && n < 5:
		l := make([]any, g.r.Intn(4))
		for i := range l {
			l[i] = g.value(depth - 1)
		}
		if g.r.Intn(2) == 0 {
			for i := range l {
				l[i] = map[string]any{"name": fmt.Sprintf("n%d", i), "image": g.value(depth - 2)}
			}
		}
		return l
	case n == 5:
		return int64(g.r.Intn(2000) - 1000)
	case n == 6:
		return g.r.Intn(2) == 0
	case n == 7 && g.r.Intn(2) == 0:
		return nil
	case n == 7:
		return []float64{0.5, 1.25, 1e-9, 1.5e300}[g.r.Intn(4)]
	}
	return g.str()
}

func (g *gen) mapping(depth int) map[string]any {
	m := map[string]any{}
	for i := g.r.Intn(5); i >= 0; i-- {
		m[genKeys[g.r.Intn(len(genKeys))]] = g.value(depth - 1)
	}
	return m
}

func (g *gen) comment(b *strings.Builder, col int) {
	if !g.comments || g.r.Intn(5) > 0 {
		return
	}
	gap := !strings.Contains(b.String(), "|+") // an empty line would belong to the scalar
	if gap && g.r.Intn(4) == 0 {
		b.WriteString("\n")
	}
	g.marks++
	fmt.Fprintf(b, "%s# c%d\n", strings.Repeat(" ", col), g.marks)
	if gap && g.r.Intn(6) == 0 {
		b.WriteString("\n")
	}
}

func (g *gen) eol() string {
	if g.comments && g.r.Intn(6) == 0 {
		g.marks++
		return fmt.Sprintf(" # e%d\n", g.marks)
	}
	return "\n"
}

func (g *gen) text(v any) string {
	var b strings.Builder
	if m, ok := v.(map[string]any); ok && len(m) > 0 && g.r.Intn(8) > 0 {
		g.block(&b, m, 0, false)
	} else {
		b.WriteString(g.flow(v) + "\n")
	}
	s := b.String()
	if g.crlf {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	if g.r.Intn(5) == 0 && !strings.Contains(s, "|") {
		s = strings.TrimSuffix(strings.TrimSuffix(s, "\n"), "\r")
	}
	return s
}

func (g *gen) block(b *strings.Builder, v any, col int, inline bool) {
	pad := strings.Repeat(" ", col)
	lead := func() {
		if !inline {
			g.comment(b, col)
			b.WriteString(pad)
		}
		inline = false
	}
	switch v := v.(type) {
	case map[string]any:
		keys := sortedKeys(v, false)
		g.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
		for _, k := range keys {
			lead()
			b.WriteString(keyString(k) + ":")
			g.child(b, v[k], col, false)
		}
	case []any:
		for _, e := range v {
			lead()
			b.WriteString("-")
			g.child(b, e, col, true)
		}
	}
}

func (g *gen) child(b *strings.Builder, v any, col int, dash bool) {
	if v == nil && g.r.Intn(2) == 0 {
		b.WriteString(g.eol())
		return
	}
	if isInline(v) || g.r.Intn(6) == 0 {
		b.WriteString(" " + g.scalar(v, col))
		return
	}
	if dash && g.r.Intn(4) > 0 {
		n := 1 + g.r.Intn(2)
		b.WriteString(strings.Repeat(" ", n))
		g.block(b, v, col+1+n, true)
		return
	}
	b.WriteString(g.eol())
	_, list := v.([]any)
	if list && !dash {
		g.block(b, v, col+g.seqs, false)
	} else {
		g.block(b, v, col+g.step, false)
	}
}

func (g *gen) scalar(v any, parent int) string {
	s, ok := v.(string)
	if !ok {
		return g.flow(v) + g.eol()
	}
	if header, lines, ok := literalBlock(s, g.step); ok && g.r.Intn(4) > 0 {
		w := blockWriter{nl: "\n", step: g.step}
		return header + strings.TrimSuffix(g.eol(), "\n") + w.writeLines(lines, parent+g.step) + "\n"
	}
	return g.quoted(s, false) + g.eol()
}

func (g *gen) quoted(s string, flow bool) string {
	return quoteString(s, flow, []nodeStyle{plainStyle, plainStyle, singleStyle, doubleStyle}[g.r.Intn(4)])
}

func (g *gen) flow(v any) string {
	switch v := v.(type) {
	case map[string]any:
		var parts []string
		for _, k := range sortedKeys(v, false) {
			parts = append(parts, quoteString(k, true, plainStyle)+": "+g.flow(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		var parts []string
		for _, e := range v {
			parts = append(parts, g.flow(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case string:
		return g.quoted(v, true)
	}
	return scalarText(v, true, plainStyle)
}

// mutate returns a copy of a value with some changes.
func (g *gen) mutate(v any, depth int) any {
	switch v := v.(type) {
	case map[string]any:
		out := copyMap(v)
		keys := sortedKeys(v, false)
		for n := 0; n < 1+g.r.Intn(2); n++ {
			switch g.r.Intn(4) {
			case 0:
				out[genKeys[g.r.Intn(len(genKeys))]] = g.value(depth)
			case 1:
				if len(keys) > 0 {
					delete(out, keys[g.r.Intn(len(keys))])
				}
			default:
				if len(keys) > 0 {
					k := keys[g.r.Intn(len(keys))]
					if e, ok := out[k]; ok {
						out[k] = g.mutate(e, depth)
					}
				}
			}
		}
		return out
	case []any:
		out := append([]any{}, v...)
		switch g.r.Intn(4) {
		case 0:
			i := g.r.Intn(len(out) + 1)
			out = append(out[:i], append([]any{g.value(depth)}, out[i:]...)...)
		case 1:
			if len(out) > 0 {
				i := g.r.Intn(len(out))
				out = append(out[:i], out[i+1:]...)
			}
		case 2:
			g.r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
		default:
			if len(out) > 0 {
				i := g.r.Intn(len(out))
				out[i] = g.mutate(out[i], depth)
			}
		}
		return out
	}
	return g.value(depth)
}
