// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish/updates"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// CheckUpdates returns what is found about the objects that a result changes of what is published at a place. before and after are
// the files, and root is the source of the pipeline.
func (b *Builder) CheckUpdates(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree, before, after map[string][]byte) (result.Results, error) {
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return nil, err
	}
	checker := updates.Checker{Validator: b.Validator, Limits: limits}
	checker.Objects, _ = b.Renderer.(updates.ObjectChecker)
	var source tree.Reader
	if root != nil {
		source = tree.NewView(root, limits.Read)
	}
	return checker.Check(ctx, p.Spec.Gates, before, after, source)
}
