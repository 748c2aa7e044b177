// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"errors"
	"fmt"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Reach is what pipelines may read, write and call. Lists that are nil set no bound.
type Reach struct {
	Sources, Targets, Notifications []giturl.Pattern
}

// NewReach returns a reach. Elements are URLs of one repository or one server's path, or end in /* for all below;
// artifacts are oci://HOST/PATH. The error names the invalid element.
func NewReach(sources, targets, notifications []string) (Reach, error) {
	var r Reach
	var errs []error
	parse := func(name string, texts []string, to *[]giturl.Pattern) {
		for i, text := range texts {
			pattern, err := giturl.ParsePattern(giturl.OverHTTPS(text))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", name, i, err))
			}
			*to = append(*to, pattern)
		}
	}
	parse("sources", sources, &r.Sources)
	parse("targets", targets, &r.Targets)
	parse("notifications", notifications, &r.Notifications)
	return r, errors.Join(errs...)
}

// Check returns an error if a pipeline names an address that is out of reach. whose names the pipelines that the
// reach is for. The API of the Git host that a source is on is called without being named, and needs no entry.
func (r Reach) Check(p *v1alpha1.RenderPipeline, whose string) error {
	var errs []error
	check := func(patterns []giturl.Pattern, at, url, what string) {
		if patterns != nil && url != "" && !giturl.Allows(patterns, url) {
			errs = append(errs, &v1alpha1.FieldError{Path: at, Message: fmt.Sprintf("%s may not %s it; who runs the daemon can allow it", whose, what)})
		}
	}
	for _, src := range p.AllSources() {
		switch {
		case src.Git != nil:
			check(r.Sources, src.Field+".git.url", src.Git.URL, "read")
		case src.OCI != nil:
			check(r.Sources, src.Field+".oci.url", src.OCI.URL, "read")
		}
	}
	for i, base := range p.Spec.Build.RemoteBases {
		url := base.URL
		if all, ok := strings.CutSuffix(url, "/*"); ok {
			url = all + "/x" // all below it are allowed if an unnamed one is
		}
		check(r.Sources, fmt.Sprintf("spec.build.remoteBases[%d].url", i), url, "read")
	}
	if helm := p.Spec.Build.Helm; helm != nil {
		check(r.Sources, "spec.build.helm.repository", helm.Repository, "read")
	}
	for i, one := range p.Spec.Build.ChartRepositories {
		url := one.URL
		if all, ok := strings.CutSuffix(url, "/*"); ok {
			url = all + "/x" // as with bases
		}
		check(r.Sources, fmt.Sprintf("spec.build.chartRepositories[%d].url", i), url, "read")
	}
	for i, to := range p.Spec.Publish {
		at := fmt.Sprintf("spec.publish[%d]", i)
		field, url := to.Address()
		if url == "" && r.Targets != nil { // a kind of place that has no address is allowed by none
			errs = append(errs, &v1alpha1.FieldError{Path: at, Message: whose + " may publish to addresses that are allowed only"})
		}
		check(r.Targets, at+"."+field, url, "publish to")
		if to.Git != nil && to.Git.PullRequest != nil {
			check(r.Targets, at+".git.pullRequest.url", to.Git.PullRequest.URL, "open pull requests at")
		}
	}
	if p.Spec.Preview != nil {
		check(r.Notifications, "spec.preview.url", p.Spec.Preview.URL, "call")
	}
	for i, n := range p.Spec.Notify {
		at := fmt.Sprintf("spec.notify[%d]", i)
		switch {
		case n.FluxReceiver != nil:
			check(r.Notifications, at+".fluxReceiver.url", n.FluxReceiver.URL, "call")
		case n.CloudEvent != nil:
			check(r.Notifications, at+".cloudEvent.url", n.CloudEvent.URL, "call")
		case n.CommitStatus != nil:
			check(r.Notifications, at+".commitStatus.url", n.CommitStatus.URL, "call")
		}
	}
	return errors.Join(errs...)
}
