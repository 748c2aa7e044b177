// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"slices"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish/updates"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// CheckGates completes the results of a render by spec.gates, after Jobs and bare Pods keep what is published of them. root is the source
// of the pipeline.
func (b *Builder) CheckGates(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree, response *render.Response) error {
	checker, source, err := b.newChecker(p, root)
	if err != nil {
		return err
	}
	results, err := checker.CheckResult(ctx, p.Spec.Gates, response, source)
	if err != nil {
		return err
	}
	response.Results = results
	if b.Validator == nil && p.Spec.Gates.Schemas != nil {
		response.Warnings = append(slices.Clip(response.Warnings), gate.NotInstalled)
	}
	return nil
}

// CheckUpdates returns what is found about the objects that a result changes of what is published at a place. before and after are
// the files, and root is the source of the pipeline.
func (b *Builder) CheckUpdates(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree, before, after map[string][]byte) (result.Results, error) {
	checker, source, err := b.newChecker(p, root)
	if err != nil {
		return nil, err
	}
	return checker.Check(ctx, p.Spec.Gates, before, after, source)
}

func (b *Builder) newChecker(p *v1alpha1.RenderPipeline, root *tree.Tree) (updates.Checker, tree.Reader, error) {
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return updates.Checker{}, nil, err
	}
	checker := updates.Checker{Validator: b.Validator, Limits: limits}
	checker.Objects, _ = b.Renderer.(updates.ObjectChecker)
	if root == nil {
		return checker, nil, nil
	}
	return checker, tree.NewView(root, limits.Read), nil
}
