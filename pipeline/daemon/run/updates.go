// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"bytes"
	"context"
	"fmt"
	"maps"

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
		change, err := watchdog.Run(ctx, p.r.Watchdog, step, func(ctx context.Context) (filesChange, error) { return p.changeOf(ctx, to) })
		if err != nil {
			return err
		}
		if len(change.before) == 0 || maps.EqualFunc(change.before, change.after, bytes.Equal) {
			continue
		}
		var found result.Results
		err = p.r.builds.Check(ctx, p.p, func(ctx context.Context) (err error) {
			found, err = p.r.Builder.CheckUpdates(ctx, p.p, p.snapshot.Tree, change.before, change.after)
			return err
		})
		if err != nil {
			return err
		}
		publish.PlaceFindings(p.p.Spec, found, p.built.Objects, &p.texts)
		p.built.Results = append(p.built.Results, publish.WithoutKnown(found, p.built.Results)...)
	}
	return nil
}

// filesChange is what is published at a place, and what is going to be.
type filesChange struct{ before, after map[string][]byte }

// changeOf returns the change at one place, none where nothing is published there.
func (p *publication) changeOf(ctx context.Context, to v1alpha1.Publish) (filesChange, error) {
	held, err := p.r.Targets.Previous(ctx, p.p, to, p.state)
	if err != nil {
		p.built.Warnings = append(p.built.Warnings, "changes are not checked as updates at "+to.Target()+": "+err.Error())
		return filesChange{}, nil
	}
	if len(held.Files) == 0 {
		return filesChange{}, nil
	}
	writer, err := p.r.Targets.Writer(ctx, p.p, to)
	if err != nil {
		return filesChange{}, err
	}
	writer.Texts = &p.texts
	files, err := writer.Files(p.built.Objects)
	if err != nil {
		return filesChange{}, fmt.Errorf("%w: %w", errContent, err)
	}
	publish.KeepFailed(files, held.Files, p.built.Response)
	return filesChange{before: held.Files, after: files}, nil
}
