// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prerig/prerig/pipeline/cli"
)

// commandsPage describes each command as its --help does.
func commandsPage() string {
	root := cli.NewRoot(cli.Streams{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}, "")
	root.InitDefaultHelpCmd()
	var b strings.Builder
	beginPage(&b, "Commands", "The output of `prerig COMMAND --help` for each command. [The command line](../cli.md) explains them with examples, and\n"+
		"[the daemon](../daemon.md) those that run it or talk to it.")
	for _, group := range root.Groups() {
		fmt.Fprintf(&b, "\n**%s**\n\n", group.Title)
		for _, cmd := range root.Commands() {
			if cmd.GroupID == group.ID && cmd.IsAvailableCommand() {
				fmt.Fprintf(&b, "- [`%s`](#%s): %s\n", cmd.CommandPath(), headingAnchor(cmd),
					escaper.Replace(lowercaseFirstLetter(cmd.Short)))
			}
		}
	}
	for _, cmd := range root.Commands() {
		if cmd.IsAvailableCommand() && cmd.Name() != "help" && cmd.Name() != "completion" {
			writeCommand(&b, cmd, "##")
		}
	}
	return b.String()
}

// headingAnchor returns the anchor that Git hosts assign to the heading of a command.
func headingAnchor(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func lowercaseFirstLetter(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToLower(text[:1]) + text[1:]
}

// writeCommand describes a command and those below it.
func writeCommand(b *strings.Builder, cmd *cobra.Command, level string) {
	fmt.Fprintf(b, "\n%s %s\n\n%s\n", level, cmd.CommandPath(), endWithFullStop(escaper.Replace(cmd.Short)))
	if cmd.Runnable() {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", cmd.UseLine())
	}
	if cmd.Long != "" {
		writeProse(b, cmd.Long)
	}
	if cmd.Example != "" {
		fmt.Fprintf(b, "\n```text\n%s\n```\n", unindentExample(cmd.Example))
	}
	writeFlags(b, cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			writeCommand(b, sub, level+"#")
		}
	}
}

// writeProse writes paragraphs; one that has indented lines is a block, as it is a list or a table.
func writeProse(b *strings.Builder, text string) {
	for paragraph := range strings.SplitSeq(strings.Trim(text, "\n"), "\n\n") {
		if strings.HasPrefix(paragraph, " ") || strings.Contains(paragraph, "\n ") {
			fmt.Fprintf(b, "\n```text\n%s\n```\n", paragraph)
			continue
		}
		fmt.Fprintf(b, "\n%s\n", escaper.Replace(paragraph))
	}
}

// unindentExample returns an example without the two spaces in front of its lines.
func unindentExample(text string) string {
	lines := strings.Split(strings.Trim(text, "\n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// writeFlags writes the table of a command's flags.
func writeFlags(b *strings.Builder, cmd *cobra.Command) {
	first := true
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		if first {
			b.WriteString("\n| flag | meaning |\n|---|---|\n")
			first = false
		}
		argument, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if argument != "" {
			name += " " + argument
		}
		fmt.Fprintf(b, "| `%s` | %s%s |\n", name, escapeTableCell(usage), defaultOf(f))
	})
}

// defaultOf returns the default of a flag, if it is meaningful.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "false", "0", "0s", "[]":
		return ""
	}
	value := f.DefValue
	if cache, err := os.UserCacheDir(); err == nil { // that of the user who generates the page
		value = strings.Replace(value, cache, "~/.cache", 1)
	}
	return " (default " + escapeTableCell(value) + ")"
}
