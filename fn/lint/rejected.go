// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"slices"

	"github.com/prerig/prerig/fn/podvalidation"
)

// validationOptions returns the options for the Kubernetes that validates the pod.
func validationOptions(in *Input) podvalidation.Options {
	v, _ := parseVersion(in.Facts.KubernetesVersion)
	return podvalidation.Options{Minor: v.minor}
}

// problemsOf are the findings of a rule whose problems the injection reports, too, in all containers.
func problemsOf(p *pod, code string) []finding { return findingsOf(p.problems(), code) }

// addedProblems are the same without those that the pod had before the injection. Where that is not known they are those of the injected
// containers, and of the pod as a whole if it has any.
func addedProblems(p *pod, code string) []finding {
	if len(p.injected) == 0 {
		return nil
	}
	problems := p.problems()
	if len(problems) > 0 && p.in.Before != nil {
		problems = podvalidation.Added(p.in.Before, p.in.After, validationOptions(p.in))
	}
	return findingsOf(slices.DeleteFunc(slices.Clone(problems), func(one podvalidation.Problem) bool {
		return one.Volume != "" && mayMount(p.in) || p.in.Before == nil && one.Container != "" && !p.injected[one.Container]
	}), code)
}

// mayMount reports whether a volume that a container mounts may not be in the pod template: it is of a StatefulSet's claims, or a controller adds it.
func mayMount(in *Input) bool {
	return in.Kind == "StatefulSet" || !slices.Contains([]string{"v1", "apps/v1", "batch/v1"}, in.APIVersion)
}

// hiddenProblems are those of probes that the injection replaces. A probe of an injected container is not the user's own.
func hiddenProblems(p *pod) []finding {
	if len(p.injected) == 0 || p.in.Before == nil {
		return nil
	}
	hidden := podvalidation.Hidden(p.in.Before, p.in.After, validationOptions(p.in))
	return findingsOf(slices.DeleteFunc(hidden, func(one podvalidation.Problem) bool { return p.injected[one.Container] }), podvalidation.CodeRejected)
}

func findingsOf(problems []podvalidation.Problem, code string) (out []finding) {
	for _, one := range problems {
		if one.Code == code {
			out = append(out, finding{path: one.Field, container: one.Container, current: one.Current, message: one.Message})
		}
	}
	return out
}
