// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/prune"
	"github.com/prerig/prerig/pipeline/server"
)

func newRemove(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.RemoveRequest
	var format string
	cmd := newCommand("remove PIPELINE... | --all", "Confirm the removal of missing pipelines")
	cmd.Long = `Confirm that a running daemon may remove pipelines that are no longer in its directory or
repository. Usually it removes them by itself after a while. If more than removals.max_share
percent of all pipelines, or the last one, disappeared at once, it waits for this command,
because a directory that is not mounted looks the same. prerig daemon status lists the waiting
pipelines.

The deletionPolicy of a pipeline determines what happens to the files that it has published:
they stay, or those that it owns are deleted. With --orphan they always stay.`
	cmd.Example = `  prerig daemon remove team/shop
  prerig daemon remove --all --dry-run
  prerig daemon remove --all --orphan`
	d.addFlags(cmd)
	d.completeRemovals(cmd)
	cmd.Flags().BoolVar(&request.All, "all", false, "all missing pipelines")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "print what would be removed, without changing anything")
	cmd.Flags().BoolVar(&request.Orphan, "orphan", false, "keep the published files, regardless of deletionPolicy")
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if (len(args) == 0) != request.All {
			return errors.New("name pipelines, or set --all")
		}
		request.Pipelines = args
		var answer server.RemoveAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/remove", request, &answer); err != nil {
			return err
		}
		if format != "text" {
			return writeStructured(streams.Out, format, answer)
		}
		if request.DryRun {
			tellRemovals(streams, answer.Plans)
			return nil
		}
		fmt.Fprintf(streams.Err, "confirmed the removal of %s\n", strings.Join(answer.Pipelines, ", "))
		return nil
	}
	return cmd
}

// tellRemovals prints what would become of the files of deleted pipelines.
func tellRemovals(streams Streams, plans []prune.Removal) {
	for _, one := range plans {
		what := "would be forgotten, and its files would stay"
		if one.Policy == v1alpha1.DeletionDelete {
			what = "would be removed, and the files that it owns deleted"
		}
		at := ""
		if len(one.Targets) > 0 {
			at = " at " + oneLine(strings.Join(one.Targets, ", "))
		}
		fmt.Fprintf(streams.Err, "%s %s%s\n", oneLine(one.Pipeline), what, at)
	}
}

// getCatalog asks where the daemon has the pipelines from.
func (d *daemonClient) getCatalog(ctx context.Context) (server.Catalog, error) {
	var c server.Catalog
	err := d.callAPI(ctx, http.MethodGet, "/api/v1/catalog", nil, &c)
	return c, err
}

// tellRemoved is how long a removed pipeline is reported.
const tellRemoved = time.Hour

// catalogNotes prints notes in addition to the pipelines: whether data can be stored, the origins of the pipelines,
// whether these can be read, and which pipelines are missing. A readable directory needs no note.
func catalogNotes(w io.Writer, c server.Catalog) error {
	if c.Problem != "" {
		fmt.Fprintf(w, "\nThe daemon is not ready: %s\n", oneLine(c.Problem))
	}
	if c.Revision != "" {
		fmt.Fprintf(w, "\nPipelines are from %s at %s, checked %s.\n", c.Source, shortRevision(c.Revision),
			timeSince(c.Checked))
	}
	for _, one := range c.Catalogs {
		fmt.Fprintf(w, "\nPipelines of %s are from %s", one.Name, one.Source)
		if one.Revision != "" {
			fmt.Fprintf(w, " at %s", shortRevision(one.Revision))
		}
		if one.Checked.IsZero() {
			fmt.Fprintln(w, ", which has not been read yet.")
			continue
		}
		fmt.Fprintf(w, ", checked %s.\n", timeSince(one.Checked))
	}
	if c.Error != "" {
		fmt.Fprintf(w, "\nThe pipelines cannot be read now; the last readable ones are used: %s\n", oneLine(c.Error))
	}
	if len(c.Removals) > 0 {
		table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(table, "\nDELETED\tREMOVAL\tSINCE\tPOLICY\tMESSAGE")
		for _, r := range c.Removals {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", r.Pipeline, r.State, timeSince(r.Since), r.Policy,
				oneLine(r.Message))
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, r := range c.Removed {
		if time.Since(r.At) < tellRemoved {
			fmt.Fprintf(w, "\nRemoved %s %s: %s\n", r.Pipeline, timeSince(r.At), r.Message)
		}
	}
	return nil
}
