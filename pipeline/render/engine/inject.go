// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prerig/prerig/fn"
	policyv1alpha1 "github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
)

// injection runs injectors, and records their decisions and results in the response.
type injection struct {
	compiled *policyCache
	response *render.Response
}

// run runs an injector and keeps its results. It returns an error if any of the results is one.
func (n *injection) run(ctx context.Context, injector *fn.Injector, items []fn.Item, layer string) (*fn.Report, error) {
	start := time.Now()
	defer func() { n.response.Inject += time.Since(start) }()
	report, err := injector.Run(ctx, items)
	if err != nil {
		return nil, err
	}
	n.response.FollowJobs = n.response.FollowJobs || injector.FollowsJobs()
	n.response.Results = append(n.response.Results, report.Results...)
	for _, o := range report.Outcomes {
		one := render.Decision{
			Object: o.Ref, Action: string(o.Action), Changed: o.Changed, Reason: o.Reason, Policy: o.Policy, Version: o.Version, Layer: layer,
		}
		if o.Decision != nil {
			one.Code = string(o.Decision.Code)
		}
		n.response.Decisions = append(n.response.Decisions, one)
	}
	if report.Failed() {
		return nil, resultsError("injecting", report.Results)
	}
	return report, nil
}

// resultsError is the first few errors among results.
func resultsError(doing string, results result.Results) error {
	const show = 5
	var errs []error
	count := 0
	for _, r := range results {
		if r.Severity != result.Error {
			continue
		}
		if count++; count <= show {
			errs = append(errs, errors.New(r.String()))
		}
	}
	if count > show {
		errs = append(errs, fmt.Errorf("and %d more errors", count-show))
	}
	return fmt.Errorf("%s: %w", doing, errors.Join(errs...))
}

// parsePolicies reads the policies of the pipeline.
func (n *injection) parsePolicies(sources []render.Policy, namespace string) (*compiledPolicies, error) {
	var text strings.Builder
	text.WriteString(namespace + "\n")
	for _, policy := range sources {
		fmt.Fprintf(&text, "%d %s %d %s\n", len(policy.Origin), policy.Origin, len(policy.YAML), policy.YAML)
	}
	return n.compiled.policiesForText(text.String(), func() (all []*policyv1alpha1.InjectionPolicy, err error) {
		for _, policy := range sources {
			parsed, err := policyv1alpha1.ParseFile(policy.Origin, []byte(policy.YAML))
			if err != nil {
				return nil, fmt.Errorf("reading the policy %s: %w", policy.Origin, err)
			}
			parsed.Spec.DefaultNamespace = cmp.Or(parsed.Spec.DefaultNamespace, namespace)
			all = append(all, parsed)
		}
		return all, nil
	})
}

// applyPolicies applies those of the pipeline to the result of the build.
func (n *injection) applyPolicies(ctx context.Context, policies *compiledPolicies, items []fn.Item) ([]fn.Item, error) {
	if len(policies.policies) == 0 {
		return items, nil
	}
	injector, err := policies.compiledInjector()
	if err != nil {
		return nil, err
	}
	// Package published keeps what is published afterwards. What the build has injected is not published yet.
	report, err := n.run(ctx, injector.WithPublished(nil), items, "")
	if err != nil {
		return nil, err
	}
	for _, doc := range report.Added {
		report.Items = append(report.Items, fn.Item{Doc: doc})
	}
	return report.Items, nil
}
