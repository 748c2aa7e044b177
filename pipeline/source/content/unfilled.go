// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package content

import (
	"fmt"
	"strings"
	"sync"

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// workloads are the kinds whose pod templates are known without a policy.
var workloads = sync.OnceValue(func() *workload.Registry {
	r, err := workload.NewRegistry(nil)
	if err != nil {
		panic(err) // there is nothing to read
	}
	return r
})

// isWorkload reports whether objects of the kind have a pod template, or are pods.
func isWorkload(meta manifest.Meta) bool {
	_, ok := workloads().Lookup(meta.APIVersion, meta.Kind)
	return ok
}

// hasNoContainers reports whether no part of a workload can be a list of containers. Then it is a patch that no
// kustomization names, or the expected output of a test. A Rollout may name another object that has them.
func hasNoContainers(meta manifest.Meta, text string) bool {
	return !strings.Contains(text, "ontainers") && isWorkload(meta) && !strings.Contains(text, "workloadRef")
}

// explainUnfilled returns an error that names the value of a workload that a later build, such as Flux's substitution
// or kustomize's vars, has to fill in before the pod can be read; nil without any. Elsewhere such values are ordinary
// text.
func explainUnfilled(d *manifest.Document) error {
	if !podmap.HasPlaceholder(d.Text()) {
		return nil
	}
	obj, err := d.Object()
	if err != nil {
		return nil // it is reported when it is processed
	}
	templates, err := workloads().Templates(obj)
	if err != nil {
		return nil
	}
	for _, t := range templates {
		field := podmap.Unfilled(podmap.PodSchema(), t.Pod)
		if field == nil {
			continue
		}
		at := append(append([]any(nil), t.Path...), workload.ParseField(field.Field)...)
		line, _, ok := d.Locate(at...)
		if !ok {
			line = d.Line()
		}
		return fmt.Errorf("%s:%d: %s: %w", d.Path(), line, strings.TrimPrefix(t.Field+"."+field.Field, "."), field.Err)
	}
	return nil
}
