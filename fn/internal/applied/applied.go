// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package applied

import (
	"context"
	"errors"
)

// Options define what is checked.
type Options struct {
	// Validator is the program prerig-validate.
	Validator string
	// Charts is the command that renders Istio's charts; without it the installations are left out.
	Charts string
	// Installations are the names of Istio's installations that are checked; all if empty.
	Installations []string
	// Corpora are directories of Istio's test cases, and Examples is that of the examples; empty ones are left out.
	Corpora  []string
	Examples string
	// Count is the number of random workloads for Istio's installations, and of as many more for the built-in policies.
	Count int
	Seed  uint64
}

// runner is one run.
type runner struct {
	validator *validator
	report    Report
}

// Run checks everything that the options name, and returns what it found.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	v, err := startValidator(ctx, o.Validator)
	if err != nil {
		return nil, err
	}
	r := &runner{validator: v, report: Report{Kubernetes: v.Kubernetes, Refused: map[string]int{}, Expected: map[string]int{}}}
	check := func(b batch) error { return r.checkBatchStages(ctx, b) }
	defer func() { err = errors.Join(err, v.close()) }()
	for _, dir := range o.Corpora {
		if err := yieldIstioCorpus(dir, check); err != nil {
			return &r.report, err
		}
	}
	if o.Examples != "" {
		if err := yieldExampleManifests(o.Examples, check); err != nil {
			return &r.report, err
		}
	}
	if err := yieldRandomWorkloads(o.Seed, o.Count, check); err != nil {
		return &r.report, err
	}
	if o.Charts != "" {
		if err := yieldInstalledPolicies(ctx, o, check); err != nil {
			return &r.report, err
		}
	}
	return &r.report, nil
}
