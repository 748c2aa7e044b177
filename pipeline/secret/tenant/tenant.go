// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package tenant defines what the authors of a directory of pipelines may do: which namespaces their pipelines
// belong to, what they read, where they publish to and whom they notify.
package tenant

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// Tenant is a directory of pipelines and what its authors may do.
type Tenant struct {
	// Directory below that of all pipelines, or of the repository's root.
	Directory string
	// Namespaces that pipelines may be of. The first is that of a pipeline which names none, where it is the only one.
	Namespaces []string
	// Reach is what may be read, written and notified.
	Reach
}

// New returns a tenant. Addresses are URLs of one repository or one server's path, or end in /* for all below;
// artifacts are oci://HOST/PATH. The error names the invalid address.
func New(directory string, namespaces, sources, targets, notifications []string) (Tenant, error) {
	t := Tenant{Directory: path.Clean(directory), Namespaces: namespaces}
	var errs []error
	if directory == "" || path.IsAbs(t.Directory) || t.Directory == ".." || strings.HasPrefix(t.Directory, "../") {
		errs = append(errs, fmt.Errorf("directory: must be relative to that of the pipelines and stay in it, found %q", directory))
	}
	if len(namespaces) == 0 {
		errs = append(errs, errors.New("namespaces: at least one must be given"))
	}
	reach, err := NewReach(sources, targets, notifications)
	t.Reach = reach
	errs = append(errs, err)
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

// directoryName names the tenant's directory to its authors.
func (t Tenant) directoryName() string {
	if t.Directory == "." {
		return "this repository"
	}
	return t.Directory
}

// Whose names the tenant's pipelines to their authors.
func (t Tenant) Whose() string { return "pipelines in " + t.directoryName() }

// Check returns an error if a pipeline requests what its author may not use. A pipeline that names no namespace
// gets the tenant's.
func (t Tenant) Check(p *v1alpha1.RenderPipeline) error {
	if p.Metadata.Namespace == "" && len(t.Namespaces) == 1 {
		p.Metadata.Namespace = t.Namespaces[0]
	}
	var errs []error
	add := func(at, format string, args ...any) {
		errs = append(errs, &v1alpha1.FieldError{Path: at, Message: fmt.Sprintf(format, args...)})
	}
	if !t.Owns(p.Metadata.Namespace) {
		add("metadata.namespace", "must be %s for pipelines in %s", strings.Join(t.Namespaces, " or "),
			t.directoryName())
	}
	for _, source := range p.AllSources() {
		if source.Dir != nil && t.Sources != nil {
			add(source.Field+".dir", "%s may not read directories of the machine", t.Whose())
		}
	}
	errs = append(errs, t.Reach.Check(p, t.Whose()))
	return errors.Join(errs...)
}
