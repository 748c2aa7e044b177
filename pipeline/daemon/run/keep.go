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
func (p *publication) keepPublished(ctx context.Context) error {
	if !published.Concerns(p.built.Response) {
		return nil
	}
	step := p.newStep("reading what is published")
	files, err := watchdog.Run(ctx, p.r.Watchdog, step, p.readPublished)
	if err != nil {
		return fmt.Errorf("reading what is published: %w", err)
	}
	return published.Keep(ctx, p.built.Response, files)
}

// readPublished returns the files of all places.
func (p *publication) readPublished(ctx context.Context) (map[string][]byte, error) {
	changed, err := publish.FindDrift(ctx, p.r.Targets, p.p, p.state, p.started, 0)
	if err != nil {
		return nil, err
	}
	if changed != "" {
		p.built.Warnings = append(p.built.Warnings, "Jobs and bare Pods are injected again and do not keep what is published of them, as others have changed it: "+changed)
		return nil, nil
	}
	files := map[string][]byte{}
	for i, to := range p.p.Spec.Publish {
		target, err := p.r.Targets.Open(ctx, p.p.Metadata.Namespace, to)
		if err != nil {
			return nil, err
		}
		held, err := target.Current(ctx, p.entry.Key, nil)
		if err != nil {
			return nil, err
		}
		for name, content := range held.Files {
			files[strconv.Itoa(i)+"/"+name] = content
		}
	}
	return files, nil
}
