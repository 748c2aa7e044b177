// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package format writes results for people and for machines: as lines of text, as JSON, YAML and SARIF 2.1.0 for the
// code scanning of Git hosts. It makes no decisions about them.
package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/lint/baseline"
	"github.com/prerig/prerig/fn/result"
)

// Names are the formats that [Write] knows.
var Names = []string{"text", "json", "yaml", "sarif"}

// Options hold what a format may need besides the results.
type Options struct {
	// Version of the tool, for SARIF.
	Version string
	// Pods is how many pods were checked, and Injected how many of them have an injected sidecar.
	Pods, Injected int
	// Objects is how many objects were checked; nil where only pods are. With objects, Pods is 0 if no pods are counted.
	Objects *int
	// Rules are those that SARIF describes; nil for those of lint.
	Rules []Rule
	// Suppressed are the findings that an annotation or a policy suppresses.
	Suppressed result.Results
	// Baseline describes the findings held back by a baseline, or is nil without one.
	Baseline *Baseline
	// Colour marks severities in text with the colours of a terminal.
	Colour bool
	// AllPlaces names in text all objects that a finding about the mesh concerns, and not only the first ones.
	AllPlaces bool
}

// Rule describes a rule that is not one of lint's.
type Rule struct {
	Code, Title, Why, Change string
	// Severity is the default; empty for a rule that is off.
	Severity result.Severity
	// Group is the heading under which it is described, in the document at the path in the repository.
	Group, Document string
}

// Baseline is what a baseline has kept back.
type Baseline struct {
	// Known is how many findings are in the baseline and not reported.
	Known int `json:"known"`
	// Gone lists its entries that no longer match any finding.
	Gone []baseline.Entry `json:"gone"`
}

// Write writes the results in the named format.
func Write(w io.Writer, name string, rs result.Results, o Options) error {
	switch name {
	case "text":
		return Text(w, rs, o)
	case "json":
		return JSON(w, rs, o)
	case "yaml":
		return YAML(w, rs, o)
	case "sarif":
		return SARIF(w, rs, o)
	}
	return fmt.Errorf("writing results: the format %q is not one of %s", name, strings.Join(Names, ", "))
}

var colours = map[result.Severity]string{result.Error: "\x1b[31m", result.Warning: "\x1b[33m", result.Info: "\x1b[36m"}

// firstPlaces is how many objects of a finding about the mesh are named in text.
const firstPlaces = 5

