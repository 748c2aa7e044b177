// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersion(streams Streams, version string) *cobra.Command {
	cmd := newCommand("version", "Print the version")
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(*cobra.Command, []string) error {
		_, err := fmt.Fprintln(streams.Out, Version(version))
		return err
	}
	return cmd
}

// Version is the version with the commit, as far as the build knows them: the version that the linker was given, else that
// of the module. It names no time, so that a build can be repeated.
func Version(linked string) string {
	version, commit := linked, ""
	if info, ok := debug.ReadBuildInfo(); ok {
		if version == "" && info.Main.Version != "" && info.Main.Version != "(devel)" {
			version = info.Main.Version
		}
		commit = commitOf(info.Settings)
	}
	if version == "" {
		version = "dev"
	}
	if commit != "" {
		commit = "commit " + commit + ", "
	}
	return fmt.Sprintf("prerig %s (%s%s %s/%s)", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit's short id, with a mark where the tree had changes.
func commitOf(settings []debug.BuildSetting) string {
	commit, dirty := "", ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}
