// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package review

import (
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/lint"
	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/fn/workload"
)

// lintBefore lints files as they are published, because more is not known of them. Rules that need more than
// manifests, such as the version of the mesh, have no findings.
func (r *review) lintBefore(p *Pipeline) result.Results {
	severities, err := lint.NewPolicySeverities(&v1alpha1.Lint{})
	if err != nil {
		return nil
	}
	namespaces := map[string]map[string]string{}
	var sides []*side
	for _, name := range sortedNames(p.Before) {
		found, _ := splitFile(name, p.Before[name])
		for _, s := range found {
			if s.meta.Kind == "Namespace" {
				namespaces[s.meta.Name], _ = workload.Labels(s.value)
			}
		}
		sides = append(sides, found...)
	}
	var all result.Results
	var summaries []lint.Summary
	var around lint.Surroundings
	for _, s := range sides {
		if m := s.meta; lint.ReadsKind(m.APIVersion, m.Kind) {
			around.Objects = append(around.Objects,
				lint.Object{APIVersion: m.APIVersion, Kind: m.Kind, Name: m.Name, Namespace: m.Namespace,
					Object: s.value, File: &result.File{Path: s.path}})
			continue
		}
		for _, in := range r.lintInputs(s, namespaces) {
			found, _ := lint.Check(in, severities)
			all = append(all, found...)
			if summary, ok := lint.Summarize(in); ok {
				summaries = append(summaries, summary)
			}
		}
	}
	found, _ := lint.CheckSet(summaries, around, severities)
	return append(all, found...)
}

func (r *review) lintInputs(s *side, namespaces map[string]map[string]string) (out []lint.Input) {
	templates, err := r.registry.Templates(s.value)
	if err != nil {
		return nil
	}
	for _, t := range templates {
		in := lint.Input{
			APIVersion: s.meta.APIVersion, Kind: s.meta.Kind, Name: s.meta.Name, Namespace: s.meta.Namespace,
			Field: t.Field, After: t.Pod, File: &result.File{Path: s.path},
		}
		if t.Field != "" {
			in.Replicas = lint.Replicas(s.value)
			in.ObjectLabels, _ = workload.Labels(s.value)
			in.ObjectAnnotations, _ = workload.Annotations(s.value)
		}
		in.NamespaceLabels, in.NamespaceKnown = namespaces[s.meta.Namespace]
		out = append(out, in)
	}
	return out
}
