// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/prerig/prerig/fn/lint/format"
	"github.com/prerig/prerig/fn/result"
)

// reportFlags are the flags of a command that reports findings of rules.
type reportFlags struct {
	output, failOn, colour string
	ruleFlags              []string
	list, allowEmpty       bool
	explain                string
	baseline               string
	writeBaseline          string
}

// thresholds are the values of --fail-on, with the severities that fail the command.
var thresholds = map[string][]result.Severity{
	"error":   {result.Error},
	"warning": {result.Error, result.Warning},
	"info":    {result.Error, result.Warning, result.Info},
	"never":   nil,
}

// failOnValues are those of thresholds, in the order of the help.
var failOnValues = []string{"error", "warning", "info", "never"}

// addReportFlags adds the flags of a command that checks things of a kind, such as "workload".
func (r *reportFlags) addReportFlags(cmd *cobra.Command, streams Streams, checked string) {
	f := cmd.Flags()
	formatFlag(cmd, streams, &r.output, format.Names)
	f.StringVar(&r.failOn, "fail-on", "error", "exit with 1 for findings of this severity and above: error, warning, info or never")
	f.StringArrayVar(&r.ruleFlags, "rule", nil, "severity of a rule, as CODE=Error, Warning, Info or Off; may be repeated")
	f.BoolVar(&r.allowEmpty, "allow-empty", false, "succeed if there is no "+checked+" to check")
	f.StringVar(&r.baseline, "baseline", "", "file with known findings, which are not reported")
	f.StringVar(&r.writeBaseline, "write-baseline", "",
		"write the findings to this file for --baseline, and exit with 0")
	refuseTogether(cmd, "baseline", "write-baseline")
	f.BoolVar(&r.list, "list-rules", false, "list the rules and exit")
	f.StringVar(&r.explain, "explain", "", "describe the rule of a finding, by its code, and exit")
	f.StringVar(&r.colour, "color", "auto", "when to colour text: auto, always or never")
	completeChoice(cmd, "fail-on", failOnValues)
	completeChoice(cmd, "color", colourValues)
	addCheck(cmd, func() error {
		if r.failOn == "warn" {
			r.failOn = "warning"
		}
		if err := checkChoice("fail-on", r.failOn, failOnValues); err != nil {
			return err
		}
		return checkChoice("color", r.colour, colourValues)
	})
}

// ruleSeverities parses --rule by codes. The example is part of the error about a malformed value.
func (r *reportFlags) ruleSeverities(example string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range r.ruleFlags {
		code, severity, ok := strings.Cut(text, "=")
		if !ok {
			return nil, fmt.Errorf("--rule is %q; it must be CODE=SEVERITY, such as %s", text, example)
		}
		out[code] = severity
	}
	return out, nil
}

// exitErrorForFindings returns the result of the command: objects that could not be checked have precedence over
// findings, because their findings are unknown. count is the number of checked objects of the kind.
func (r *reportFlags) exitErrorForFindings(found result.Results, unchecked, count int, checked string) error {
	switch {
	case unchecked > 0:
		return fmt.Errorf("not everything was checked, because of %s", countWithNoun(unchecked, "error"))
	case count == 0 && !r.allowEmpty:
		return errors.New("no " + checked + " was found, so nothing was checked; specify other files, or set --allow-empty if this is expected")
	}
	n := 0
	for _, one := range found {
		if slices.Contains(thresholds[r.failOn], one.Severity) {
			n++
		}
	}
	if n > 0 {
		return findingsError{fmt.Sprintf("%s of severity %s or above", countWithNoun(n, "finding"), r.failOn)}
	}
	return nil
}
