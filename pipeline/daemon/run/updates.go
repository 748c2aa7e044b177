// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
)

// checkUpdates adds what the API server would reject of the changes of what is published to the results, for every place once. Where
// that cannot be read, publishing reports why.
func (p *publication) checkUpdates(ctx context.Context) error {
	for _, to := range p.p.Spec.Publish {
		step := p.newStep("reading what is published")
		found, err := watchdog.Run(ctx, p.r.Watchdog, step, func(ctx context.Context) (result.Results, error) { return p.updatesOf(ctx, to) })
		if err != nil {
			return err
		}
		publish.PlaceFindings(p.p.Spec, found, p.built.Objects, &p.texts)
		p.built.Results = append(p.built.Results, publish.WithoutKnown(found, p.built.Results)...)
	}
	return nil
}

// updatesOf returns what is found about the changes at one place.
func (p *publication) updatesOf(ctx context.Context, to v1alpha1.Publish) (result.Results, error) {
	held, err := p.r.Targets.Previous(ctx, p.p, to, p.state)
	if err != nil {
		p.built.Warnings = append(p.built.Warnings, "changes are not checked as updates at "+to.Target()+": "+err.Error())
		return nil, nil
	}
	if len(held.Files) == 0 {
		return nil, nil
	}
	writer, err := p.r.Targets.Writer(ctx, p.p, to)
	if err != nil {
		return nil, err
	}
	writer.Texts = &p.texts
	files, err := writer.Files(p.built.Objects)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	publish.KeepFailed(files, held.Files, p.built.Response)
	return p.r.Builder.CheckUpdates(ctx, p.p, p.snapshot.Tree, held.Files, files)
}
