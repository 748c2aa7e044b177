// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render/engine/flux"
	"github.com/prerig/prerig/pipeline/render/engine/release"
)

// nextUnit returns the unit to build: one whose dependencies are built and whose variables are known, if possible.
// Others may bring what a unit lacks, so that one that lacks something comes last.
func (r *fluxRun) nextUnit() *fluxUnit {
	var best *fluxUnit
	most := 0
	for _, unit := range r.units {
		if unit.built {
			continue
		}
		if rank := r.readiness(unit); rank > most {
			best, most = unit, rank
		}
	}
	return best
}

// readiness ranks a unit that is not built: 3 for one that lacks nothing, 2 for one that lacks at most what is
// optional.
func (r *fluxRun) readiness(unit *fluxUnit) int {
	if unit.k == nil {
		return 3
	}
	rank := 3
	for _, on := range unit.k.Spec.DependsOn {
		if other := r.byKey[dependencyKey(unit.k, on.Namespace, on.Name)]; other == nil || !other.built {
			rank = 2
		}
	}
	if unit.k.Spec.PostBuild == nil {
		return rank
	}
	for _, ref := range unit.k.Spec.PostBuild.SubstituteFrom {
		switch {
		case r.objects[fluxObject{ref.Kind, unit.k.Namespace, ref.Name}] != nil:
		case ref.Optional:
			rank = min(rank, 2)
		default:
			return 1
		}
	}
	return rank
}

func dependencyKey(k *flux.Kustomization, namespace, name string) string {
	if namespace == "" {
		namespace = k.Namespace
	}
	return namespace + "/" + name
}

// checkDependencies finds Kustomizations that wait for each other, which Flux never applies, and names dependencies
// that are not in the tree.
func (r *fluxRun) checkDependencies() {
	for _, unit := range r.units {
		if unit.k == nil {
			continue
		}
		for i, on := range unit.k.Spec.DependsOn {
			key := dependencyKey(unit.k, on.Namespace, on.Name)
			field := fmt.Sprintf("spec.dependsOn[%d]", i)
			switch {
			case r.byKey[key] == nil:
				r.report(unit, release.Finding(result.Warning, unit.k.Object, field, fmt.Sprintf("Kustomization %s is not in the tree; the cluster has to have it", key)))
			case r.dependsOn(r.byKey[key], unit, map[string]bool{}):
				r.report(unit, release.Finding(result.Error, unit.k.Object, field, fmt.Sprintf("Kustomization %s waits for this one in turn, so that Flux applies neither; take one of the dependencies out", key)))
			}
		}
	}
}

// dependsOn reports whether a unit is or waits for another one.
func (r *fluxRun) dependsOn(unit, wanted *fluxUnit, seen map[string]bool) bool {
	if unit == wanted {
		return true
	}
	if unit == nil || unit.k == nil || seen[unit.key] {
		return false
	}
	seen[unit.key] = true
	return slices.ContainsFunc(unit.k.Spec.DependsOn, func(on dependency) bool {
		return r.dependsOn(r.byKey[dependencyKey(unit.k, on.Namespace, on.Name)], wanted, seen)
	})
}
