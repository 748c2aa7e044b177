// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/server"
)

func newPromote(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	var format string
	cmd := newCommand("promote PIPELINE...", "Release pipelines that are on hold or waiting to merge")
	cmd.Long = `Release pipelines now, whatever their merge policies wait for: pipelines that are on hold
publish their newest result again, and pull requests with their results are merged, or opened
if they are waves whose turn has not come. This applies only to the commit that is waiting
now. The host's own rules, such as protected branches, and the version skew that Istio
supports between waves still apply.`
	cmd.Example = `  prerig daemon promote team/shop
  prerig daemon promote team/shop --dry-run`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "print which pipelines and pull requests would be released, without changing anything")
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline specified: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.PromoteAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/promote", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		if request.DryRun && !answer.DryRun {
			fmt.Fprintln(streams.Err, "the daemon does not support --dry-run, and has promoted")
		}
		if format != "text" {
			return writeStructured(streams.Out, format, answer)
		}
		onHold, released := "no longer on hold", "released"
		if answer.DryRun {
			onHold, released = "would no longer be on hold", "would be released"
		}
		if len(answer.Released) > 0 {
			fmt.Fprintf(streams.Err, "%s: %s\n", onHold, strings.Join(answer.Released, ", "))
		}
		if answer.DryRun && len(answer.Released) > 0 {
			fmt.Fprintln(streams.Err, "pipelines on hold are not rendered; prerig diff PIPELINE shows what they would publish")
		}
		for _, head := range answer.Groups {
			fmt.Fprintf(streams.Err, "%s: the pull request from %s\n", released, head)
		}
		if len(answer.Released)+len(answer.Groups) == 0 {
			fmt.Fprintln(streams.Err, "nothing is on hold, and no pull request is waiting")
		}
		return nil
	}
	return cmd
}

func newHold(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	var format string
	cmd := newCommand("hold PIPELINE...", "Put pipelines on hold: publish nothing, merge nothing")
	cmd.Long = `Keep pipelines of a running daemon from publishing until prerig daemon promote or prerig daemon resume.
Prerig does not merge pull requests with their results either; people can.`
	cmd.Example = `  prerig daemon hold team/shop --reason "the new proxy leaks memory"`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().StringVar(&request.Reason, "reason", "", "reason that is shown to others")
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline specified: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.Answer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/hold", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		if format != "text" {
			return writeStructured(streams.Out, format, answer)
		}
		fmt.Fprintf(streams.Err, "on hold: %s\n", strings.Join(answer.Pipelines, ", "))
		return nil
	}
	return cmd
}

func newRollback(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	var format string
	cmd := newCommand("rollback PIPELINE...", "Undo the last publish of pipelines")
	cmd.Long = `Undo exactly the changes of one publish, by default the last one of each pipeline: a commit,
or a pull request if the pipeline publishes by pull request, restores the previous bytes of
all files that the publish changed. If one of them was changed again since, nothing is rolled
back.

All pipelines that the publish changed are put on hold, so that the newer result is not
published again at once. prerig daemon promote ends the hold.

Exit codes:
  0  done, or a pull request is open
  1  rejected, because something changed since
  2  the request failed, or is being retried`
	cmd.Example = `  prerig daemon rollback team/shop
  prerig daemon rollback team/shop --dry-run
  prerig daemon rollback team/shop --commit 4f2a90c`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false,
		"print the commit, the pipelines and the diff, and change nothing")
	cmd.Flags().StringVar(&request.Commit, "commit", "",
		"commit of the published branch to undo, instead of the last one of the pipeline")
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline specified: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.RollbackAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/rollback", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		if format != "text" {
			if err := writeStructured(streams.Out, format, answer); err != nil {
				return err
			}
			streams.Out = io.Discard // the diffs are in the plans
		}
		if request.DryRun {
			return printRollbackPlans(streams, answer)
		}
		return printRollbackOutcomes(streams, answer)
	}
	return cmd
}

// printRollbackPlans prints what rollbacks would do. A daemon that is older than the command has done them.
func printRollbackPlans(streams Streams, answer server.RollbackAnswer) error {
	if len(answer.Rollbacks) > 0 {
		fmt.Fprintln(streams.Err, "the daemon does not support dry runs, and has rolled back")
		return printRollbackOutcomes(streams, answer)
	}
	refused := false
	for _, p := range answer.Plans {
		fmt.Fprintf(streams.Err, "%.12s at %s, %q, %s; on hold afterwards: %s\n", p.Commit, p.Target, p.Subject,
			countWithNoun(p.Files, "file"), strings.Join(p.Pipelines, ", "))
		if p.Diff == nil {
			refused = true
			fmt.Fprintf(streams.Err, "it would be rejected: %s\n", oneLine(p.Message))
			continue
		}
		tellDiff(streams, p.Diff)
	}
	if refused {
		return findingsError{"a rollback would be rejected"}
	}
	return nil
}

