// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/internal/process/fault"
	"github.com/prerig/prerig/pipeline/kubernetes/mesh"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/giturl"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Interface builds pipelines. Builder does, and Limited does no more of it at once than it may.
type Interface interface {
	// Build renders a pipeline from the files of its source. It returns a Built for a failed build too, unless the
	// build never began. Builder.Build documents the errors.
	Build(ctx context.Context, p *v1alpha1.RenderPipeline, files *tree.Tree) (*Built, error)
}

// Renderer renders in a process of its own.
type Renderer interface {
	Render(ctx context.Context, files tree.Reader, request render.Request) (*render.Response, error)
}

// Builder renders pipelines from snapshots of their sources. It is safe for concurrent use.
type Builder struct {
	// Renderer renders.
	Renderer Renderer
	// Validator answers with Kubernetes' own validation; nil where its program is not installed.
	Validator gate.Validator
	// Policies is the directory of the policies that pipelines name by file.
	Policies string
	// Objects are the policies that pipelines name as objects of a cluster; nil has none.
	Objects PolicyObjects
	// Cluster completes policies with from: Cluster; nil means that no cluster is available.
	Cluster PolicyCompleter
	// Review is that of the requests, see render.Request. Nothing that is built with it may be published.
	Review bool
	// Limits that no pipeline can raise.
	Limits render.Limits
	// Repositories fetches remote bases; nil fetches none.
	Repositories Repositories
	// Charts fetches charts of repositories; nil fetches none.
	Charts Charts
	// Bases bounds the remote bases that pipelines may allow; if empty, they are unbounded.
	Bases []giturl.Pattern
	// AnyRemote has pipelines use any repository and file, without a secret. It is for pipelines that are made of their own source, for
	// the user who runs a command.
	AnyRemote bool
	// Cache remembers builds; nil remembers none.
	Cache *Cache
	// Alone runs each build in a process of its own, which is used for no other render before or after.
	Alone bool
	// Version of Prerig.
	Version string

	digests builtInDigests
}

// Built is a rendered pipeline.
type Built struct {
	*render.Response
	// Request that was rendered, with the text of all policies.
	Request render.Request
	// Record is the record of what was read of the source. It is set for a failed build too.
	Record tree.Record
	// RequestDigest is Builder.RequestDigest from before anything was read: what changes later, such as the file of a policy,
	// is for the next build.
	RequestDigest string
	// Policies are PolicySource.Versions from then.
	Policies map[string]queue.ObjectVersion
	// Took is how long it took.
	Took time.Duration
	// Fingerprint of everything that the result depends on.
	Fingerprint string
	// Snapshots are the policies that were completed from the cluster, with what the result depends on; Namespaces
	// are digests of the cluster's settings for the namespaces that were read.
	Snapshots  []mesh.Snapshot
	Namespaces map[string]string
}

// Build renders. An error is about the pipeline or its source and will be the same again, unless it is that of the context
// or wraps a FetchError, or is one of a render that is unfinished (render.IsUnfinished).
func (b *Builder) Build(ctx context.Context, p *v1alpha1.RenderPipeline, root *tree.Tree) (built *Built, err error) {
	begin := time.Now()
	built = &Built{Policies: b.PolicySource().Versions(p), RequestDigest: b.RequestDigest(p)}
	defer func() { built.Took = time.Since(begin) }()
	limits, err := b.Limits.Lower(p.Spec.Build.Limits)
	if err != nil {
		return built, err
	}
	view := tree.NewView(root, limits.Read)
	built.Request = newRequest(p, limits, b.Alone)
	built.Request.Review = b.Review
	defer func() {
		if r := recover(); r != nil {
			err = fault.Recovered(r)
		}
		built.Record = view.Record()
	}()
	completed, err := b.PolicySource().readAll(p, view, &built.Request)
	if err != nil {
		return built, err
	}
	defer func() {
		if noted := recordPolicySnapshots(built, completed); noted != nil && err == nil {
			err = noted
		}
		if err == nil {
			built.Fingerprint = render.Fingerprint(view.Record(), &built.Request, b.Version)
		}
	}()
	remotes, err := b.newRemoteFetch(p, view, &built.Request)
	if err == nil {
		err = remotes.addNamedBases(ctx)
	}
	if err == nil {
		err = remotes.addNamedCharts(ctx)
	}
	if err != nil {
		return built, err
	}
	if built.Response, err = b.renderWithRemotes(ctx, remotes); err != nil {
		return built, err
	}
	return built, nil
}

// readAll reads the policies of a pipeline into a request; those with from: Cluster include everything that
// the cluster has.
func (s PolicySource) readAll(p *v1alpha1.RenderPipeline, view *tree.View, request *render.Request) ([]completedPolicy, error) {
	var completed []completedPolicy
	for i, ref := range p.Spec.Policies {
		found, err := s.readPolicy(p.Metadata.Namespace, ref, view)
		var all []*mesh.Completed
		if err == nil {
			all, err = s.completeReferencedPolicies(ref, found)
		}
		if err != nil {
			return nil, fmt.Errorf("spec.policies[%d].%s: %w", i, policyField(ref), err)
		}
		for n, one := range all {
			if one != nil {
				found[n].YAML = string(one.Text())
				completed = append(completed, completedPolicy{len(request.Policies) + n, one})
			}
		}
		request.Policies = append(request.Policies, found...)
	}
	return completed, nil
}

// newRequest returns the request to the renderer, before policies, bases and charts are added.
func newRequest(p *v1alpha1.RenderPipeline, limits render.Limits, alone bool) render.Request {
	build := p.Spec.Build
	request := render.Request{
		Type: build.Type, Path: build.Path, Helm: build.Helm, Functions: build.Functions, Limits: limits, LoadRestrictor: build.LoadRestrictor,
		Schemas: p.Spec.Gates.Schemas, Admission: p.Spec.Gates.Admission,
		HelmCharts: build.HelmCharts, Releases: build.Releases,
	}
	if !alone {
		request.Trust = strings.Join(Trust(p), "\n")
	}
	for _, one := range p.Spec.Sources {
		request.Sources = append(request.Sources, one.MountPath)
	}
	if build.Flux != nil {
		request.Flux, request.Path = build.Flux, build.Flux.Path
	}
	if build.Releases != nil || build.Flux != nil {
		request.Repositories = repositoriesOf(p)
	}
	return request
}
