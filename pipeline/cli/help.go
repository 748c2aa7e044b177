// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// rootHelp returns a help function that prints the commands first if no command is named, so that the most frequent
// ones are on the first screen.
func rootHelp(root *cobra.Command) func(*cobra.Command, []string) {
	usual := root.HelpFunc()
	return func(cmd *cobra.Command, args []string) {
		if cmd != root {
			usual(cmd, args)
			return
		}
		var b strings.Builder
		b.WriteString(root.Long + "\n\nUsage:\n  prerig COMMAND [FLAG]...\n")
		for _, group := range root.Groups() {
			fmt.Fprintf(&b, "\n%s\n", group.Title)
			for _, c := range slices.SortedStableFunc(slices.Values(root.Commands()), compareGenerated) {
				if c.GroupID == group.ID && c.IsAvailableCommand() || c.GroupID == group.ID && c.Name() == "help" {
					fmt.Fprintf(&b, "  %-13s %s\n", c.Name(), c.Short)
				}
			}
		}
		fmt.Fprintf(&b, "\nExamples:\n%s\n\n%s\n\nprerig COMMAND --help describes a command, and prerig --version prints the version.\n", root.Example, exitCodes)
		fmt.Fprint(cmd.OutOrStdout(), b.String())
	}
}

// compareGenerated sorts the commands that the library adds, which it does in an order that depends on the command
// line, after the others.
func compareGenerated(a, b *cobra.Command) int {
	generated := []string{"completion", "help"}
	return slices.Index(generated, a.Name()) - slices.Index(generated, b.Name())
}

const exitCodes = `Exit codes of all commands:
  0  success
  1  a check found something (check, inject --check, diff, review, verify, doctor)
  2  invalid input, policy or flag, or a read or write error`
