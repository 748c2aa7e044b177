// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package dryrun

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/source"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

// fetchSources returns the sources of a pipeline as one snapshot, or the directories that replace them. instead may
// supply the files of some; it may be nil.
func (p *Renderer) fetchSources(ctx context.Context, e catalog.Entry, instead func(v1alpha1.NamedSource) *source.Snapshot) (*source.Snapshot, error) {
	standsIn := false
	all := e.Sources(p.PipelinesDir)
	for i := range all {
		if dir, ok := p.standInDir(e.Pipeline, all[i]); ok {
			standsIn = standsIn || i == 0
			all[i].Source = v1alpha1.Source{Dir: &v1alpha1.DirSource{Path: dir}}
		}
	}
	return source.CombineAll(all, func(one v1alpha1.NamedSource) (*source.Snapshot, error) {
		if instead != nil {
			if snapshot := instead(one); snapshot != nil {
				return snapshot, nil
			}
		}
		return p.fetchSource(ctx, e, one)
	}, standsIn)
}

// substituteSnapshotFor returns Instead bound to a pipeline.
func (p *Renderer) substituteSnapshotFor(e catalog.Entry) func(v1alpha1.NamedSource) *source.Snapshot {
	if p.Instead == nil {
		return nil
	}
	return func(one v1alpha1.NamedSource) *source.Snapshot { return p.Instead(e, one) }
}

// FindReferences returns what a pipeline needs from other servers, as build.Builder.FindReferences does.
func (p *Renderer) FindReferences(ctx context.Context, e catalog.Entry,
	mode build.LockMode) (*build.References, error) {
	snapshot, err := p.fetchSources(ctx, e, p.substituteSnapshotFor(e))
	if err != nil {
		return nil, err
	}
	return p.Builder.FindReferences(ctx, e.Pipeline, snapshot.Tree, mode)
}

// fetchSource returns one source. A local directory has no revisions.
func (p *Renderer) fetchSource(ctx context.Context, e catalog.Entry,
	one v1alpha1.NamedSource) (*source.Snapshot, error) {
	revision := ""
	if p.Revision != nil && one.Dir == nil {
		revision = p.Revision(e, one.MountPath)
	}
	shared := e.Scope()
	if !namesSecret(one.Source) {
		shared.Namespace = "" // it is of no consequence for what is fetched
	}
	key, err := json.Marshal([]any{one.Source, revision, shared})
	if err != nil {
		return nil, err
	}
	snapshot, err := p.snapshots.Get(string(key), func() (*source.Snapshot, error) { return p.Fetcher.Fetch(ctx, e.Scope(), one.Source, revision) })
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sourceField(e.Pipeline, one), err)
	}
	return snapshot, nil
}

// sourceField returns the field of a pipeline that has a source.
func sourceField(p *v1alpha1.RenderPipeline, one v1alpha1.NamedSource) string {
	for i, other := range p.Spec.Sources {
		if one.MountPath != "" && other.MountPath == one.MountPath {
			return fmt.Sprintf("spec.sources[%d]", i)
		}
	}
	return "spec.source"
}

// namesSecret reports whether a secret is read for a source.
func namesSecret(src v1alpha1.Source) bool {
	return src.Git != nil && src.Git.SecretRef != nil || src.OCI != nil && src.OCI.SecretRef != nil
}

// standInDir returns the directory that replaces a source of a pipeline. A directory without a URL replaces only
// spec.source.
func (p *Renderer) standInDir(pipeline *v1alpha1.RenderPipeline, src v1alpha1.NamedSource) (string, bool) {
	if src.Dir == nil {
		if dir, ok := p.Sources[giturl.Normal(src.URL())]; ok && IsNamed(pipeline, src, func(url string) bool { return giturl.Normal(url) == giturl.Normal(src.URL()) }) {
			return dir, true
		}
	}
	if src.MountPath != "" {
		return "", false
	}
	dir, ok := p.Sources[""]
	return dir, ok
}

// IsNamed reports whether a source of a pipeline is meant by a user who names its repository or artifact by URL:
// spec.source if it has the URL, otherwise all others that have it. A pipeline may mount another branch of its own
// repository.
func IsNamed(pipeline *v1alpha1.RenderPipeline, src v1alpha1.NamedSource, matches func(url string) bool) bool {
	if src.Dir != nil || !matches(src.URL()) {
		return false
	}
	return src.MountPath == "" || pipeline.Spec.Source.Dir != nil || !matches(pipeline.Spec.Source.URL())
}
