// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/pipeline/server"
)

func newReconcile(streams Streams) *cobra.Command {
	var d daemonClient
	var request server.Request
	var wait bool
	var format string
	var timeout time.Duration
	cmd := newCommand("reconcile PIPELINE... | --all", "Run pipelines now")
	cmd.Long = `Ask a running daemon to check the sources of pipelines now. With --wait, wait until it is
done, and fail if one of the pipelines is not Ready. Pipelines that are on hold or suspended
are not run, which is a failure for those that are named.`
	cmd.Example = `  prerig daemon reconcile team/shop --wait
  prerig daemon reconcile team/shop --force --dry-run
  prerig daemon reconcile --all --force`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	cmd.Flags().BoolVar(&request.All, "all", false, "all pipelines")
	cmd.Flags().BoolVar(&request.Force, "force", false,
		"render and publish even if nothing has changed, which also reverts changes by others")
	cmd.Flags().BoolVar(&request.DryRun, "dry-run", false,
		"with --force, print what would be reverted, without changing anything")
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until it is done")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Minute, "maximum time to wait")
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !request.All {
			return errors.New("no pipeline specified: name pipelines, or set --all")
		}
		if len(args) > 0 && request.All {
			return errors.New("pipelines and --all cannot be used together")
		}
		if wait && timeout <= 0 {
			return fmt.Errorf("the flag --timeout must be more than 0, found %s", timeout)
		}
		if request.DryRun && (!request.Force || wait) {
			return errors.New("--dry-run shows what --force puts back, and goes with --force and without --wait")
		}
		request.Pipelines = args
		var answer server.ReconcileAnswer
		if err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/reconcile", request, &answer); err != nil {
			return d.unknownNameError(cmd.Context(), args, err)
		}
		switch {
		case wait:
		case format != "text":
			return writeStructured(streams.Out, format, answer)
		case request.DryRun:
			tellPutBack(streams, answer.Plans)
			return nil
		default:
			fmt.Fprintf(streams.Err, "requested %s\n", countWithNoun(len(answer.Pipelines), "pipeline"))
			return nil
		}
		err := awaitAllHandled(cmd.Context(), streams, &d, answer.Answer, timeout, format)
		if stopped := (stoppedError{}); request.All && errors.As(err, &stopped) {
			return nil // it was not asked for by its name
		}
		return err
	}
	return cmd
}

// tellPutBack prints what a forced reconcile would undo of what others have changed.
func tellPutBack(streams Streams, plans []server.ReconcilePlan) {
	for _, p := range plans {
		if p.Diff == nil || len(p.Diff.Files)+p.Diff.LeftOut == 0 {
			fmt.Fprintf(streams.Err, "%s: nothing was changed by others\n", oneLine(p.Pipeline))
			continue
		}
		fmt.Fprintf(streams.Err, "%s: would put back %s\n", oneLine(p.Pipeline),
			countWithNoun(len(p.Diff.Files)+p.Diff.LeftOut, "file"))
		tellDiff(streams, p.Diff)
	}
}

// awaitAllHandled waits until every pipeline has handled the request.
func awaitAllHandled(ctx context.Context, streams Streams, d *daemonClient, answer server.Answer, timeout time.Duration,
	format string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	waiting := len(answer.Pipelines)
	bar := newBar(streams.Err, "waiting for pipelines")
	defer bar.clearLine()
	for {
		begin := time.Now()
		found, err := d.getRequested(ctx, answer.Pipelines)
		took := time.Since(begin)
		if ctx.Err() != nil {
			return notInTime(ctx, waiting, len(answer.Pipelines), timeout)
		}
		if err != nil {
			return err
		}
		bad := 0
		var stopped []string
		waiting = 0
		for _, p := range found {
			if !isHandled(p, answer.Token) {
				waiting++
			} else if p.State == server.StateSuspended {
				stopped = append(stopped, p.Name)
			} else if p.State != server.StateReady {
				bad++
			}
		}
		if waiting == 0 {
			bar.clearLine()
			err := error(nil)
			if format == "text" {
				err = statusTable(visibleWriter{streams.Out}, found, wide)
			} else {
				err = writeStructured(streams.Out, format, found)
			}
			if err != nil {
				return err
			}
			if bad > 0 {
				return findingsError{fmt.Sprintf("%d of %d pipelines are not ready", bad, len(found))}
			}
			if len(stopped) > 0 {
				return stoppedError{findingsError{stoppedText(stopped)}}
			}
			return nil
		}
		bar.setProgress(len(found)-waiting, len(found), "")
		select {
		case <-ctx.Done():
			return notInTime(ctx, waiting, len(found), timeout)
		case <-time.After(pollDelayAfter(took)):
		}
	}
}

