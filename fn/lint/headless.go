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
				named[pod][p.targetOf(pod)] = true
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
				out = append(out, f.newFinding(&result.Field{Path: "spec.ports"},
					fmt.Sprintf("%s listens on %s, which no Service names: calls from pod to pod go there without mutual TLS", pod.ref, strings.Join(ports, ", "))))
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

// isObserved reports whether a port's name says that it is for metrics or probes.
func isObserved(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(observedPorts, func(word string) bool { return strings.Contains(name, word) })
}
