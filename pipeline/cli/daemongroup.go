// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// daemonCommands returns the commands that control a running daemon, and its worker.
func daemonCommands(streams Streams, linked string) []*cobra.Command {
	return []*cobra.Command{
		newStatus(streams), newReconcile(streams), newSuspend(streams, true), newSuspend(streams, false),
		newHold(streams), newPromote(streams), newRollback(streams), newRemove(streams),
		newSnapshot(streams), newToken(streams), newWorker(streams, linked),
	}
}

// newDaemon returns the command that groups those for a daemon.
func newDaemon(streams Streams, linked string) *cobra.Command {
	cmd := newCommand("daemon", "Control a running daemon: status, reconcile, promote, rollback and others")
	cmd.Long = `Control a daemon that prerig serve has started, on this machine through its socket (--state) or
elsewhere through its page (--server).`
	cmd.Example = `  prerig daemon status --failing
  prerig daemon reconcile team/shop --wait
  prerig daemon rollback team/shop --dry-run`
	cmd.Args = knownCommand
	cmd.SuggestionsMinimumDistance = 2
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(daemonCommands(streams, linked)...)
	return cmd
}

// formerCommands returns the commands of a daemon by the names that they had before prerig daemon.
func formerCommands(streams Streams, linked string) []*cobra.Command {
	all := daemonCommands(streams, linked)
	for _, cmd := range all {
		moveCommand(streams, cmd)
	}
	return all
}

// moveCommand hides a command that is now below prerig daemon. When it runs, a warning names its place.
func moveCommand(streams Streams, cmd *cobra.Command) {
	cmd.Hidden = true
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		fmt.Fprintf(streams.Err, "warning: %s is now %s daemon%s\n", cmd.CommandPath(), cmd.Root().Name(),
			cmd.CommandPath()[len(cmd.Root().Name()):])
		return run(cmd, args)
	}
	for _, sub := range cmd.Commands() {
		moveCommand(streams, sub)
	}
}
