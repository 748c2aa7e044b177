// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The values of flags of several commands, in the order of the help.
var (
	colourValues = []string{"auto", "always", "never"}
)

// completeChoice completes a flag with the values that it can have.
func completeChoice(cmd *cobra.Command, flag string, values []string) {
	mustRegister(cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)))
}

// checkChoice refuses a value of a flag that is not one of those that it can have.
func checkChoice(flag, value string, values []string) error {
	last := len(values) - 1
	if !slices.Contains(values, value) {
		return fmt.Errorf("--%s is %q; it can be %s or %s", flag, value, strings.Join(values[:last], ", "),
			values[last])
	}
	return nil
}

// wantsColour reports whether --color asks for colours on the streams.
func wantsColour(flag string, streams Streams) bool {
	return flag == "always" || flag == "auto" && streams.Colour
}
