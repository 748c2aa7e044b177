// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"fmt"
	"net"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/config"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/kubernetes"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/server"
)

// openArtifacts opens the keeper of published ExternalArtifacts if it is configured.
func openArtifacts(c *config.Config, o Options, all *catalog.Catalog, q *queue.Queue) (*externalartifact.Keeper, error) {
	if !c.Artifacts.Enabled() {
		return nil, nil
	}
	client, err := kubernetes.Connect(c.ArtifactsKubeconfig(), o.Version)
	if err != nil {
		return nil, fmt.Errorf("opening artifacts: %w", err)
	}
	return externalartifact.Open(externalartifact.Options{
		Dir: c.ArtifactsDir(), URL: c.Artifacts.URL, Grace: c.Artifacts.Keep, Client: client.Dynamic(), Log: o.Log,
		Lost: func(ctx context.Context, ref externalartifact.Ref, pipeline string) {
			if entry, ok := all.Get(pipeline); !ok || !publishesTo(entry.Pipeline, ref) {
				return
			}
			cause := newCause("the file of its ExternalArtifact is damaged or missing, or its URL differs")
			again := queue.Job{Pipeline: pipeline, Cause: cause.ID, Reason: cause.Reason, Since: cause.Since, Force: true}
			if err := q.Request(ctx, again); err != nil {
				o.Log.Warn("a run of a pipeline whose file is missing could not be requested", "pipeline", pipeline, "error", err)
			}
		},
	})
}

// publishesTo reports whether a pipeline, which may be nil, publishes to an object: anyone with write access to the
// object can name any pipeline in it.
func publishesTo(pipeline *v1alpha1.RenderPipeline, ref externalartifact.Ref) bool {
	return pipeline != nil && slices.ContainsFunc(pipeline.Spec.Publish, func(to v1alpha1.Publish) bool {
		e := to.ExternalArtifact
		return e != nil && e.Namespace == ref.Namespace && e.Name == ref.Name
	})
}

// serveArtifacts serves artifacts, and removes those whose time is over, until ctx is done; nil serves none.
func serveArtifacts(ctx context.Context, group *errgroup.Group, p *components) error {
	if p.artifacts == nil {
		return nil
	}
	l, err := net.Listen("tcp", p.config.Artifacts.Listen)
	if err != nil {
		return fmt.Errorf("listening for artifacts: %w", explainListenError("artifacts.listen", err))
	}
	p.options.Log.Info("serving artifacts", "address", l.Addr().String(), "url", p.config.Artifacts.URL)
	group.Go(func() error { return server.Serve(ctx, l, nil, p.artifacts, p.options.Log) })
	group.Go(func() error { p.artifacts.Run(ctx); return nil })
	return nil
}
