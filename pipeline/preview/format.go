// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"io"
	"strings"
)

// shown is how many objects of a change are listed by name.
const shown = 10

// Text writes a comparison for a terminal.
func (c *Comparison) Text(w io.Writer) error {
	var out strings.Builder
	for _, change := range c.Changes {
		fmt.Fprintf(&out, "== %s\n", change.title())
		for _, line := range change.list() {
			fmt.Fprintf(&out, "   %s\n", line)
		}
		for _, hunk := range change.Hunks {
			out.WriteString("@@\n" + hunk)
		}
		out.WriteString("\n")
	}
	for _, p := range c.Pipelines {
		if p.Error != "" {
			fmt.Fprintf(&out, "%s: error: %s\n", p.Pipeline, p.Error)
		}
		if p.Gate != "" {
			fmt.Fprintf(&out, "%s: would be refused: %s\n", p.Pipeline, p.Gate)
		}
	}
	out.WriteString(c.summary() + "\n")
	_, err := io.WriteString(w, out.String())
	return err
}

// Markdown writes a comparison for a comment on a pull request.
func (c *Comparison) Markdown(w io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "### Rendered manifests\n\n%s\n", escape(c.summary()))
	for _, p := range c.Pipelines {
		if p.Error != "" {
			fmt.Fprintf(&out, "\n> **%s could not be rendered:** %s\n", escape(p.Pipeline), escape(p.Error))
		}
		if p.Gate != "" {
			fmt.Fprintf(&out, "\n> **%s would be refused:** %s\n", escape(p.Pipeline), escape(p.Gate))
		}
	}
	for _, change := range c.Changes {
		fmt.Fprintf(&out, "\n<details><summary>%s</summary>\n\n", escape(change.title()))
		if len(change.Objects) > 1 {
			for _, line := range change.list() {
				fmt.Fprintf(&out, "- %s\n", escape(line))
			}
			out.WriteString("\n")
		}
		text := strings.Join(change.Hunks, "@@\n")
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		fmt.Fprintf(&out, "%sdiff\n%s%s\n\n</details>\n", fence, text, fence)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// escape keeps what comes from a source from being markup.
func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "\n", " ", "`", "&#96;", "*", "&#42;", "_", "&#95;", "[", "&#91;", "|", "&#124;", "@", "&#64;").Replace(text)
}

func (c Change) title() string {
	if len(c.Objects) == 1 {
		return fmt.Sprintf("%s: %s (%s)", c.Kind, c.Objects[0].Name, c.Objects[0].Pipeline)
	}
	pipelines := map[string]bool{}
	for _, o := range c.Objects {
		pipelines[o.Pipeline] = true
	}
	return fmt.Sprintf("%s: the same in %s of %s", c.Kind, plural(len(c.Objects), "object"), plural(len(pipelines), "pipeline"))
}

// list names the objects of a change, the first few of many.
func (c Change) list() []string {
	if len(c.Objects) == 1 {
		return nil
	}
	var out []string
	for i, o := range c.Objects {
		if i == shown && len(c.Objects) > shown+1 {
			return append(out, fmt.Sprintf("and %d more", len(c.Objects)-shown))
		}
		out = append(out, o.Name+" ("+o.Pipeline+")")
	}
	return out
}

func (c *Comparison) summary() string {
	added, modified, deleted, failed := 0, 0, 0, 0
	for _, p := range c.Pipelines {
		added, modified, deleted = added+p.Added, modified+p.Modified, deleted+p.Deleted
		if p.Error != "" {
			failed++
		}
	}
	text := fmt.Sprintf("%s compared: nothing would change", plural(len(c.Pipelines), "pipeline"))
	if !c.Empty() {
		text = fmt.Sprintf("%s compared: %s, %d modified, %d deleted; %s", plural(len(c.Pipelines), "pipeline"),
			plural(added, "file")+" added", modified, deleted, plural(len(c.Changes), "different change"))
	}
	if failed > 0 {
		text += fmt.Sprintf("; %d could not be rendered", failed)
	}
	return text
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
