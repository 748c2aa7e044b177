// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/server"
)

func newStatus(streams Streams) *cobra.Command {
	var d daemonClient
	var output string
	cmd := newCommand("status [PIPELINE...]", "Show what became of the pipelines of a daemon")
	cmd.Long = `Show the state of all pipelines of a running daemon, or of some of them with their last
runs.`
	cmd.Example = `  prerig status
  prerig status team/shop
  prerig status -o json | jq '.[] | select(.state != "Ready")'`
	d.flags(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "text", "text or json")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if output != "text" && output != "json" {
			return fmt.Errorf("the flag --output must be text or json, found %q", output)
		}
		found, err := d.pipelines(cmd.Context(), args...)
		if err != nil {
			return err
		}
		if output == "json" {
			return writeJSON(streams.Out, found)
		}
		if len(args) == 0 {
			from, err := d.catalog(cmd.Context())
			if err == nil {
				err = statusTable(streams.Out, found)
			}
			if err != nil {
				return err
			}
			return catalogNotes(streams.Out, from)
		}
		for _, p := range found {
			if err := statusOf(streams.Out, p); err != nil {
				return err
			}
		}
		return nil
	}
	return cmd
}

func writeJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

func statusTable(w io.Writer, found []server.Pipeline) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PIPELINE\tSTATE\tLAST RUN\tREVISION\tMESSAGE")
	for _, p := range found {
		when, revision := "", ""
		if run := p.Status.LastRun; run != nil {
			when, revision = since(run.Finished.Time), shortRevision(run.Revision)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", p.Name, p.State, when, revision, oneLine(p.Message))
	}
	return table.Flush()
}

func statusOf(w io.Writer, p server.Pipeline) error {
	fmt.Fprintf(w, "%s: %s\n", p.Name, p.State)
	if p.Message != "" {
		fmt.Fprintf(w, "  %s\n", strings.ReplaceAll(p.Message, "\n", "\n  "))
	}
	for _, one := range p.Status.Published {
		fmt.Fprintf(w, "  published %s at %s from %s\n", one.Target, one.Revision, one.SourceRevision)
	}
	if len(p.Runs) == 0 {
		return nil
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "  RUN\tOUTCOME\tWHEN\tREVISION\tWHY\tMESSAGE")
	for _, run := range p.Runs {
		outcome := run.Outcome
		if run.Repeats > 0 {
			outcome = fmt.Sprintf("%s x%d", outcome, run.Repeats+1)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", run.ID, outcome, since(run.Finished.Time), shortRevision(run.Revision), run.Reason, oneLine(run.Message))
	}
	return table.Flush()
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return time.Since(t).Round(time.Second).String() + " ago"
}

// shortRevision keeps the name and the first digits of a revision.
func shortRevision(revision string) string {
	name, hash, ok := strings.Cut(revision, ":")
	if !ok || len(hash) < 12 {
		return revision
	}
	return name + ":" + hash[:12]
}

func oneLine(text string) string {
	const longest = 160
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > longest {
		text = strings.ToValidUTF8(text[:longest], "") + "…"
	}
	return text
}

func newReconcile(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	var wait bool
	var timeout time.Duration
	cmd := newCommand("reconcile PIPELINE... | --all", "Ask a daemon to run pipelines now")
	cmd.Long = `Ask a running daemon to look at the sources of pipelines now. With --wait, wait until it
has, and fail where one of them is not ready then.`
	cmd.Example = `  prerig reconcile team/shop --wait
  prerig reconcile --all --force`
	d.flags(cmd)
	cmd.Flags().BoolVar(&request.All, "all", false, "all pipelines")
	cmd.Flags().BoolVar(&request.Force, "force", false, "render although nothing has changed")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "longest time to wait")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !request.All {
			return errors.New("name pipelines, or give --all")
		}
		request.Pipelines = args
		var answer server.Answer
		if err := d.call(cmd.Context(), http.MethodPost, "/api/v1/reconcile", request, &answer); err != nil {
			return err
		}
		if !wait {
			fmt.Fprintf(streams.Err, "asked for %d pipelines\n", len(answer.Pipelines))
			return nil
		}
		return awaitAll(cmd.Context(), streams, &d, answer, timeout)
	}
	return cmd
}

// awaitAll waits until every pipeline has handled the request.
func awaitAll(ctx context.Context, streams Streams, d *daemonClient, answer server.Answer, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		found, err := d.pipelines(ctx, answer.Pipelines...)
		if err != nil {
			return err
		}
		waiting, bad := 0, 0
		for _, p := range found {
			if p.Status.LastHandledReconcileAt < answer.Token {
				waiting++
			} else if p.State != server.StateReady && p.State != server.StateSuspended {
				bad++
			}
		}
		if waiting == 0 {
			if err := statusTable(streams.Out, found); err != nil {
				return err
			}
			if bad > 0 {
				return findings{fmt.Sprintf("%d of %d pipelines are not ready", bad, len(found))}
			}
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %d of %d pipelines: %w", waiting, len(found), ctx.Err())
		case <-time.After(250 * time.Millisecond):
		}
	}
}

func newSuspend(streams Streams, suspended bool) *cobra.Command {
	use, short, word := "resume PIPELINE...", "Let pipelines of a daemon run again", "resumed"
	if suspended {
		use, short, word = "suspend PIPELINE...", "Stop pipelines of a daemon until they are resumed", "suspended"
	}
	var d daemonClient
	cmd := newCommand(use, short)
	d.flags(cmd)
	cmd.Args = cobra.MinimumNArgs(1)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var answer server.Answer
		err := d.call(cmd.Context(), http.MethodPost, "/api/v1/suspend", server.Request{Pipelines: args, Suspended: suspended}, &answer)
		if err == nil {
			fmt.Fprintf(streams.Err, "%s %s\n", word, strings.Join(answer.Pipelines, ", "))
		}
		return err
	}
	return cmd
}
