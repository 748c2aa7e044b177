// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/cli/doctor"
	"github.com/prerig/prerig/pipeline/cli/policy"
	"github.com/prerig/prerig/pipeline/config"
)

// doctorRun is the state of one prerig doctor.
type doctorRun struct {
	streams Streams
	version string
	output  string
	failOn  string
	quiet   bool
	options doctor.Options
}

// doctorFailOn are the values of --fail-on.
var doctorFailOn = []string{"error", "warning", "never"}

func newDoctor(streams Streams, linked string) *cobra.Command {
	d := &doctorRun{streams: streams, version: linked}
	cmd := newCommand("doctor [POLICY]...", "Check policies or the setup of a daemon for problems")
	cmd.Long = `Check policies, or everything that a daemon works with, and report each problem with its place
and a fix. If POLICY is specified, a file or the name of a built-in policy, only policies are
checked. Otherwise the nearest prerig.yaml is checked and, if there is a directory of
pipelines or a flag or variable of prerig serve specifies another setup, the setup of a
daemon:

  versions       what this prerig supports, and what policies ask for
  configuration  the file, variables and flags, which are those of prerig serve
  policies       are valid, and inject a workload that asks for it
  pipelines      are valid, comply with the rules of the configuration, and can be rendered:
                 those of this repository from its files, others from their sources
  secrets        exist, have the required keys, and cannot be read by other users
  sources        can be read with their credentials, and have the revision to follow
  targets        accept pushes by the user; signing keys and pull request APIs work
  webhooks       have secrets that cannot be guessed
  addresses      are free, and certificates and tokens can be read
  isolation      what isolates renderers from this machine
  state          the state directory is writable and has space, and NATS responds

Nothing is changed: a push is started and ended before anything is sent, and the state
directory of a daemon is only read, so doctor can run next to a running daemon. Values of
secrets are never printed. Renders that take longer than 5 minutes together are ended and
named, as are those that --offline leaves out.

Exit codes:
  0  no problem was found
  1  an error was found, or with --fail-on warning a warning
  2  a flag is invalid`
	cmd.Example = `  prerig doctor
  prerig doctor mesh.yaml
  prerig doctor --config /etc/prerig/prerig.yaml
  prerig doctor --pipelines pipelines/ --secrets /run/secrets -o json`
	f := cmd.Flags()
	config.Flags(f)
	formatFlag(cmd, streams, &d.output, textFormats)
	f.StringVar(&d.failOn, "fail-on", "error", "exit with 1 for findings of this severity and above: error, warning or never")
	f.BoolVarP(&d.quiet, "quiet", "q", false, "print problems only")
	f.BoolVar(&d.options.Offline, "offline", false, "contact no server")
	f.DurationVar(&d.options.Timeout, "timeout", 30*time.Second, "how long to wait for the response of a server")
	completeChoice(cmd, "fail-on", doctorFailOn)
	completeDaemonFlags(cmd)
	cmd.ValidArgsFunction = completePolicies
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return d.runDoctor(cmd, args) }
	return cmd
}

func (d *doctorRun) runDoctor(cmd *cobra.Command, names []string) error {
	if err := checkChoice("fail-on", d.failOn, doctorFailOn); err != nil {
		return err
	}
	if d.options.Timeout <= 0 {
		return fmt.Errorf("the flag --timeout must be more than 0, found %s", d.options.Timeout)
	}
	configured := configuresDaemon(cmd)
	if len(names) > 0 && configured {
		return errors.New("policies and a daemon cannot be checked together; omit the policies, or the flags of the daemon")
	}
	bar := newBar(d.streams.Err, "checking")
	d.options.Version = toolVersion(d.version)
	d.options.Progress = func(done, total int, what string) { bar.setProgress(done, total, what) }
	findings, err := d.collectFindings(cmd, names, configured)
	bar.clearLine()
	if err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return d.printFindings(findings)
}

