// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package tenant holds what the authors of a directory of pipelines may do: which namespaces their pipelines are of, what they
// read, where they publish to and whom they tell.
package tenant

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/giturl"
)

// Tenant is a directory of pipelines and what its authors may do. Lists that are nil set no bound.
type Tenant struct {
	// Directory below that of all pipelines, or of the repository's root.
	Directory string
	// Namespaces that pipelines may be of. The first is that of a pipeline which names none, where it is the only one.
	Namespaces []string
	// Sources, Targets and Notifications are what may be read, written and told.
	Sources, Targets, Notifications []giturl.Pattern
}

// New returns a tenant. Addresses are URLs of one repository or one server's path, or end in /* for all below; artifacts are
// oci://HOST/PATH. The error says which is wrong.
func New(directory string, namespaces, sources, targets, notifications []string) (Tenant, error) {
	t := Tenant{Directory: path.Clean(directory), Namespaces: namespaces}
	var errs []error
	if directory == "" || path.IsAbs(t.Directory) || t.Directory == ".." || strings.HasPrefix(t.Directory, "../") {
		errs = append(errs, fmt.Errorf("directory: must be relative to that of the pipelines and stay in it, found %q", directory))
	}
	if len(namespaces) == 0 {
		errs = append(errs, errors.New("namespaces: at least one must be given"))
	}
	for name, list := range map[string]struct {
		texts []string
		to    *[]giturl.Pattern
	}{"sources": {sources, &t.Sources}, "targets": {targets, &t.Targets}, "notifications": {notifications, &t.Notifications}} {
		for i, text := range list.texts {
			pattern, err := giturl.ParsePattern(overHTTPS(text))
			if err != nil {
				errs = append(errs, fmt.Errorf("%s[%d]: %w", name, i, err))
			}
			*list.to = append(*list.to, pattern)
		}
	}
	return t, errors.Join(errs...)
}

// Of returns the tenant with the longest directory that a file is in; false where it is in none.
func Of(all []Tenant, file string) (best Tenant, ok bool) {
	for _, t := range all {
		inside := t.Directory == "." || strings.HasPrefix(path.Clean(file), t.Directory+"/")
		if inside && (!ok || len(t.Directory) > len(best.Directory)) {
			best, ok = t, true
		}
	}
	return best, ok
}

// Owns reports whether the tenant's pipelines may be of a namespace.
func (t Tenant) Owns(namespace string) bool { return slices.Contains(t.Namespaces, namespace) }

// Check returns what a pipeline says that its author may not, nothing where all is well. A pipeline that names no namespace gets
// the tenant's.
func (t Tenant) Check(p *v1alpha1.RenderPipeline) error {
	if p.Metadata.Namespace == "" && len(t.Namespaces) == 1 {
		p.Metadata.Namespace = t.Namespaces[0]
	}
	var errs []error
	add := func(at, format string, args ...any) {
		errs = append(errs, &v1alpha1.FieldError{Path: at, Message: fmt.Sprintf(format, args...)})
	}
	if !t.Owns(p.Metadata.Namespace) {
		add("metadata.namespace", "must be %s for pipelines in %s", strings.Join(t.Namespaces, " or "), t.Directory)
	}
	check := func(patterns []giturl.Pattern, at, url, what string) {
		if patterns != nil && url != "" && !allowed(patterns, url) {
			add(at, "pipelines in %s may not %s it; who runs the daemon can allow it", t.Directory, what)
		}
	}
	switch src := p.Spec.Source; {
	case src.Git != nil:
		check(t.Sources, "spec.source.git.url", src.Git.URL, "read")
	case src.OCI != nil:
		check(t.Sources, "spec.source.oci.url", src.OCI.URL, "read")
	case src.Dir != nil && t.Sources != nil:
		add("spec.source.dir", "pipelines in %s may not read directories of the machine", t.Directory)
	}
	for i, base := range p.Spec.Build.RemoteBases {
		url := base.URL
		if all, ok := strings.CutSuffix(url, "/*"); ok {
			url = all + "/x" // all below it are allowed where one is that nobody has named
		}
		check(t.Sources, fmt.Sprintf("spec.build.remoteBases[%d].url", i), url, "read")
	}
	for i, to := range p.Spec.Publish {
		switch at := fmt.Sprintf("spec.publish[%d]", i); {
		case to.Git != nil:
			check(t.Targets, at+".git.url", to.Git.URL, "publish to")
		case to.OCI != nil:
			check(t.Targets, at+".oci.url", to.OCI.URL, "publish to")
		}
	}
	for i, n := range p.Spec.Notify {
		at := fmt.Sprintf("spec.notify[%d]", i)
		switch {
		case n.FluxReceiver != nil:
			check(t.Notifications, at+".fluxReceiver.url", n.FluxReceiver.URL, "call")
		case n.CloudEvent != nil:
			check(t.Notifications, at+".cloudEvent.url", n.CloudEvent.URL, "call")
		case n.CommitStatus != nil:
			check(t.Notifications, at+".commitStatus.url", n.CommitStatus.URL, "call")
		}
	}
	return errors.Join(errs...)
}

// allowed reports whether a pattern has a URL. What is written in a roundabout way is in none.
func allowed(patterns []giturl.Pattern, url string) bool {
	address, err := giturl.ParseAddress(strings.TrimSuffix(overHTTPS(url), "/"))
	if err != nil {
		return false
	}
	return slices.ContainsFunc(patterns, func(p giturl.Pattern) bool { _, ok := p.Match(&address); return ok })
}

// overHTTPS returns the URL of a repository of artifacts as that of the server that it is on.
func overHTTPS(url string) string {
	if rest, ok := strings.CutPrefix(url, "oci://"); ok {
		return "https://" + rest
	}
	return url
}
