// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion and Kind of a RenderPipeline.
const (
	APIVersion = "prerig.dev/v1alpha1"
	Kind       = "RenderPipeline"
)

// RenderPipeline renders manifests from a source and publishes the result: one object in one file or document.
type RenderPipeline struct {
	// APIVersion is prerig.dev/v1alpha1.
	APIVersion string `json:"apiVersion"`
	// Kind is RenderPipeline.
	Kind string `json:"kind"`
	// Metadata names the pipeline. Namespace and name together are its identity.
	Metadata Metadata `json:"metadata"`
	// Spec is what the pipeline does.
	Spec RenderPipelineSpec `json:"spec"`
	// Status is what was observed. It is written by the daemon and ignored in what a user writes.
	Status RenderPipelineStatus `json:"status,omitempty"`
}

// Metadata is the part of Kubernetes' object metadata that a pipeline uses. Other keys are accepted and left alone.
type Metadata struct {
	// Name of the pipeline: a DNS label or subdomain.
	Name string `json:"name"`
	// Namespace is the namespace of the pipeline. It only separates names.
	Namespace string `json:"namespace,omitempty"`
	// Labels of the pipeline.
	Labels map[string]string `json:"labels,omitempty"`
	// Annotations of the pipeline. prerig.dev/requestedAt and reconcile.fluxcd.io/requestedAt ask for a run now, with any
	// value that is new.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// RenderPipelineSpec is what a pipeline does.
type RenderPipelineSpec struct {
	// Source is where the manifests come from.
	Source Source `json:"source"`
	// Sources are further sources, each at a revision of its own, whose files the build finds below a path in the
	// tree of the source, as if they were checked out at that path: values, policies, bases and charts of other
	// repositories.
	Sources []MountedSource `json:"sources,omitempty"`
	// Build is how they are rendered.
	Build Build `json:"build,omitempty"`
	// Policies are the injection policies that are applied after the build, in this order. A policy that a
	// kustomization names under transformers is applied by that kustomization, and is not repeated here.
	Policies []PolicyRef `json:"policies,omitempty"`
	// Publish lists the targets of the result. Without any the pipeline only renders.
	Publish []Publish `json:"publish,omitempty"`
	// Gates stop a result from being published.
	Gates Gates `json:"gates,omitempty"`
	// Notify lists whom to notify after a run.
	Notify []Notification `json:"notify,omitempty"`
	// Preview reports on pull requests to the source what they would change.
	Preview *Preview `json:"preview,omitempty"`
	// Interval is how often the source is looked at without an event. The default is 10m; 0s means never.
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Suspend stops the pipeline until it is false again.
	Suspend bool `json:"suspend,omitempty"`
	// DeletionPolicy is what happens to the published files when the pipeline itself is removed, or when a branch
	// is not under publish any more: Orphan (the default) leaves them in place, Delete removes exactly the files
	// that the pipeline owns from the branches that it published to. A suspended pipeline leaves them in any case,
	// and artifacts in a registry stay too.
	// +enum=Orphan,Delete
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// Drift is what happens when a third party has changed what is published, which is checked in each interval:
	// Report (the default) shows it in the status, and Repair restores it, but not again and again.
	// +enum=Report,Repair
	Drift DriftPolicy `json:"drift,omitempty"`
}

// DriftPolicy is what happens when a third party has changed what is published.
type DriftPolicy string

// The drift policies.
const (
	DriftReport DriftPolicy = "Report"
	DriftRepair DriftPolicy = "Repair"
)

// DeletionPolicy is what happens to published files when the pipeline is removed.
type DeletionPolicy string

// The deletion policies.
const (
	DeletionOrphan DeletionPolicy = "Orphan"
	DeletionDelete DeletionPolicy = "Delete"
)

// Source is where manifests come from: exactly one of its fields.
type Source struct {
	// Git is a Git repository.
	Git *GitSource `json:"git,omitempty"`
	// OCI is an artifact in a registry, as Flux makes them.
	OCI *OCISource `json:"oci,omitempty"`
	// Dir is a local directory, for development. The daemon refuses it unless it was started with permission.
	Dir *DirSource `json:"dir,omitempty"`
}

// GitSource is a Git repository at a reference.
type GitSource struct {
	// URL of the repository: https://, http:// or ssh://, or user@host:path. It must not contain a password.
	URL string `json:"url"`
	// Ref is what to follow. The default is the branch that the repository calls its HEAD.
	Ref GitRef `json:"ref,omitempty"`
	// SecretRef names the secret with username and password, bearerToken, or identity and known_hosts; and ca.crt.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Submodules allows submodules: they are fetched at the commit that the tree names, those inside of submodules too, and with
	// the source's secret where they are on its own host. Without it a path inside one is refused.
	Submodules bool `json:"submodules,omitempty"`
}

// GitRef is what to follow in a repository: at most one of its fields, except that a commit may be combined with a
// branch that contains it.
type GitRef struct {
	// Branch to follow.
	Branch string `json:"branch,omitempty"`
	// Tag to follow.
	Tag string `json:"tag,omitempty"`
	// Name of a reference in full, such as refs/pull/420/head.
	Name string `json:"name,omitempty"`
	// Commit is the exact commit, 40 hexadecimal digits.
	Commit string `json:"commit,omitempty"`
}

// OCISource is an artifact in a registry.
type OCISource struct {
	// URL of the repository, oci://registry/path without a tag.
	URL string `json:"url"`
	// Ref is what to follow. The default is the tag latest.
	Ref OCIRef `json:"ref,omitempty"`
	// LayerMediaType selects the layer by its media type. The default is the first layer that is a compressed archive.
	LayerMediaType string `json:"layerMediaType,omitempty"`
	// SecretRef names the secret with .dockerconfigjson, or username and password; and ca.crt.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Insecure uses plain HTTP.
	Insecure bool `json:"insecure,omitempty"`
}

// OCIRef is what to follow in a registry: at most one of its fields.
type OCIRef struct {
	// Tag to follow.
	Tag string `json:"tag,omitempty"`
	// Digest is the exact manifest, sha256: and 64 hexadecimal digits.
	Digest string `json:"digest,omitempty"`
}

// DirSource is a local directory.
type DirSource struct {
	// Path of the directory, relative to the file of the pipeline where it is not absolute.
	Path string `json:"path"`
}

// Build is how manifests are rendered.
type Build struct {
	// Type is Auto (the default: Helm if helm is set, Flux if flux is set, Kustomize if the path holds a kustomization,
	// Kpt if it holds a Kptfile, otherwise Plain), Kustomize, Plain, Kpt, Helm or Flux.
	// +enum=Auto,Kustomize,Plain,Kpt,Helm,Flux
	Type BuildType `json:"type,omitempty"`
	// Path of the directory inside the source, or of a file of manifests. The default is its root.
	Path string `json:"path,omitempty"`
	// Functions lists further names of Prerig's own function: names of executables, and images without tag and digest. A
	// kustomization or Kptfile that names one of them gets the function run inside the renderer.
	Functions []string `json:"functions,omitempty"`
	// LoadRestrictor is what kustomizations may load: LoadRestrictionsRootOnly (the default), files in or below their own directory, or
	// LoadRestrictionsNone, all files of the source, as Flux builds. Files outside of the source are never loaded. None cannot be
	// combined with remoteBases and further sources, whose kustomizations could then load files of the pipeline's own source.
	// +enum=LoadRestrictionsRootOnly,LoadRestrictionsNone
	LoadRestrictor LoadRestrictor `json:"loadRestrictor,omitempty"`
	// RemoteBases lists the repositories that kustomizations may name as remote bases, in resources, components and bases, and the
	// places below which they may load files over HTTP. They are fetched before the render: a base at the commit that is its ref=,
	// or that the ChartLock has for its branch or tag, and a file with the digest that the ChartLock has. Submodules are fetched
	// where their repositories are listed too. Without any, remote bases and files are refused.
	RemoteBases []RemoteBase `json:"remoteBases,omitempty"`
	// Helm is the release that is rendered with type Helm.
	Helm *Helm `json:"helm,omitempty"`
	// Flux is the cluster whose Kustomizations are built with type Flux.
	Flux *Flux `json:"flux,omitempty"`
	// HelmCharts holds the settings for rendering the helmCharts of kustomizations that do not specify them
	// themselves.
	HelmCharts *HelmCharts `json:"helmCharts,omitempty"`
	// Releases renders Flux's HelmReleases and Argo CD's Applications with Helm among the objects of the build. Without it they are
	// objects like others.
	Releases *Releases `json:"releases,omitempty"`
	// ChartRepositories lists the chart repositories that the source may name, such as for the dependencies of a chart in it,
	// and the credentials of all, that of helm.repository too.
	ChartRepositories []ChartRepository `json:"chartRepositories,omitempty"`
	// ChartLock is the path inside the source of the ChartLock, which prerig lock writes. The default is
	// charts.lock.yaml.
	ChartLock string `json:"chartLock,omitempty"`
	// Limits of one render.
	Limits *RenderLimits `json:"limits,omitempty"`
}

// RemoteBase allows a repository as a remote base, and files below its URL.
type RemoteBase struct {
	// URL of the repository, https://, http:// or ssh://, or user@host:path; or one that ends in /* for every repository below
	// it, at any depth. The repository is fetched as it is written here, however a kustomization writes it: https, ssh and the
	// short form of ssh name the same repository. Host, port and path must be equal, but for .git at the end.
	URL string `json:"url"`
	// SecretRef names the secret with username and password, bearerToken, or identity and known_hosts; and ca.crt.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
}

// LoadRestrictor is what kustomizations may load.
type LoadRestrictor string

// The values of kustomize's flag --load-restrictor.
const (
	LoadRestrictionsRootOnly LoadRestrictor = "LoadRestrictionsRootOnly"
	LoadRestrictionsNone     LoadRestrictor = "LoadRestrictionsNone"
)

// BuildType is a way to render.
type BuildType string

// The ways to render.
const (
	BuildAuto      BuildType = "Auto"
	BuildKustomize BuildType = "Kustomize"
	BuildPlain     BuildType = "Plain"
	BuildKpt       BuildType = "Kpt"
	BuildHelm      BuildType = "Helm"
	BuildFlux      BuildType = "Flux"
)

// RenderLimits bound one render. A value that is not set is the daemon's; a pipeline can only lower what the daemon allows.
type RenderLimits struct {
	// Timeout is the longest time that a render may take. It can raise the daemon's up to the operator's limits.max_timeout.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// Memory is the most memory of the renderer, such as 512Mi.
	Memory string `json:"memory,omitempty"`
	// Output is the most bytes of the result, such as 32Mi.
	Output string `json:"output,omitempty"`
	// Files is the largest number of files that a render may read.
	Files int `json:"files,omitempty"`
}

// PolicyRef names an injection policy: exactly one of its fields.
type PolicyRef struct {
	// Path of a file inside the source. Its documents of kind InjectionPolicy are taken.
	Path string `json:"path,omitempty"`
	// File is a file in the daemon's own policy directory, as a relative path.
	File string `json:"file,omitempty"`
	// BuiltIn is a policy that comes with Prerig.
	BuiltIn string `json:"builtIn,omitempty"`
	// Name of an InjectionPolicy that is an object of the cluster, in the pipeline's namespace.
	Name string `json:"name,omitempty"`
}

// Notification is whom to notify after a run: exactly one of its fields.
type Notification struct {
	// FluxReceiver calls a Receiver of type generic-hmac of Flux' notification controller.
	FluxReceiver *Endpoint `json:"fluxReceiver,omitempty"`
	// CloudEvent sends a CloudEvent over HTTP.
	CloudEvent *Endpoint `json:"cloudEvent,omitempty"`
	// CommitStatus sets the status of the source's commit.
	CommitStatus *CommitStatus `json:"commitStatus,omitempty"`
}

// Endpoint is a URL to call.
type Endpoint struct {
	// URL to call.
	URL string `json:"url"`
	// SecretRef names the secret with token, the key of the signature.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
}

// CommitStatus sets the status of a commit at its host.
type CommitStatus struct {
	// Provider is GitHub, GitLab, Gitea, BitbucketCloud, BitbucketServer or AzureDevOps.
	// +enum=GitHub,GitLab,Gitea,BitbucketCloud,BitbucketServer,AzureDevOps
	Provider string `json:"provider"`
	// URL of the host's API. The default follows from the provider and the source's URL.
	URL string `json:"url,omitempty"`
	// SecretRef names the secret with token.
	SecretRef meta.LocalObjectReference `json:"secretRef"`
	// Context is the name of the status. The default is prerig/NAMESPACE/NAME.
	Context string `json:"context,omitempty"`
}
