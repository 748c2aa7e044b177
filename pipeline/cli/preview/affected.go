// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/catalog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Touched is a pipeline that a range of commits touches.
type Touched struct {
	// Pipeline is its key, Reason what it would see.
	Pipeline string `json:"pipeline"`
	Reason   string `json:"reason"`
}

// Affected returns the pipelines whose render at head could differ from the one at base: each is rendered at base, and what
// it has read is compared.
func (p *Previewer) Affected(ctx context.Context, entries []catalog.Entry, base, head *tree.Tree) []Touched {
	found := forEachPipeline(ctx, p, entries, func(ctx context.Context, e catalog.Entry) *Touched {
		if base.ID() == head.ID() {
			return nil
		}
		built, err := p.Builder.Build(ctx, e.Pipeline, base)
		if reason, affected := built.Record.Affected(head); affected {
			return &Touched{Pipeline: e.Key, Reason: reason}
		}
		// What was not read to the end has no record that says all.
		if fetch := (*build.FetchError)(nil); errors.As(err, &fetch) || errors.Is(err, render.ErrTimeout) || err != nil && ctx.Err() != nil {
			return &Touched{Pipeline: e.Key, Reason: fmt.Sprintf("it could not be found out: %v", err)}
		}
		return nil
	})
	out := []Touched{}
	for _, one := range found {
		if one != nil {
			out = append(out, *one)
		}
	}
	return out
}
