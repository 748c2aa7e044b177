// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/version"
)

func newVersion(streams Streams, linked string) *cobra.Command {
	cmd := newCommand("version", "Print the version")
	cmd.Long = `Print the version, the commit with its date, the Go version, the platform, and the newest
Istio version whose injection is supported.`
	cmd.Example = `  prerig version
  prerig version -o json`
	cmd.Args = cobra.NoArgs
	output := cmd.Flags().StringP("output", "o", "text", "output format: text or json")
	completeChoice(cmd, "output", textOrJSONValues)
	cmd.RunE = func(*cobra.Command, []string) error {
		if err := checkChoice("output", *output, textOrJSONValues); err != nil {
			return err
		}
		info := version.Of(linked)
		if *output == "text" {
			_, err := fmt.Fprintln(streams.Out, info.Line("prerig"))
			return err
		}
		encoder := json.NewEncoder(streams.Out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(info)
	}
	return cmd
}

// toolVersion returns the version for commits and fingerprints: a result is rendered again when it changes.
func toolVersion(linked string) string {
	info := version.Of(linked)
	if info.Version == "dev" && info.Commit != "" {
		return info.Version + "-" + info.ShortCommit()
	}
	return info.Version
}
