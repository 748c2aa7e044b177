// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package picture draws what Prerig writes into a pull request as an SVG, for the pages. The picture has its own background and
// colours for light and dark windows, and no scripts, fonts or links, so that Git hosts show it.
package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Source and Target are the files of the picture in the README: the output of an example, which a test keeps current,
// and the picture of it.
const (
	Source = "examples/review-an-upgrade/.expected/output.yaml"
	Target = "docs/images/mesh-upgrade.svg"
)

// All lengths are in pixels. Widths of characters are estimates, because each machine has other fonts.
const (
	width       = 880
	margin      = 24
	titleHeight = 46
	lineHeight  = 20
	codeWidth   = 7.9
	wordWidth   = 6.9
)

const style = `
text { font: 14px -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; white-space: pre }
.code { font: 13px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace }
.bold { font-weight: 600 }
.place { fill: #59636e }
.card { fill: #ffffff; stroke: #d1d9e0 }
.bar { fill: #f6f8fa }
.removed { fill: #ffebe9 }
.added { fill: #dafbe1 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .place { fill: #9198a1 }
  .card { fill: #0d1117; stroke: #3d444d }
  .bar { fill: #151b23 }
  .removed { fill: #542426 }
  .added { fill: #1f4429 }
}
`

// span is a piece of a line with one appearance.
type span struct{ class, text string }

// drawing collects the elements of a picture from top to bottom.
type drawing struct {
	out strings.Builder
	y   int
}

// imageChange is the line of a review about the image of a proxy.
var imageChange = regexp.MustCompile("(?m)^- `[^`]*proxyv2:([^`]+)` → `[^`]*proxyv2:([^`]+)`")

// Review draws a review of a mesh upgrade, which prerig diff -o review prints.
func Review(markdown string) ([]byte, error) {
	versions := imageChange.FindStringSubmatch(markdown)
	if versions == nil {
		return nil, errors.New("drawing a review: it changes the image of no proxy")
	}
	title := fmt.Sprintf("Upgrade Istio from %s to %s", versions[1], versions[2])
	d := &drawing{y: titleHeight + 14}
	inDiff := false
	for line := range strings.Lines(markdown) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "```"):
			inDiff = !inDiff
			d.y += lineHeight / 4
		case inDiff:
			d.addDiffLine(line)
		case line == "":
			d.y += lineHeight / 2
		default:
			d.addParagraph(line)
		}
	}
	return d.finish(title), nil
}

// finish puts the frame and the title around the lines.
func (d *drawing) finish(title string) []byte {
	height := d.y + margin/2
	var out strings.Builder
	fmt.Fprintf(&out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" role=\"img\" aria-labelledby=\"title\">\n", width, height)
	fmt.Fprintf(&out, "<!-- SPDX-FileCopyrightText: The Prerig Authors; SPDX-License-Identifier: Apache-2.0; made by make generate -->\n")
	fmt.Fprintf(&out, "<title id=\"title\">A pull request: %s</title>\n<style>%s</style>\n", escape(title), style)
	fmt.Fprintf(&out, "<rect class=\"card\" x=\"0.5\" y=\"0.5\" width=\"%d\" height=\"%d\" rx=\"8\"/>\n", width-1,
		height-1)
	fmt.Fprintf(&out, "<path class=\"bar\" d=\"M1 %d V9 a8 8 0 0 1 8 -8 H%d a8 8 0 0 1 8 8 V%d Z\"/>\n", titleHeight,
		width-9, titleHeight)
	fmt.Fprintf(&out, "<text class=\"bold\" x=\"%d\" y=\"29\">%s</text>\n", margin, escape(title))
	out.WriteString(d.out.String())
	out.WriteString("</svg>\n")
	return []byte(out.String())
}

func (d *drawing) addDiffLine(line string) {
	classes := map[byte]string{'-': "removed", '+': "added", '@': "bar"}
	if class := classes[append([]byte(line), ' ')[0]]; class != "" {
		fmt.Fprintf(&d.out, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", class, margin, d.y,
			width-2*margin, lineHeight)
	}
	class := "code"
	if strings.HasPrefix(line, "@@ ") {
		class, line = "code place", strings.TrimPrefix(line, "@@ ")
	}
	d.addLine([]span{{class, line}}, margin+8)
}

// addParagraph draws a line of Markdown, on several lines if it is too long.
func (d *drawing) addParagraph(line string) {
	x := margin
	if heading, ok := strings.CutPrefix(line, "#### "); ok {
		line = "**" + heading + "**"
	}
	if item, ok := strings.CutPrefix(line, "- "); ok {
		line, x = "• "+item, margin+8
	}
	var current []span
	used := 0.0
	for _, s := range wordSpans(line) {
		perCharacter := wordWidth
		if strings.Contains(s.class, "code") {
			perCharacter = codeWidth
		}
		length := perCharacter * float64(len([]rune(s.text)))
		if used > 0 && used+length > float64(width-margin-x) {
			d.addLine(current, x)
			current, used = nil, 0
		}
		current, used = append(current, s), used+length
	}
	d.addLine(current, x)
}

// markdownSpan is bold text, code, or the text up to the next of them.
var markdownSpan = regexp.MustCompile("\\*\\*[^*]+\\*\\*|`[^`]+`|[^`*]+")

// wordSpans splits a line of Markdown into the words between which it can be broken, each with the space behind it.
func wordSpans(line string) []span {
	var out []span
	for _, found := range markdownSpan.FindAllString(line, -1) {
		class, text := "", found
		switch {
		case strings.HasPrefix(found, "**"):
			class, text = "bold", strings.Trim(found, "*")
		case strings.HasPrefix(found, "`"):
			out = append(out, span{"code", strings.Trim(found, "`")}) // names are not broken
			continue
		}
		for _, word := range strings.SplitAfter(text, " ") {
			if word != "" {
				out = append(out, span{class, word})
			}
		}
	}
	return out
}

// addLine draws spans beside each other.
func (d *drawing) addLine(spans []span, x int) {
	d.y += lineHeight
	fmt.Fprintf(&d.out, "<text x=\"%d\" y=\"%d\" xml:space=\"preserve\">", x, d.y-6)
	for _, s := range spans {
		if s.class == "" {
			d.out.WriteString(escape(s.text))
			continue
		}
		fmt.Fprintf(&d.out, "<tspan class=\"%s\">%s</tspan>", s.class, escape(s.text))
	}
	d.out.WriteString("</text>\n")
}

func escape(text string) string {
	var out strings.Builder
	_ = xml.EscapeText(&out, []byte(text)) // a Builder returns no errors
	return out.String()
}
