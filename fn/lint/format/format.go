// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package format writes results for people and for machines: as lines of text, as JSON, and as SARIF 2.1.0 for the code
// scanning of Git hosts. It decides nothing about them.
package format

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
)

// Names are the formats that [Write] knows.
var Names = []string{"text", "json", "sarif"}

// Options say what a format may need beside the results.
type Options struct {
	// Version of the tool, for SARIF.
	Version string
	// Pods is how many pods were checked, and Injected how many of them have an injected sidecar.
	Pods, Injected int
	// Colour marks severities in text with the colours of a terminal.
	Colour bool
}

// Write writes the results in the named format.
func Write(w io.Writer, name string, rs result.Results, o Options) error {
	switch name {
	case "text":
		return Text(w, rs, o)
	case "json":
		return JSON(w, rs, o)
	case "sarif":
		return SARIF(w, rs, o)
	}
	return fmt.Errorf("writing results: the format %q is not one of %s", name, strings.Join(Names, ", "))
}

var colours = map[result.Severity]string{result.Error: "\x1b[31m", result.Warning: "\x1b[33m", result.Info: "\x1b[36m"}

// Text writes a line for each result, as results are written to standard error everywhere, and a line that counts them.
func Text(w io.Writer, rs result.Results, o Options) error {
	var b strings.Builder
	for _, r := range rs {
		line := r.String()
		if o.Colour {
			line = colours[r.Severity] + string(r.Severity) + "\x1b[0m" + strings.TrimPrefix(line, string(r.Severity))
		}
		b.WriteString(line + "\n")
	}
	count := map[result.Severity]int{}
	for _, r := range rs {
		count[r.Severity]++
	}
	fmt.Fprintf(&b, "%s checked, %d injected: %s, %s, %s\n", plural(o.Pods, "pod"), o.Injected, plural(count[result.Error], "error"), plural(count[result.Warning], "warning"), plural(count[result.Info], "note"))
	return write(w, b.String())
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// jsonResult is a result as the KRM functions specification writes it, with the code, the line and the container as fields of
// their own, so that nobody has to know our tags.
type jsonResult struct {
	Code      string              `json:"code,omitempty"`
	Severity  result.Severity     `json:"severity"`
	Message   string              `json:"message"`
	Resource  *result.ResourceRef `json:"resource,omitempty"`
	Field     *result.Field       `json:"field,omitempty"`
	Container string              `json:"container,omitempty"`
	File      string              `json:"file,omitempty"`
	Line      int                 `json:"line,omitempty"`
	Analyzers []string            `json:"analyzers,omitempty"`
}

// JSON writes an object with the number of pods and of injected ones among them, the list of results and their count by severity.
func JSON(w io.Writer, rs result.Results, o Options) error {
	out := struct {
		Pods     int                     `json:"pods"`
		Injected int                     `json:"injected"`
		Results  []jsonResult            `json:"results"`
		Count    map[result.Severity]int `json:"count"`
	}{Pods: o.Pods, Injected: o.Injected, Results: []jsonResult{}, Count: map[result.Severity]int{result.Error: 0, result.Warning: 0, result.Info: 0}}
	for _, r := range rs {
		j := jsonResult{
			Code: r.Tags[result.TagCode], Severity: r.Severity, Message: r.Message,
			Resource: r.ResourceRef, Field: r.Field, Container: r.Tags[lint.TagContainer],
		}
		if r.File != nil {
			j.File, j.Line = r.File.Path, r.File.Line
		}
		if rule, ok := lint.Lookup(j.Code); ok {
			j.Analyzers = rule.Analyzers
		}
		out.Results = append(out.Results, j)
		out.Count[r.Severity]++
	}
	return encode(w, out)
}

func encode(w io.Writer, v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return write(w, b.String())
}

func write(w io.Writer, s string) error {
	if _, err := io.WriteString(w, s); err != nil {
		return fmt.Errorf("writing results: %w", err)
	}
	return nil
}
