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
	cmd := newCommand("doctor [POLICY]...", "Say what is wrong with policies, or with the set-up of a daemon")
	cmd.Long = `Look at policies and at all that a daemon works with, and say what is wrong, where, and what to
do. With a policy, a file or the name of a built-in one, only policies are looked at. Without
one, the nearest prerig.yaml is, and, where there is a directory of pipelines or a flag or
variable of prerig serve names something else, the set-up of a daemon:

  versions       what this prerig knows, and what policies ask for
  configuration  the file, variables and flags, which are those of prerig serve
  policies       are valid, and inject a workload that asks for it
  pipelines      are valid, and keep to the rules of the configuration
  secrets        are there, have the keys they are needed for, and nobody else can read them
  sources        can be read with their credentials, and have what is followed
  targets        let the user push, and signing keys and APIs of pull requests work
  webhooks       have secrets that nobody can guess
  addresses      are free, and certificates and tokens can be read
  isolation      what keeps renderers from this machine
  state          the state directory can be written and has room, and NATS answers

It changes nothing: a push is begun and ended before anything is sent, and the state directory
of a daemon is only looked at, so that it may be run beside one. Values of secrets are never
printed. What is inside of sources is not read; prerig render does that.

Exit codes:
  0  nothing is wrong
  1  something is: an error, or with --fail-on warning a warning
  2  a flag is wrong`
	cmd.Example = `  prerig doctor
  prerig doctor mesh.yaml
  prerig doctor --config /etc/prerig/prerig.yaml
  prerig doctor --pipelines pipelines/ --secrets /run/secrets -o json`
	f := cmd.Flags()
	config.Flags(f)
	f.StringVarP(&d.output, "output", "o", "text", "text or json")
	f.StringVar(&d.failOn, "fail-on", "error", "what gives the exit code 1: error, warning or never")
	f.BoolVarP(&d.quiet, "quiet", "q", false, "print only what is wrong")
	f.BoolVar(&d.options.Offline, "offline", false, "ask no server")
	f.DurationVar(&d.options.Timeout, "timeout", 30*time.Second, "how long a server may take to answer")
	completeChoice(cmd, "output", textOrJSONValues)
	completeChoice(cmd, "fail-on", doctorFailOn)
	completeDaemonFlags(cmd)
	cmd.ValidArgsFunction = completePolicies
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return d.runDoctor(cmd, args) }
	return cmd
}

func (d *doctorRun) runDoctor(cmd *cobra.Command, names []string) error {
	if err := checkChoice("output", d.output, textOrJSONValues); err != nil {
		return err
	}
	if err := checkChoice("fail-on", d.failOn, doctorFailOn); err != nil {
		return err
	}
	if d.options.Timeout <= 0 {
		return fmt.Errorf("the flag --timeout must be more than 0, found %s", d.options.Timeout)
	}
	configured := configuresDaemon(cmd)
	if len(names) > 0 && configured {
		return errors.New("policies are looked at alone, or a daemon without naming any; leave out the policies, or the flags of the daemon")
	}
	bar := newBar(d.streams.Err, "looking")
	d.options.Version = toolVersion(d.version)
	d.options.Progress = func(done, total int, what string) { bar.setProgress(done, total, what) }
	findings, err := d.findings(cmd, names, configured)
	bar.clearLine()
	if err != nil {
		return err
	}
	if err := cmd.Context().Err(); err != nil {
		return err
	}
	return d.tell(findings)
}

// findings checks the named objects, or everything that is configured if none is named.
func (d *doctorRun) findings(cmd *cobra.Command, names []string, configured bool) ([]doctor.Finding, error) {
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
		return nil, errors.New("there is nothing to look at: no prerig.yaml here or above, and no directory of pipelines; prerig init writes them, POLICY or --config names others")
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
			out = append(out, doctor.Finding{Area: doctor.Configuration, Severity: result.Error, Message: line, Advice: "examples/daemon/prerig.yaml has every key"})
		}
		return out
	}
	return doctor.CheckDaemon(ctx, c, warnings, d.options)
}

// tell prints the findings, and returns the error for the exit code.
func (d *doctorRun) tell(findings []doctor.Finding) error {
	errs, warnings := doctor.Errors(findings)
	if d.quiet {
		findings = slices.DeleteFunc(findings, func(f doctor.Finding) bool { return f.Severity == result.Info })
	}
	var err error
	if d.output == "json" {
		if findings == nil {
			findings = []doctor.Finding{}
		}
		err = writeJSON(d.streams.Out, findings)
	} else {
		err = writeFindings(d.streams.Out, findings, d.streams.Colour)
	}
	if err != nil {
		return fmt.Errorf("writing what was found: %w", err)
	}
	if errs > 0 && d.failOn != "never" || warnings > 0 && d.failOn == "warning" {
		return findingsError{plural(errs, "error") + " and " + plural(warnings, "warning")}
	}
	if d.output == "text" && !d.quiet {
		fmt.Fprintf(d.streams.Err, "%s and %s\n", plural(errs, "error"), plural(warnings, "warning"))
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
		text := visibleText(f.Message)
		if f.Where != "" {
			text = visibleText(f.Where) + ": " + text
		}
		fmt.Fprintf(&b, "  %s  %s\n", word, text)
		if f.Advice != "" {
			fmt.Fprintf(&b, "           %s\n", visibleText(f.Advice))
		}
		if others := len(f.Pipelines) - 1; others > 0 && f.Severity != result.Info {
			fmt.Fprintf(&b, "           also of %s\n", visibleText(firstOf(f.Pipelines[1:], named)))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// firstOf joins the first names, and counts the rest.
func firstOf(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
