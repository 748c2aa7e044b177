// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/result"
)

// checkHeadlessPorts leaves out ports that another Service of the pods names, where clients call them, and those of metrics and probes.
func checkHeadlessPorts(s *workloadSet) []setFinding {
	named := map[*Summary]map[int64]bool{}
	for _, f := range s.services {
		for _, pod := range f.selected {
			if named[pod] == nil {
				named[pod] = map[int64]bool{}
			}
			for _, p := range f.ports {
				named[pod][p.targetPortNumber(pod)] = true
			}
		}
	}
	var out []setFinding
	for _, f := range s.services {
		if textOf(f.spec["clusterIP"]) != "None" {
			continue
		}
		for _, pod := range f.selected {
			if pod.ref.Kind != "StatefulSet" || !pod.sidecar {
				continue
			}
			var ports []string
			for _, c := range pod.containers {
				for _, p := range c.ports {
					if !named[pod][p.number] && !isObserved(p.name) {
						ports = append(ports, p.String())
					}
				}
			}
			if len(ports) > 0 {
				then := "without mutual TLS, and fail where it is required"
				if strict := s.strictPeerAuthenticationFor(pod, f.scope); strict != nil {
					then = fmt.Sprintf("without mutual TLS, which %s requires: they fail", strict)
				}
				out = append(out, f.newFinding(&result.Field{Path: "spec.ports"},
					fmt.Sprintf("%s listens on %s, which no Service names: calls from pod to pod go there %s", pod.ref, strings.Join(ports, ", "), then)))
			}
		}
	}
	return out
}

func (p containerPort) String() string {
	if p.name == "" {
		return fmt.Sprintf("port %d", p.number)
	}
	return fmt.Sprintf("port %d (%s)", p.number, p.name)
}

// isObserved reports whether a port's name marks it as one for metrics or probes.
func isObserved(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(observedPorts, func(word string) bool { return strings.Contains(name, word) })
}
