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

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/review/diff"
	"github.com/prerig/prerig/pipeline/server"
)

func newPromote(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	cmd := newCommand("promote PIPELINE...", "Let what waits of pipelines go on now")
	cmd.Long = `Let what waits of pipelines go on now, whatever their policies for merging wait for: pipelines
that are on hold publish their newest result again, and pull requests that they wait in are merged,
or if they are waves whose turn has not come, opened. That is for exactly the commit that waits
now. The host's own rules, such as protected branches, hold all the same, and so does the skew
that Istio supports between waves.`
	cmd.Example = `  prerig promote team/shop`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline is named: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.PromoteAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/promote", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		if len(answer.Released) > 0 {
			fmt.Fprintf(streams.Err, "not on hold any more: %s\n", strings.Join(answer.Released, ", "))
		}
		for _, head := range answer.Groups {
			fmt.Fprintf(streams.Err, "goes on: the pull request from %s\n", head)
		}
		if len(answer.Released)+len(answer.Groups) == 0 {
			fmt.Fprintln(streams.Err, "nothing is on hold, and no pull request waits")
		}
		return nil
	}
	return cmd
}

func newHold(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	cmd := newCommand("hold PIPELINE...", "Keep pipelines from publishing, and what waits of them from being merged")
	cmd.Long = `Keep pipelines of a running daemon from publishing until prerig promote or prerig resume. Prerig
does not merge pull requests that hold results of them, either; people can.`
	cmd.Example = `  prerig hold team/shop --reason "the new proxy leaks memory"`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().StringVar(&request.Reason, "reason", "", "why, as others are shown it")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline is named: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.Answer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/hold", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		fmt.Fprintf(streams.Err, "on hold: %s\n", strings.Join(answer.Pipelines, ", "))
		return nil
	}
	return cmd
}

func newRollback(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	cmd := newCommand("rollback PIPELINE...", "Take back what was published last of pipelines")
	cmd.Long = `Take back exactly what one publish has changed, by default the last of each pipeline: a commit
gives all files that it changed the bytes that they had before, or where the pipeline publishes by
pull request, a pull request does. Files that were changed once more since are left alone, and then
nothing is taken back.

All pipelines that the publish had changed are put on hold, so that the newer result is not
published again at once. prerig promote ends that.

Exit codes:
  0  done, or a pull request is open
  1  refused, as something was changed since
  2  it could not be asked for, or is tried again`
	cmd.Example = `  prerig rollback team/shop
  prerig rollback team/shop --dry-run
  prerig rollback team/shop --commit 4f2a90c`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false, "print the commit, the pipelines and the difference, and change nothing")
	cmd.Flags().StringVar(&request.Commit, "commit", "", "the commit of the published branch to take back, instead of the last one of the pipeline")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errors.New("no pipeline is named: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines = args
		var answer server.RollbackAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/rollback", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		if request.DryRun {
			return tellPlans(streams, answer)
		}
		return tellRollbacks(streams, answer)
	}
	return cmd
}

// tellPlans prints what rollbacks would do. A daemon that is older than the command has done them.
func tellPlans(streams Streams, answer server.RollbackAnswer) error {
	if len(answer.Rollbacks) > 0 {
		fmt.Fprintln(streams.Err, "the daemon knows no dry run, and has rolled back")
		return tellRollbacks(streams, answer)
	}
	refused := false
	for _, p := range answer.Plans {
		fmt.Fprintf(streams.Err, "%.12s at %s, %q, %s; on hold afterwards: %s\n", p.Commit, p.Target, p.Subject, plural(p.Files, "file"), strings.Join(p.Pipelines, ", "))
		if p.Diff == nil {
			refused = true
			fmt.Fprintf(streams.Err, "it would be refused: %s\n", oneLine(p.Message))
			continue
		}
		for _, f := range p.Diff.Files {
			for line := range strings.Lines(f.Patch) {
				fmt.Fprintln(streams.Out, diff.Visible(strings.TrimSuffix(line, "\n")))
			}
			if f.LinesLeftOut > 0 {
				fmt.Fprintf(streams.Err, "%s: %s more\n", oneLine(f.Path), plural(f.LinesLeftOut, "line"))
			}
		}
		if p.Diff.LeftOut > 0 {
			fmt.Fprintf(streams.Err, "%s more\n", plural(p.Diff.LeftOut, "file"))
		}
	}
	if refused {
		return findingsError{"a rollback would be refused"}
	}
	return nil
}

// tellRollbacks prints the outcome of rollbacks.
func tellRollbacks(streams Streams, answer server.RollbackAnswer) error {
	refused, again := false, false
	for _, r := range answer.Rollbacks {
		fmt.Fprintf(streams.Err, "%.12s at %s, %s: %s\n", r.Commit, r.Target, plural(r.Files, "file"), describeRollback(r))
		refused, again = refused || r.State == status.RollbackRefused, again || r.State == status.RollbackAsked
	}
	switch {
	case refused:
		return findingsError{"a rollback was refused"}
	case again:
		return errors.New("rolling back: it is tried again; prerig status shows what becomes of it")
	}
	fmt.Fprintf(streams.Err, "on hold until prerig promote: %s\n", strings.Join(answer.Pipelines, ", "))
	return nil
}

// describeRollback describes the state of a rollback.
func describeRollback(r status.Rollback) string {
	switch r.State {
	case status.RollbackDone:
		if r.Result != "" {
			return fmt.Sprintf("taken back by %.12s", r.Result)
		}
		return "taken back"
	case status.RollbackOpen:
		return oneLine(r.Message) + ": " + r.URL
	case status.RollbackClosed, status.RollbackRefused:
		return "not taken back: " + oneLine(r.Message)
	}
	return "asked for; " + oneLine(r.Message)
}

// tellPromotions prints the state of waves and merges, and the rollbacks that are pending or less than an hour old.
// A daemon that is older than the command reports none.
func (d *daemonClient) tellPromotions(ctx context.Context, w io.Writer) error {
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
		fmt.Fprintln(table, "\nWAITS\tSTATE\tSINCE\tPULL REQUEST\tPIPELINES\tMESSAGE")
		fmt.Fprint(table, strings.Join(rows, ""))
	}
	title := "\nROLLBACK OF\tSTATE\tSINCE\tAT\tMESSAGE\n"
	for _, r := range all.Rollbacks {
		if ended := r.State != status.RollbackAsked && r.State != status.RollbackOpen; ended && time.Since(r.At) > tellRemoved {
			continue
		}
		fmt.Fprintf(table, "%s%.12s\t%s\t%s\t%s\t%s\n", title, r.Commit, r.State, timeSince(r.At), oneLine(r.Target), oneLine(describeRollback(r)))
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
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d of %d\t%s\n", oneLine(name), s.State, timeSince(s.Since), request, s.Waits, s.Pipelines, oneLine(s.Message))
}
