// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// watchedBuilder leaves builds behind that do not end.
type watchedBuilder struct {
	builder *Builder
	dog     *watchdog.Watchdog
}

// Watch returns a builder that leaves builds behind that do not end although all that they wait for has a limit. The watchdog may
// be nil.
func Watch(builder *Builder, dog *watchdog.Watchdog) Interface { return watchedBuilder{builder, dog} }

// buildOverhead is the time for everything except fetching bases and charts, each in fetchTimeout, and rendering:
// reading policies and existing files.
const buildOverhead = time.Minute

// Build implements Interface.
func (w watchedBuilder) Build(ctx context.Context, p *v1alpha1.RenderPipeline, files *tree.Tree) (*Built, error) {
	step := watchdog.Step{Name: watchdog.StepRender, Subject: p.Key(), Limit: 2*fetchTimeout + w.builder.Limits.Longest() + buildOverhead}
	return watchdog.Run(ctx, w.dog, step, func(ctx context.Context) (*Built, error) { return w.builder.Build(ctx, p, files) })
}
