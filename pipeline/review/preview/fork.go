// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"fmt"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review/dryrun"
	"github.com/prerig/prerig/pipeline/source"
)

// secretError is about a pipeline that is not rendered for forks.
type secretError struct{ error }

// needsSecrets returns an error that names the secret that a pipeline cannot be rendered without. Forks have none:
// their rendered output could reveal what it reads.
func needsSecrets(p *v1alpha1.RenderPipeline) error {
	needs := func(field, what string) error {
		return secretError{fmt.Errorf("it is not rendered for forks, as it needs a secret for %s (%s)", what, field)}
	}
	for _, one := range p.AllSources()[1:] {
		switch {
		case one.Git != nil && one.Git.SecretRef != nil, one.OCI != nil && one.OCI.SecretRef != nil:
			return needs(one.Field, "the source at "+one.MountPath)
		case one.Dir != nil:
			return secretError{fmt.Errorf("it is not rendered for forks, as it reads a directory of the machine (%s)", one.Field)}
		}
	}
	b := p.Spec.Build
	for i, base := range b.RemoteBases {
		if base.SecretRef != nil {
			return needs(fmt.Sprintf("spec.build.remoteBases[%d]", i), "remote bases")
		}
	}
	for i, charts := range b.ChartRepositories {
		if charts.SecretRef != nil {
			return needs(fmt.Sprintf("spec.build.chartRepositories[%d]", i), "charts")
		}
	}
	return nil
}

// withoutEncryption returns a pipeline that writes Secrets as they are, which needs no secret. A review hides their
// values.
func withoutEncryption(e catalog.Entry) catalog.Entry {
	p := *e.Pipeline
	p.Spec.Publish = slices.Clone(p.Spec.Publish)
	for i := range p.Spec.Publish {
		if to := &p.Spec.Publish[i]; to.Secrets == v1alpha1.SecretsEncrypt {
			to.Secrets, to.Encryption = v1alpha1.SecretsAllow, nil
		}
	}
	e.Pipeline = &p
	return e
}

// renderBase renders the branch that a fork's pull request targets in the same way as the head.
func (r *rendering) renderBase(ctx context.Context, e catalog.Entry) dryrun.Result {
	at := r.newPreviewer()
	at.Instead = func(_ catalog.Entry, one v1alpha1.NamedSource) *source.Snapshot {
		if one.MountPath == "" {
			return r.base
		}
		return nil
	}
	return at.All(ctx, []catalog.Entry{e})[0]
}

// placeContentBefore returns what a place would hold of what the branch renders to.
func (r *rendering) placeContentBefore(ctx context.Context, e catalog.Entry, to v1alpha1.Publish,
	before dryrun.Result) (publish.Holding, error) {
	if before.Err != nil {
		return publish.Holding{}, fmt.Errorf("the branch %s cannot be rendered without secrets, to be compared with: %w", r.a.in.Base, before.Err)
	}
	side := r.a.pullRequestSide()
	writer, err := publish.Readers(side.Fetcher, nil, nil).Writer(ctx, e.Pipeline, to)
	if err != nil {
		return publish.Holding{}, err
	}
	files, err := writer.Files(before.Built.Objects)
	out := publish.Holding{Files: files}
	for _, object := range before.Built.Objects {
		out.Objects = append(out.Objects, object.ID())
	}
	return out, err
}
