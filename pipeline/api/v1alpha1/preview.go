// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"net/url"
	"strings"
	"time"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/prerig/prerig/pipeline/source/giturl"
)

// Preview reports on pull requests (GitLab: merge requests) to the branch of a source what they would change,
// before they are merged: their heads are rendered and compared with what is published. A preview never publishes.
type Preview struct {
	// Provider is GitHub, GitLab, Gitea (Forgejo too), BitbucketCloud, BitbucketServer or AzureDevOps. The default follows from the
	// URL of the source, where it is that of a public host.
	// +enum=GitHub,GitLab,Gitea,BitbucketCloud,BitbucketServer,AzureDevOps
	Provider string `json:"provider,omitempty"`
	// URL of the host's API. The default follows from the provider and the source's URL.
	URL string `json:"url,omitempty"`
	// SecretRef names the secret for the API, as that of publish.git.pullRequest does. The default is the source's.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Comment controls whether a comment on the pull request covers the pipeline, if it has something to report.
	// The default is true.
	Comment *bool `json:"comment,omitempty"`
	// Status controls whether the status of the head, prerig/preview/NAMESPACE/BRANCH, includes the pipeline. The
	// default is true.
	Status *bool `json:"status,omitempty"`
	// Forks is WithoutSecrets (the default: heads of forks are rendered without any secret, and compared with what the branch itself
	// renders to) or Refuse, which leaves pull requests from forks alone.
	// +enum=WithoutSecrets,Refuse
	Forks ForkPolicy `json:"forks,omitempty"`
	// Timeout is how long the preview of one head may take, waiting for a renderer included. The default is 5m.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Most is how many pull requests are previewed at the same time. The default is 1.
	Most int `json:"most,omitempty"`
}

// ForkPolicy is how pull requests from forks are handled.
type ForkPolicy string

// The policies for forks.
const (
	ForksWithoutSecrets ForkPolicy = "WithoutSecrets"
	ForksRefuse         ForkPolicy = "Refuse"
)

// DefaultPreviewTimeout is the default time limit of a preview, maxPreviewTimeout the highest allowed one.
const (
	DefaultPreviewTimeout = 5 * time.Minute
	maxPreviewTimeout     = time.Hour
)

// Comments reports whether comments cover the pipeline.
func (w *Preview) Comments() bool { return w.Comment == nil || *w.Comment }

// Statuses reports whether statuses count the pipeline.
func (w *Preview) Statuses() bool { return w.Status == nil || *w.Status }

// sourceURL is the URL of the source whose pull requests are previewed where the pipeline has one source.
func (p *RenderPipeline) sourceURL() string {
	if git := p.Spec.Source.Git; git != nil {
		return git.URL
	}
	return ""
}

func (w *Preview) setDefaults(p *RenderPipeline) {
	setDefault(&w.Forks, ForksWithoutSecrets)
	if w.Most == 0 {
		w.Most = 1
	}
	if w.Timeout == nil {
		w.Timeout = &metav1.Duration{Duration: DefaultPreviewTimeout}
	}
	if u, err := giturl.Parse(p.sourceURL()); w.Provider == "" && err == nil {
		w.Provider = u.KindOf()
	}
	if git := p.Spec.Source.Git; w.SecretRef == nil && git != nil {
		w.SecretRef = git.SecretRef
	}
}

func (w *Preview) checkPreview(v *validator, p *RenderPipeline) {
	const at = "spec.preview"
	if p.sourceURL() == "" {
		v.addError(at, "needs spec.source.git: pull requests to that repository are previewed")
		return
	}
	v.checkHost(at, w.Provider, w.URL, w.SecretRef)
	v.checkEnum(at+".forks", string(w.Forks), "WithoutSecrets", "Refuse")
	if ref := p.Spec.Source.Git.Ref; ref.Tag != "" || ref.Commit != "" || ref.Name != "" && !strings.HasPrefix(ref.Name, "refs/heads/") {
		v.addError(at, "needs a source that follows a branch, to which pull requests go")
	}
	if w.Timeout.Duration <= 0 || w.Timeout.Duration > maxPreviewTimeout {
		v.addError(at+".timeout", "must be more than 0s and at most %s", maxPreviewTimeout)
	}
	if w.Most < 0 {
		v.addError(at+".most", "must not be negative")
	}
	if !w.Comments() && !w.Statuses() {
		v.addError(at, "reports nothing: comment or status must be true")
	}
}

// checkHost checks how a Git host's API is called.
func (v *validator) checkHost(at, provider, api string, ref *meta.LocalObjectReference) {
	if provider == "" {
		v.addError(at+".provider", "must be given, as the URL does not tell what kind of host it is: one of %s", strings.Join(giturl.Kinds(), ", "))
	} else {
		v.checkEnum(at+".provider", provider, giturl.Kinds()...)
	}
	if u, err := url.Parse(api); api != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil) {
		v.addError(at+".url", "must be an http:// or https:// URL without credentials")
	}
	if ref == nil || ref.Name == "" {
		v.addError(at+".secretRef", "must be given: the name of a secret with a token for the host's API")
	}
}
