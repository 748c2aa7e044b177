// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"
	"strconv"

	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/publish/published"
)

// keepPublished makes Jobs and bare Pods keep their published injection as long as their own spec is unchanged.
// Changes by others are not kept: then the objects are injected again, with a warning.
func (a *attempt) keepPublished(ctx context.Context) error {
	if !published.Concerns(a.built.Response) {
		return nil
	}
	step := a.newWatchdogStep(watchdog.StepPublish, publish.PublishWait)
	step.Subject += " reading what is published"
	files, err := watchdog.Run(ctx, a.r.Watchdog, step, a.readPublished)
	if err != nil {
		return fmt.Errorf("reading what is published: %w", err)
	}
	return published.Keep(ctx, a.built.Response, files)
}

// readPublished returns the files of all places.
func (a *attempt) readPublished(ctx context.Context) (map[string][]byte, error) {
	changed, err := publish.FindDrift(ctx, a.r.Targets, a.p, a.state, a.started, 0)
	if err != nil {
		return nil, err
	}
	if changed != "" {
		a.built.Warnings = append(a.built.Warnings, "Jobs and bare Pods are injected again and do not keep what is published of them, as others have changed it: "+changed)
		return nil, nil
	}
	files := map[string][]byte{}
	for i, to := range a.p.Spec.Publish {
		target, err := a.r.Targets.Open(ctx, a.p.Metadata.Namespace, to)
		if err != nil {
			return nil, err
		}
		held, err := target.Current(ctx, a.entry.Key, nil)
		if err != nil {
			return nil, err
		}
		for name, content := range held.Files {
			files[strconv.Itoa(i)+"/"+name] = content
		}
	}
	return files, nil
}
