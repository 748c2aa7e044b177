// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/prerig/prerig/pipeline/server"
)

// states lists the states in the order in which they need attention.
var states = []string{server.StateInvalid, server.StateFailing, server.StateStalled, server.StateDrifted,
	server.StateSuspended, server.StateNew, server.StateReady}

// failing are the states of pipelines that do not do what they should.
var failing = []string{server.StateInvalid, server.StateFailing, server.StateStalled, server.StateDrifted}

// statusOptions are what the command shows, and how.
type statusOptions struct {
	output         string
	states         []string
	failing, check bool
	watch          bool
	every          time.Duration
}

func newStatus(streams Streams) *cobra.Command {
	var d daemonClient
	var o statusOptions
	cmd := newCommand("status [PIPELINE...]", "Show the state of pipelines")
	cmd.Long = `Show the state of all pipelines of a running daemon, or of some of them with their last runs:

  Ready      the last run succeeded
  New        has not run yet
  Failing    failed, and is retried
  Stalled    failed, and needs a change
  Drifted    others have changed the published files
  Invalid    its file is not a valid pipeline
  Suspended  stopped by its file or by prerig daemon suspend

The list is followed by the repository of the pipelines, if they are read from one, missing
pipelines (see prerig daemon remove), pending merges, rollbacks, and the pull requests that are
previewed (spec.preview).

Exit codes:
  0  success
  1  --check: a listed pipeline is Invalid, Failing, Stalled or Drifted, the pipelines cannot
     be read, or the daemon is not ready
  2  the daemon cannot be reached`
	cmd.Example = `  prerig daemon status
  prerig daemon status --failing --check
  prerig daemon status team/shop
  prerig daemon status -o json | jq '.[] | select(.state != "Ready")'`
	d.addFlags(cmd)
	d.completePipelines(cmd)
	f := cmd.Flags()
	formatFlag(cmd, streams, &o.output, textFormats)
	f.StringSliceVar(&o.states, "only", nil, "show only pipelines in these states: "+strings.Join(states, ", "))
	f.BoolVar(&o.failing, "failing", false, "show only pipelines that are "+strings.Join(failing, ", "))
	f.BoolVar(&o.check, "check", false, "exit with 1 if a listed pipeline is "+strings.Join(failing, ", "))
	f.BoolVarP(&o.watch, "watch", "w", false, "keep showing the state until interrupted; if the output is not a terminal, print only changes")
	f.DurationVar(&o.every, "every", 2*time.Second, "polling interval of --watch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return o.runStatus(cmd.Context(), streams, &d, args) }
	return cmd
}

func (o *statusOptions) runStatus(ctx context.Context, streams Streams, d *daemonClient, args []string) error {
	if err := o.checkValues(); err != nil {
		return err
	}
	screen := streams.Out
	if o.output == "text" {
		streams.Out = visibleWriter{screen}
	}
	if o.watch {
		return o.watchStatus(ctx, streams.Out, screen, d, args)
	}
	found, err := d.getPipelines(ctx, args...)
	if err != nil {
		return err
	}
	notes := o.output == "text" && len(args) == 0
	var from server.Catalog
	if notes || o.check {
		if from, err = d.getCatalog(ctx); err != nil {
			return err
		}
	}
	shown := o.printStatus(streams, found, len(args) > 0)
	if notes {
		if err := catalogNotes(streams.Out, from); err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
		if err := d.printPromotions(ctx, streams.Out); err != nil {
			return err
		}
		if err := d.printPreviews(ctx, streams.Out); err != nil {
			return err
		}
	}
	if shown == nil && o.check && from.Error != "" {
		return findingsError{"the pipelines cannot be read"}
	}
	if shown == nil && o.check && from.Problem != "" {
		return findingsError{"the daemon is not ready: " + oneLine(from.Problem)}
	}
	return shown
}

func (o *statusOptions) checkValues() error {
	for i, state := range o.states {
		at := slices.IndexFunc(states, func(s string) bool { return strings.EqualFold(s, state) })
		if at < 0 {
			return fmt.Errorf("the flag --only must be some of %s, found %q", strings.Join(states, ", "), state)
		}
		o.states[i] = states[at]
	}
	if o.failing {
		o.states = append(o.states, failing...)
	}
	if o.watch && o.check {
		return errors.New("the flags --watch and --check cannot be used together: a watch never ends, so nothing can be checked")
	}
	if o.watch && o.every <= 0 {
		return fmt.Errorf("the flag --every must be more than 0, found %s", o.every)
	}
	if o.watch && o.output != "text" {
		return fmt.Errorf("the flag --watch supports text only, not %s", o.output)
	}
	return nil
}

// filterPipelines are the pipelines that the filters let through.
func (o *statusOptions) filterPipelines(all []server.Pipeline) []server.Pipeline {
	if len(o.states) == 0 {
		return all
	}
	out := []server.Pipeline{}
	for _, p := range all {
		if slices.Contains(o.states, p.State) {
			out = append(out, p)
		}
	}
	return out
}

func (o *statusOptions) printStatus(streams Streams, all []server.Pipeline, detailed bool) error {
	found := o.filterPipelines(all)
	var err error
	switch {
	case o.output != "text":
		err = writeStructured(streams.Out, o.output, found)
	case detailed:
		for i, p := range found {
			if i > 0 {
				fmt.Fprintln(streams.Out)
			}
			if err = writePipelineStatus(streams.Out, p); err != nil {
				break
			}
		}
	default:
		err = writeStatusList(streams.Out, found, all)
	}
	if err != nil {
		return fmt.Errorf("writing the state: %w", err)
	}
	bad := 0
	for _, p := range found {
		if slices.Contains(failing, p.State) {
			bad++
		}
	}
	if o.check && bad > 0 {
		return findingsError{fmt.Sprintf("%s of %d failing", countWithNoun(bad, "pipeline"), len(all))}
	}
	return nil
}

// watchStatus shows the state until ctx is done: on a terminal, which is the screen, all of it, otherwise a line for
// each pipeline that has changed.
func (o *statusOptions) watchStatus(ctx context.Context, out, screen io.Writer, d *daemonClient, names []string) error {
	shown := map[string]string{}
	_, terminal := terminalWidth(screen)
	for {
		all, err := d.getPipelines(ctx, names...)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		found := o.filterPipelines(all)
		if terminal {
			fmt.Fprint(screen, "\x1b[H\x1b[J")
			err = writeStatusList(out, found, all)
		} else {
			err = statusTable(out, changedSince(shown, found), wide)
		}
		if err != nil {
			return fmt.Errorf("writing the state: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.every):
		}
	}
}

// changedSince returns those that are not as they were shown, and remembers them.
func changedSince(shown map[string]string, found []server.Pipeline) (out []server.Pipeline) {
	for _, p := range found {
		now := p.State + " " + p.Message
		if run := p.Status.LastRun; run != nil {
			now += " " + run.ID
		}
		for _, one := range p.Status.Published {
			if one.PullRequest != nil {
				now += fmt.Sprintf(" %d %s", one.PullRequest.Number, one.PullRequest.State)
			}
		}
		if shown[p.Name] != now {
			shown[p.Name] = now
			out = append(out, p)
		}
	}
	return out
}

// terminalWidth is the number of columns where it is a terminal.
func terminalWidth(w io.Writer) (int, bool) {
	file, ok := terminalOf(w)
	if !ok {
		return 0, false
	}
	columns, _, err := term.GetSize(int(file.Fd()))
	if err != nil || columns < 40 {
		columns = 80
	}
	return columns, true
}
