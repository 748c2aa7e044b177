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
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/kubernetes"
	"github.com/prerig/prerig/pipeline/publish/externalartifact"
	"github.com/prerig/prerig/pipeline/server"
)

// openArtifacts opens the keeper of published ExternalArtifacts if it is configured.
func (p *components) openArtifacts() (err error) {
	if !p.c.Artifacts.Enabled() {
		return nil
	}
	client, err := kubernetes.Connect(p.c.ArtifactsKubeconfig(), p.o.Version)
	if err != nil {
		return fmt.Errorf("opening artifacts: %w", err)
	}
	p.artifacts, err = externalartifact.Open(externalartifact.Options{
		Dir: p.c.ArtifactsDir(), URL: p.c.Artifacts.URL, Grace: p.c.Artifacts.Keep, Client: client.Dynamic(), Log: p.o.Log,
		Lost: p.requestMissingPublish,
	})
	return err
}

// requestMissingPublish requests a run of a pipeline whose published file is missing, but only if the pipeline
// publishes to that object: anyone with write access to the object can name any pipeline in it.
func (p *components) requestMissingPublish(ctx context.Context, ref externalartifact.Ref, pipeline string) {
	entry, ok := p.catalog.Get(pipeline)
	if !ok || entry.Pipeline == nil || !slices.ContainsFunc(entry.Pipeline.Spec.Publish, func(to v1alpha1.Publish) bool {
		e := to.ExternalArtifact
		return e != nil && e.Namespace == ref.Namespace && e.Name == ref.Name
	}) {
		return
	}
	cause := newCause("the file of its ExternalArtifact is damaged or gone, or its URL is another")
	again := queue.Job{Pipeline: pipeline, Cause: cause.ID, Reason: cause.Reason, Since: cause.Since, Force: true}
	if err := p.queue.Request(ctx, again); err != nil {
		p.o.Log.Warn("a pipeline whose file is gone could not be asked to run", "pipeline", pipeline, "error", err)
	}
}

// listenArtifacts opens the address that artifacts are served at, or returns nil if none are served.
func (p *components) listenArtifacts() (net.Listener, error) {
	if p.artifacts == nil {
		return nil, nil
	}
	l, err := net.Listen("tcp", p.c.Artifacts.Listen)
	if err != nil {
		return nil, fmt.Errorf("listening for artifacts: %w", err)
	}
	return l, nil
}

func closeListener(l net.Listener) {
	if l != nil {
		l.Close()
	}
}

// serveArtifacts serves artifacts, and removes those whose time is over, until ctx is done.
func (p *components) serveArtifacts(ctx context.Context, group *errgroup.Group, l net.Listener) {
	if l == nil {
		return
	}
	p.o.Log.Info("serving artifacts", "address", l.Addr().String(), "url", p.c.Artifacts.URL)
	group.Go(func() error { return server.Serve(ctx, l, nil, p.artifacts, p.o.Log) })
	group.Go(func() error { p.artifacts.Run(ctx); return nil })
}
