// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"fmt"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// FunctionConfig returns the InjectionPolicy that the input carries if it is a ResourceList; ok is false otherwise.
// kustomize and kpt pass a ResourceList to a function: saved to a file, it can be inspected with its own policy. The
// ResourceList has to be the whole input, so that a file somewhere in a repository does not decide for the others.
func (b *Batch) FunctionConfig() (p policy.Named, ok bool, err error) {
	if b == nil || len(b.Files) != 1 || b.Files[0].Input.Root != "" {
		return p, false, nil
	}
	f := b.Files[0]
	for _, d := range f.docs {
		if m, sure := d.Peek(); sure && m.Kind != manifest.ResourceListKind {
			continue // almost always, and cheaper than to decode
		}
		if obj, err := d.Object(); err != nil || obj["kind"] != manifest.ResourceListKind {
			continue // its errors are reported when it is processed
		}
		list, err := manifest.ParseResourceList(d.Raw())
		if err != nil {
			return p, false, fmt.Errorf("reading the ResourceList in %s: %w", f.Input.Path, err)
		}
		if list.FunctionConfig == nil {
			continue
		}
		got, err := v1alpha1.FromLocated(list.FunctionConfig)
		if err != nil {
			return p, false, fmt.Errorf("reading functionConfig in %s: %w", f.Input.Path, err)
		}
		return policy.Named{InjectionPolicy: got, Origin: "functionConfig in " + f.Input.Path}, true, nil
	}
	return p, false, nil
}
