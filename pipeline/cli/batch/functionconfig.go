// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package batch

import (
	"bytes"
	"fmt"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// FunctionConfig returns the InjectionPolicy that a ResourceList among the files carries; ok is false if none does.
// kustomize and kpt pass a ResourceList to a function: saved to a file, it can be inspected with its own policy.
func (b *Batch) FunctionConfig() (p policy.Named, ok bool, err error) {
	if b == nil {
		return p, false, nil
	}
	for _, f := range b.Files {
		for _, d := range f.docs {
			if !bytes.Contains(d.Raw(), []byte("ResourceList")) {
				continue // almost always, and cheaper than to decode
			}
			if m, sure := d.Peek(); sure && m.Kind != "ResourceList" {
				continue
			}
			if obj, err := d.Object(); err != nil || obj["kind"] != "ResourceList" {
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
	}
	return p, false, nil
}
