// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
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
	cmd.Args = noArguments
	output := ""
	formatFlag(cmd, streams, &output, textFormats)
	cmd.RunE = func(*cobra.Command, []string) error {
		info := version.Of(linked)
		if output == "text" {
			_, err := fmt.Fprintln(streams.Out, info.Line("prerig"))
			return err
		}
		return writeStructured(streams.Out, output, info)
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
