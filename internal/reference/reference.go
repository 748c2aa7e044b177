// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package reference writes the pages of docs/reference from the code: commands from their help, fields from schemas and doc comments,
// rules and reasons from their tables.
package reference

import (
	"fmt"
	"strings"
)

// File is a page that is generated.
type File struct {
	// Path from the root of the module.
	Path string
	Text string
}

// Files returns all pages. The sources of the module are at root.
func Files(root string) ([]File, error) {
	fields, err := fieldsPage()
	if err != nil {
		return nil, err
	}
	configuration, err := configurationPage(root)
	if err != nil {
		return nil, err
	}
	return []File{
		{"docs/reference/commands.md", commandsPage()},
		{"docs/reference/fields.md", fields},
		{"docs/reference/configuration.md", configuration},
		{"docs/reference/gate-rules.md", gateRulesPage()},
		{"docs/reference/reasons.md", reasonsPage()},
	}, nil
}

// beginPage begins a page with its title and what it is about.
func beginPage(b *strings.Builder, title, about string) {
	fmt.Fprintf(b, "# %s\n\n%s\n\nThis page is generated from the code (`make generate`).\n", title, about)
}

// escaper keeps text from being read as Markdown.
var escaper = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "<", `\<`, ">", `\>`, "[", `\[`, "]", `\]`, "|",
	`\|`, "`", "\\`")

// escapeTableCell is text in a cell of a table.
func escapeTableCell(text string) string {
	return escaper.Replace(strings.Join(strings.Fields(text), " "))
}

// endWithFullStop is text that ends with a full stop.
func endWithFullStop(text string) string {
	if text == "" || strings.HasSuffix(text, ".") {
		return text
	}
	return text + "."
}
