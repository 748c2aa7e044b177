// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/internal/process/egress"
	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/review/preview"
	"github.com/prerig/prerig/pipeline/secret"
	"github.com/prerig/prerig/pipeline/secret/tenant"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/chart"
)

// newPreviewer returns the previewer of pull requests. Their heads are kept apart from the sources of pipelines,
// and those of forks apart from all others; forks get no secrets.
func (p *components) newPreviewer(reach tenant.Reach, limits render.Limits) (*preview.Previewer, error) {
	c, o := p.config, p.options
	most, err := c.PreviewsSize()
	if err != nil {
		return nil, err
	}
	at := func(dir string) string { return filepath.Join(c.State, "previews", dir) }
	heads := source.New(source.Options{StateDir: at("heads"), Secrets: p.secrets, Dialer: p.dialer, Sources: reach.Sources})
	forks := source.New(source.Options{StateDir: at("forks"), Dialer: p.dialer, Sources: reach.Sources})
	return preview.New(preview.Options{
		Catalog: p.catalog, PipelinesDir: c.Pipelines, Store: p.store, Queue: p.queue, Heads: heads,
		// Unreviewed content never shares a process or a cache with published content.
		Own: preview.Side{Fetcher: p.fetcher, Secrets: p.secrets, Artifacts: p.artifacts, Builder: &build.Builder{
			Renderer: p.pool, Validator: p.builder.Validator, Policies: c.Policies, Limits: limits,
			Repositories: p.fetcher, Charts: p.builder.Charts,
			Bases: p.builder.Bases, Alone: true, Objects: p.builder.Objects, Cluster: p.builder.Cluster, Version: o.Version,
		}},
		Forks: preview.Side{Fetcher: forks, Builder: &build.Builder{
			Renderer: p.pool, Validator: p.builder.Validator, Policies: c.Policies, Limits: limits,
			Repositories: forks, Bases: p.builder.Bases, Alone: true, Version: o.Version,
			Charts: chart.New(chart.Options{StateDir: at("forks"), Dialer: p.dialer, Sources: reach.Sources}),
		}},
		WhenIdle: p.runner.WhenIdle, AtOnce: c.Previews.AtOnce, MaxKept: most, ExternalURL: c.ExternalURL,
		Watchdog: p.watchdog, Log: o.Log,
		Host: func(ctx context.Context, pipeline *v1alpha1.RenderPipeline) (pullrequest.Conversation, error) {
			return openConversation(ctx, pipeline, p.secrets, p.dialer)
		},
	}), nil
}

// openConversation opens the host of the pull requests that a pipeline previews.
func openConversation(
	ctx context.Context, pipeline *v1alpha1.RenderPipeline, secrets secret.Reader, dialer *egress.Dialer,
) (pullrequest.Conversation, error) {
	want, url := pipeline.Spec.Preview, pipeline.Spec.Source.Git.URL
	_, at, err := pullrequest.Address(want.Provider, url, want.URL)
	if err != nil {
		return nil, fmt.Errorf("finding the host of pull requests: %w", err)
	}
	keys, err := secret.Read(ctx, secrets, pipeline.Metadata.Namespace, want.SecretRef, secret.At(at))
	if err != nil {
		return nil, err
	}
	credentials, err := pullrequest.ReadCredentials(keys)
	if err != nil {
		return nil, fmt.Errorf("reading the secret %s: %w", want.SecretRef.Name, err)
	}
	return pullrequest.OpenConversation(pullrequest.Options{
		Provider: want.Provider, Repository: url, API: want.URL, Credentials: credentials, Dialer: dialer,
		IsFor: func(ctx context.Context, url string) error {
			_, err := secret.Read(ctx, secrets, pipeline.Metadata.Namespace, want.SecretRef, secret.At(url))
			return err
		},
	})
}
