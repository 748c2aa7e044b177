// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Sidecar is one sidecar of a policy, ready to be injected. It is immutable and may be used by several goroutines at
// once.
type Sidecar struct {
	spec       v1alpha1.Sidecar
	selection  *compiledSelect
	parameters []*compiledParameter
	templates  *parsedTemplates
	// own are the prefixes of the sidecar's annotations, and reads the annotations that a rule reads.
	own   []string
	reads map[string]bool
}

// New prepares a sidecar: it loads the built-in one if it names one, compiles its rules, patterns and templates,
// and fills in defaults. Its errors name the field below the sidecar, or the template and line.
func New(s v1alpha1.Sidecar) (*Sidecar, error) {
	s, err := withBuiltIn(s)
	if err != nil {
		return nil, err
	}
	if problems := s.Problems(); len(problems) > 0 {
		return nil, fmt.Errorf("reading sidecar %s: %s", s.Name, problems[0])
	}
	out := &Sidecar{spec: s, own: s.OwnAnnotations, reads: map[string]bool{}}
	if out.selection, err = newSelection(s.Select, out.reads); err != nil {
		return nil, fmt.Errorf("reading sidecar %s: %w", s.Name, err)
	}
	for i, p := range s.Parameters {
		compiled, err := newParameter(p)
		if err != nil {
			return nil, fmt.Errorf("reading sidecar %s: parameters[%d] (%s): %w", s.Name, i, p.Name, err)
		}
		out.parameters = append(out.parameters, compiled)
	}
	if out.templates, err = newTemplates(s); err != nil {
		return nil, fmt.Errorf("reading sidecar %s: %w", s.Name, err)
	}
	return out, nil
}

// Name is the sidecar's name.
func (s *Sidecar) Name() string { return s.spec.Name }

// Outside reports whether the sidecar is injected after Istio.
func (s *Sidecar) Outside() bool { return s.spec.Order.Istio == v1alpha1.IstioOutside }

// Workload is the object that the pod belongs to, as its manifest has it.
type Workload struct {
	APIVersion, Kind, Name, Namespace string
	Labels, Annotations               map[string]string
}

// Namespace is the namespace that the pod will run in.
type Namespace struct {
	Name                string
	Labels, Annotations map[string]string
	// Known reports whether the labels and annotations are known, as opposed to known to be empty.
	Known bool
	// Declared reports whether they are those of a Namespace among the manifests. The cluster's own may have more.
	Declared bool
}

// Request is one pod to inject a sidecar into.
type Request struct {
	// Pod has the keys metadata and spec: the pod as the sidecars before this one have made it. It is not changed.
	Pod map[string]any
	// Original is the pod without any injection: its labels and annotations select and set parameters, and its
	// containers are the app's.
	Original  map[string]any
	Workload  Workload
	Namespace Namespace
	// Unknown is what to do where the labels or annotations of the namespace would decide and are not known.
	Unknown v1alpha1.UnknownNamespace
}

// compileWildcards compiles names with * and ? into one expression; nil for no names.
func compileWildcards(names []string) *regexp.Regexp {
	if len(names) == 0 {
		return nil
	}
	parts := make([]string, len(names))
	for i, name := range names {
		part := regexp.QuoteMeta(name)
		part = strings.ReplaceAll(part, `\*`, ".*")
		parts[i] = strings.ReplaceAll(part, `\?`, ".")
	}
	return regexp.MustCompile("^(?s:" + strings.Join(parts, "|") + ")$")
}
