// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package doctor checks the setup of policies and of a daemon, and reports problems, their places, and what to do.
// It asks servers for its permissions, and changes neither the state directory of a daemon nor any server.
package doctor

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/fn/result"
)

// Area is what a finding is about.
type Area string

// The areas, in the order in which they are reported.
const (
	Versions      Area = "versions"
	Configuration Area = "configuration"
	Policies      Area = "policies"
	Pipelines     Area = "pipelines"
	Secrets       Area = "secrets"
	Sources       Area = "sources"
	Targets       Area = "targets"
	Webhooks      Area = "webhooks"
	Addresses     Area = "addresses"
	Isolation     Area = "isolation"
	State         Area = "state"
)

var areas = []Area{Versions, Configuration, Policies, Pipelines, Secrets, Sources, Targets, Webhooks, Addresses,
	Isolation, State}

// Finding is one thing that was looked at.
type Finding struct {
	Area Area `json:"area"`
	// Severity is error where something does not work, warning where it may not or is not safe, and info where all is
	// well.
	Severity result.Severity `json:"severity"`
	// Where is a file, a field, a key of the configuration or a URL.
	Where   string `json:"where,omitempty"`
	Message string `json:"message"`
	// Advice is what to do; it is empty if the message contains it.
	Advice string `json:"advice,omitempty"`
	// Unit is the Kustomization of Flux that it concerns. File and Line are a place in the source of the pipeline.
	Unit string `json:"unit,omitempty"`
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	// Pipelines that it concerns.
	Pipelines []string `json:"pipelines,omitempty"`
}

// Options of a look.
type Options struct {
	// Version of Prerig.
	Version string
	// Timeout bounds each question to a server.
	Timeout time.Duration
	// Offline asks no server.
	Offline bool
	// Progress hears how many questions are answered, and may be nil. It may be called by several goroutines at once.
	Progress func(done, total int, what string)
}

// atOnce is how many servers are asked at the same time.
const atOnce = 8

// report collects findings. It is safe for concurrent use.
type report struct {
	mu       sync.Mutex
	findings []Finding
	secrets  secretWatch
}

func (r *report) add(f Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.findings = append(r.findings, f)
}

func (r *report) addPassedCheck(area Area, where, format string, args ...any) {
	r.add(Finding{Area: area, Severity: result.Info, Where: where, Message: fmt.Sprintf(format, args...)})
}

func (r *report) addWarning(area Area, where, message, advice string) {
	r.add(Finding{Area: area, Severity: result.Warning, Where: where, Message: message, Advice: advice})
}

func (r *report) addFailure(area Area, where string, err error, advice string) {
	r.add(Finding{Area: area, Severity: result.Error, Where: where, Message: oneLine(err), Advice: advice})
}

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// sortedRedactedFindings returns the findings by area, what is wrong first, without the values of secrets.
func (r *report) sortedRedactedFindings() []Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := slices.Clone(r.findings)
	for i := range out {
		for _, text := range []*string{&out[i].Where, &out[i].Message, &out[i].Advice} {
			*text = r.secrets.hideSecretValues(*text)
		}
	}
	return Sort(out)
}

// Sort orders findings for output: by area, problems first. Duplicates are removed.
func Sort(findings []Finding) []Finding {
	rank := map[result.Severity]int{result.Error: 0, result.Warning: 1, result.Info: 2}
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(slices.Index(areas, a.Area), slices.Index(areas, b.Area)),
			cmp.Compare(rank[a.Severity], rank[b.Severity]),
			cmp.Compare(a.Where, b.Where), cmp.Compare(a.Message, b.Message))
	})
	return slices.CompactFunc(findings, func(a, b Finding) bool {
		return a.Area == b.Area && a.Severity == b.Severity && a.Where == b.Where && a.Message == b.Message
	})
}

// Errors counts the errors and the warnings of findings.
func Errors(findings []Finding) (errors, warnings int) {
	for _, f := range findings {
		switch f.Severity {
		case result.Error:
			errors++
		case result.Warning:
			warnings++
		}
	}
	return errors, warnings
}

// questions are asked at the same time, each bounded.
type questions struct {
	list []func(ctx context.Context)
	what []string
}

func (q *questions) add(what string, ask func(ctx context.Context)) {
	q.list, q.what = append(q.list, ask), append(q.what, what)
}

func (q *questions) runAllChecks(ctx context.Context, o Options) {
	var group errgroup.Group
	group.SetLimit(atOnce)
	var mu sync.Mutex
	done := 0
	for i, ask := range q.list {
		group.Go(func() error {
			asking, cancel := context.WithTimeout(ctx, o.Timeout)
			defer cancel()
			ask(asking)
			mu.Lock()
			defer mu.Unlock()
			if done++; o.Progress != nil {
				o.Progress(done, len(q.list), q.what[i])
			}
			return nil
		})
	}
	_ = group.Wait()
}