// stoppedError is about pipelines that are on hold or suspended.
type stoppedError struct{ findingsError }

// Unwrap returns the error by which the command has found something.
func (e stoppedError) Unwrap() error { return e.findingsError }

// stoppedText describes pipelines that are on hold or suspended: they were not run.
func stoppedText(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return "on hold or suspended, and not run: " + text + "; prerig daemon promote or resume ends that"
}

// pollDelayAfter returns the delay before the next poll of pipelines that are waited for, after one that took that
// long. The daemon needs a third of a second to list ten thousand, which it should spend on running them: polls use
// a tenth of the time at most.
func pollDelayAfter(took time.Duration) time.Duration {
	return min(max(250*time.Millisecond, 9*took), 5*time.Second)
}

// notInTime returns an error with the pipelines still waited for when ctx was done.
func notInTime(ctx context.Context, waiting, of int, timeout time.Duration) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("waiting for %d of %d pipelines: not done within %s (--timeout); prerig daemon status shows their progress", waiting, of, timeout)
	}
	return fmt.Errorf("waiting for %d of %d pipelines: %w", waiting, of, ctx.Err())
}

// isHandled reports whether a pipeline has handled the request with a token, or a later one in its place. Tokens are
// only compared for being equal: what handles requests also notes those of annotations, which are any text.
func isHandled(p server.Pipeline, token string) bool {
	return p.Status.LastHandledReconcileAt == token || p.OpenRequest == ""
}

// manyPipelines is from how many on all are asked for, as their names make the address long.
const manyPipelines = 100

// getRequested returns the named pipelines. If many are named, those removed meanwhile are omitted.
func (d *daemonClient) getRequested(ctx context.Context, names []string) ([]server.Pipeline, error) {
	if len(names) < manyPipelines {
		return d.getPipelines(ctx, names...)
	}
	found, err := d.getPipelines(ctx)
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	return slices.DeleteFunc(found, func(p server.Pipeline) bool { return !wanted[p.Name] }), nil
}

func newSuspend(streams Streams, suspended bool) *cobra.Command {
	use, short, word := "resume PIPELINE... | --held", "Resume suspended pipelines", "resumed"
	long := `Resume pipelines that were stopped by prerig daemon suspend. Changes made meanwhile are rendered. If
the daemon's state was damaged, the daemon no longer knows which pipelines were stopped, and
holds all of them. Suspend those that must stay stopped again, and then resume the others with
--held.`
	if suspended {
		use, short, word = "suspend PIPELINE...", "Stop pipelines until they are resumed", "suspended"
		long = `Stop pipelines of a running daemon until prerig daemon resume. Published results stay. The suspension
is kept in the daemon's state directory; spec.suspend in the pipeline's file is independent of
it.`
	}
	var d daemonClient
	var format string
	request := server.Request{Suspended: suspended}
	cmd := newCommand(use, short)
	cmd.Long = long
	d.addFlags(cmd)
	d.completePipelines(cmd)
	if !suspended {
		cmd.Flags().BoolVar(&request.Held, "held", false, "all pipelines that are held because state was lost")
	}
	formatFlag(cmd, streams, &format, textFormats)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 && !request.Held {
			return errors.New("no pipeline specified: " + cmd.CommandPath() + " PIPELINE...")
		}
		request.Pipelines, request.All = args, len(args) == 0
		var answer server.Answer
		err := d.callAPI(cmd.Context(), http.MethodPost, "/api/v1/suspend", request, &answer)
		switch {
		case err != nil:
			return d.unknownNameError(cmd.Context(), args, err)
		case format != "text":
			return writeStructured(streams.Out, format, answer)
		}
		fmt.Fprintf(streams.Err, "%s %s\n", word, strings.Join(answer.Pipelines, ", "))
		return nil
	}
	return cmd
}