// collectFindings checks the named objects, or everything that is configured if none is named.
func (d *doctorRun) collectFindings(cmd *cobra.Command, names []string, configured bool) ([]doctor.Finding, error) {
	ctx := cmd.Context()
	if len(names) > 0 {
		return doctor.CheckPolicies(ctx, names, d.options), nil
	}
	if configured {
		return d.daemonFindings(ctx, cmd), nil
	}
	near, err := (&policy.Finder{}).Near(".")
	if err != nil {
		return nil, err
	}
	var findings []doctor.Finding
	if near != "" {
		findings = doctor.CheckPolicies(ctx, []string{near}, d.options)
	}
	if info, err := os.Stat(config.Default().Pipelines); err == nil && info.IsDir() {
		return doctor.Sort(append(findings, d.daemonFindings(ctx, cmd)...)), nil
	}
	if near == "" {
		return nil, errors.New("nothing to check: no prerig.yaml in this directory or above, and no directory of pipelines; create them with prerig init, or specify POLICY or --config")
	}
	return findings, nil
}

// configuresDaemon reports whether a flag or a variable is about a daemon.
func configuresDaemon(cmd *cobra.Command) bool {
	if os.Getenv("PRERIG_CONFIG") != "" {
		return true
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	changed := false
	flags.VisitAll(func(f *pflag.Flag) { changed = changed || cmd.Flags().Changed(f.Name) })
	return changed
}

// daemonFindings looks at the daemon. A configuration that cannot be read is a finding, and the only one.
func (d *doctorRun) daemonFindings(ctx context.Context, cmd *cobra.Command) []doctor.Finding {
	c, warnings, err := config.Load(cmd.Flags())
	if err != nil {
		var out []doctor.Finding
		for line := range strings.SplitSeq(err.Error(), "\n") {
			out = append(out, doctor.Finding{Area: doctor.Configuration, Severity: result.Error, Message: line, Advice: "see examples/daemon/prerig.yaml for every key"})
		}
		return out
	}
	return doctor.CheckDaemon(ctx, c, warnings, d.options)
}

// printFindings prints the findings, and returns the error for the exit code.
func (d *doctorRun) printFindings(findings []doctor.Finding) error {
	errs, warnings := doctor.Errors(findings)
	if d.quiet {
		findings = slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Severity == result.Info })
	}
	var err error
	if d.output == "text" {
		err = writeFindings(d.streams.Out, findings, d.streams.Colour)
	} else {
		err = writeStructured(d.streams.Out, d.output, append([]doctor.Finding{}, findings...))
	}
	if err != nil {
		return fmt.Errorf("writing the findings: %w", err)
	}
	if errs > 0 && d.failOn != "never" || warnings > 0 && d.failOn == "warning" {
		return findingsError{countWithNoun(errs, "error") + " and " + countWithNoun(warnings, "warning")}
	}
	if d.output == "text" && !d.quiet {
		fmt.Fprintf(d.streams.Err, "%s and %s\n", countWithNoun(errs, "error"), countWithNoun(warnings, "warning"))
	}
	return nil
}

// marks are how severities are shown.
var marks = map[result.Severity]struct{ word, colour string }{
	result.Error: {"error", "\x1b[31m"}, result.Warning: {"warning", "\x1b[33m"}, result.Info: {"ok", "\x1b[32m"},
}

// writeFindings writes findings for people, area by area.
func writeFindings(w io.Writer, findings []doctor.Finding, colour bool) error {
	var b strings.Builder
	var area doctor.Area
	for _, f := range findings {
		if f.Area != area {
			if area != "" {
				b.WriteByte('\n')
			}
			area = f.Area
			b.WriteString(string(area) + "\n")
		}
		mark := marks[f.Severity]
		word := fmt.Sprintf("%-7s", mark.word)
		if colour {
			word = mark.colour + word + "\x1b[0m"
		}
		text := escapeControlCharacters(f.Message)
		if f.Where != "" {
			text = escapeControlCharacters(f.Where) + ": " + text
		}
		fmt.Fprintf(&b, "  %s  %s\n", word, text)
		if f.Advice != "" {
			fmt.Fprintf(&b, "           %s\n", escapeControlCharacters(f.Advice))
		}
		if others := len(f.Pipelines) - 1; others > 0 && f.Severity != result.Info {
			fmt.Fprintf(&b, "           also in %s\n", escapeControlCharacters(foreign.List(f.Pipelines[1:], named)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