// Text writes a line for each result, in the form used on standard error everywhere, and a line that counts them.
// The objects of a finding about the mesh follow below it.
func Text(w io.Writer, rs result.Results, o Options) error {
	var b strings.Builder
	count := map[result.Severity]int{}
	for _, r := range rs {
		count[r.Severity]++
		places := r.Places
		if len(places) > 0 {
			r.Places, r.Message = nil, countWithNoun(len(places), o.placeNoun())+": "+r.Message
		}
		line := r.String()
		if o.Colour {
			line = colours[r.Severity] + string(r.Severity) + "\x1b[0m" + strings.TrimPrefix(line, string(r.Severity))
		}
		b.WriteString(line + "\n")
		writePlaces(&b, places, o.AllPlaces)
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s", o.describeCheckedCount(), countWithNoun(count[result.Error], "error"), countWithNoun(count[result.Warning], "warning"), countWithNoun(count[result.Info], "note"))
	if n := len(o.Suppressed); n > 0 {
		fmt.Fprintf(&b, "; %d suppressed", n)
	}
	if o.Baseline != nil {
		fmt.Fprintf(&b, "; %d in the baseline", o.Baseline.Known)
	}
	return writeResultText(w, b.String()+"\n")
}

// placeNoun is what the places of a finding are.
func (o Options) placeNoun() string {
	if o.Objects != nil {
		return "object"
	}
	return "workload"
}

// describeCheckedCount describes what was checked.
func (o Options) describeCheckedCount() string {
	if o.Objects != nil {
		text := countWithNoun(*o.Objects, "object") + " checked"
		if o.Pods > 0 {
			text += fmt.Sprintf(", %s, %d injected", countWithNoun(o.Pods, "pod"), o.Injected)
		}
		return text
	}
	return fmt.Sprintf("%s checked, %d injected", countWithNoun(o.Pods, "pod"), o.Injected)
}

func writePlaces(b *strings.Builder, places []result.Place, all bool) {
	for i, p := range places {
		if more := len(places) - i; i == firstPlaces && more > 1 && !all {
			fmt.Fprintf(b, "    and %d more (-v names them)\n", more)
			return
		}
		b.WriteString("    " + p.String() + "\n")
	}
}

func countWithNoun(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// jsonResult is a result in the form of the KRM functions specification, with separate fields for the code, the
// line and the container, so that consumers need not know our tags. A finding about the mesh has places instead of
// resource, field, file and line.
type jsonResult struct {
	Code      string              `json:"code,omitempty"`
	Severity  result.Severity     `json:"severity"`
	Message   string              `json:"message"`
	Resource  *result.ResourceRef `json:"resource,omitempty"`
	Field     *result.Field       `json:"field,omitempty"`
	Container string              `json:"container,omitempty"`
	File      string              `json:"file,omitempty"`
	Line      int                 `json:"line,omitempty"`
	Places    []jsonPlace         `json:"places,omitempty"`
	Analyzers []string            `json:"analyzers,omitempty"`
	// Audience is who can change it: operator, application, or unspecified.
	Audience lint.Audience `json:"audience,omitempty"`
	// Reason is why the finding is suppressed.
	Reason string `json:"reason,omitempty"`
}

type jsonPlace struct {
	Resource result.ResourceRef `json:"resource"`
	Field    *result.Field      `json:"field,omitempty"`
	File     string             `json:"file,omitempty"`
	Line     int                `json:"line,omitempty"`
}

// JSON writes an object with the number of pods and of injected ones among them, or of objects, the list of results, their count by severity, and
// what is not reported: suppressed findings, and what the baseline has kept back.
func JSON(w io.Writer, rs result.Results, o Options) error {
	out := struct {
		Objects    *int                    `json:"objects,omitempty"`
		Pods       *int                    `json:"pods,omitempty"`
		Injected   *int                    `json:"injected,omitempty"`
		Results    []jsonResult            `json:"results"`
		Count      map[result.Severity]int `json:"count"`
		Suppressed []jsonResult            `json:"suppressed,omitempty"`
		Baseline   *Baseline               `json:"baseline,omitempty"`
	}{Objects: o.Objects, Results: jsonResults(rs), Count: map[result.Severity]int{result.Error: 0, result.Warning: 0, result.Info: 0},
		Suppressed: jsonResults(o.Suppressed), Baseline: o.Baseline}
	if o.Objects == nil || o.Pods > 0 {
		out.Pods, out.Injected = &o.Pods, &o.Injected
	}
	for _, r := range rs {
		out.Count[r.Severity]++
	}
	return writeIndentedJSON(w, out)
}

// YAML writes what JSON writes, as YAML.
func YAML(w io.Writer, rs result.Results, o Options) error {
	var b bytes.Buffer
	if err := JSON(&b, rs, o); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(b.Bytes())
	if err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return writeResultText(w, string(text))
}

func jsonResults(rs result.Results) []jsonResult {
	out := make([]jsonResult, 0, len(rs))
	for _, r := range rs {
		j := jsonResult{
			Code: r.Tags[result.TagCode], Severity: r.Severity, Message: r.Message,
			Resource: r.ResourceRef, Field: r.Field, Container: r.Tags[lint.TagContainer], Reason: r.Tags[lint.TagReason],
		}
		if r.File != nil {
			j.File, j.Line = r.File.Path, r.File.Line
		}
		for _, p := range r.Places {
			place := jsonPlace{Resource: p.ResourceRef, Field: p.Field}
			if p.File != nil {
				place.File, place.Line = p.File.Path, p.File.Line
			}
			j.Places = append(j.Places, place)
		}
		if rule, ok := lint.Lookup(j.Code); ok {
			j.Analyzers, j.Audience = rule.Analyzers, rule.Audience
		}
		out = append(out, j)
	}
	return out
}

func writeIndentedJSON(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return writeResultText(w, b.String())
}

func writeResultText(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
