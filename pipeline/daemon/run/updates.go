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
func (a *attempt) checkUpdates(ctx context.Context) error {
	for _, to := range a.p.Spec.Publish {
		step := a.newWatchdogStep(watchdog.StepPublish, publish.PublishWait)
		step.Subject += " reading what is published"
		found, err := watchdog.Run(ctx, a.r.Watchdog, step, func(ctx context.Context) (result.Results, error) { return a.updatesOf(ctx, to) })
		if err != nil {
			return err
		}
		publish.PlaceFindings(a.p.Spec, found, a.built.Objects, &a.texts)
		a.built.Results = append(a.built.Results, publish.WithoutKnown(found, a.built.Results)...)
	}
	return nil
}

// updatesOf returns what is found about the changes at one place.
func (a *attempt) updatesOf(ctx context.Context, to v1alpha1.Publish) (result.Results, error) {
	held, err := a.r.Targets.Previous(ctx, a.p, to, a.state)
	if err != nil {
		a.built.Warnings = append(a.built.Warnings, "changes are not checked as updates at "+to.Target()+": "+err.Error())
		return nil, nil
	}
	if len(held.Files) == 0 {
		return nil, nil
	}
	writer, err := a.r.Targets.Writer(ctx, a.p, to)
	if err != nil {
		return nil, err
	}
	writer.Texts = &a.texts
	files, err := writer.Files(a.built.Objects)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errContent, err)
	}
	return a.r.Builder.CheckUpdates(ctx, a.p, a.snapshot.Tree, held.Files, files)
}