// tellDiff prints a difference as text, and what was left out of it.
func tellDiff(streams Streams, d *status.Diff) {
	for _, f := range d.Files {
		for line := range strings.Lines(f.Patch) {
			fmt.Fprintln(streams.Out, foreign.Visible(strings.TrimSuffix(line, "\n")))
		}
		if f.LinesLeftOut > 0 {
			fmt.Fprintf(streams.Err, "%s: %s more\n", oneLine(f.Path), countWithNoun(f.LinesLeftOut, "line"))
		}
	}
	if d.LeftOut > 0 {
		fmt.Fprintf(streams.Err, "%s more\n", countWithNoun(d.LeftOut, "file"))
	}
}

// printRollbackOutcomes prints the outcome of rollbacks.
func printRollbackOutcomes(streams Streams, answer server.RollbackAnswer) error {
	refused, again := false, false
	for _, r := range answer.Rollbacks {
		fmt.Fprintf(streams.Err, "%.12s at %s, %s: %s\n", r.Commit, r.Target, countWithNoun(r.Files, "file"),
			describeRollback(r))
		refused, again = refused || r.State == status.RollbackRefused, again || r.State == status.RollbackAsked
	}
	switch {
	case refused:
		return findingsError{"a rollback was rejected"}
	case again:
		return errors.New("rolling back: not done yet and being retried; prerig daemon status shows the outcome")
	}
	fmt.Fprintf(streams.Err, "on hold until prerig daemon promote: %s\n", strings.Join(answer.Pipelines, ", "))
	return nil
}

// describeRollback describes the state of a rollback.
func describeRollback(r status.Rollback) string {
	switch r.State {
	case status.RollbackDone:
		if r.Result != "" {
			return fmt.Sprintf("rolled back by %.12s", r.Result)
		}
		return "rolled back"
	case status.RollbackOpen:
		return oneLine(r.Message) + ": " + r.URL
	case status.RollbackClosed, status.RollbackRefused:
		return "not rolled back: " + oneLine(r.Message)
	}
	return "requested; " + oneLine(r.Message)
}

// printPromotions prints the state of waves and merges, and the rollbacks that are pending or less than an hour old.
// A daemon that is older than the command reports none.
func (d *daemonClient) printPromotions(ctx context.Context, w io.Writer) error {
	var all server.Promotions
	if err := d.callAPI(ctx, http.MethodGet, "/api/v1/promotions", nil, &all); err != nil {
		var told daemonError
		if errors.As(err, &told) && told.code == http.StatusNotFound {
			return nil
		}
		return err
	}
	var rows []string
	for _, p := range all.Promotions {
		if p.Waves {
			rows = append(rows, waveRows(p)...)
			continue
		}
		if s := p.Stages[0]; s.State != promotion.StageIdle && s.State != promotion.StageDone {
			rows = append(rows, stageRow(s.Head, s))
		}
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(rows) > 0 {
		fmt.Fprintln(table, "\nWAITS\tSTATE\tISTIO\tSINCE\tPULL REQUEST\tPIPELINES\tMESSAGE")
		fmt.Fprint(table, strings.Join(rows, ""))
	}
	title := "\nROLLBACK OF\tSTATE\tSINCE\tAT\tMESSAGE\n"
	for _, r := range all.Rollbacks {
		if ended := r.State != status.RollbackAsked && r.State != status.RollbackOpen; ended && time.Since(r.At) > tellRemoved {
			continue
		}
		fmt.Fprintf(table, "%s%.12s\t%s\t%s\t%s\t%s\n", title, r.Commit, r.State, timeSince(r.At), oneLine(r.Target),
			oneLine(describeRollback(r)))
		title = ""
	}
	return table.Flush()
}

// waveRows is a line for each wave, first to last.
func waveRows(p promotion.Promotion) []string {
	var rows []string
	for i, s := range p.Stages {
		rows = append(rows, stageRow(fmt.Sprintf("%s %d of %d: %s", p.Label, i+1, len(p.Stages), s.Name), s))
	}
	return rows
}

func stageRow(name string, s promotion.StageStatus) string {
	request := "-"
	if s.Number > 0 {
		request = fmt.Sprint(s.Number)
	}
	istio := strings.Join(s.Istio, ", ")
	if len(s.Next) > 0 {
		istio += " → " + strings.Join(s.Next, ", ")
	}
	message := strings.TrimSpace(s.Message + " " + s.Remaining(time.Now()))
	return fmt.Sprintf(
		"%s\t%s\t%s\t%s\t%s\t%d of %d\t%s\n",
		oneLine(name), s.State, cmp.Or(istio, "-"), timeSince(s.Since), request, s.Waits, s.Pipelines, oneLine(message),
	)
}
