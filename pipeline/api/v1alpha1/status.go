// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Reasons of the condition Ready, beside those of fluxcd/pkg/apis/meta.
const (
	ReasonSourceFailed  = "SourceFailed"
	ReasonBuildFailed   = meta.BuildFailedReason
	ReasonGateClosed    = "GateClosed"
	ReasonPublishFailed = "PublishFailed"
	ReasonInvalid       = "Invalid"
	ReasonDrifted       = "Drifted"
	// ReasonSuspended is about a pipeline that was suspended before it has ever run.
	ReasonSuspended = "Suspended"
	// ReasonSnapshotKept is about a policy with from: Cluster for which an earlier state of the cluster is used,
	// and ReasonClusterUnknown about one for which no earlier state exists.
	ReasonSnapshotKept   = "SnapshotKept"
	ReasonClusterUnknown = "ClusterUnknown"
	// While a pipeline is deleted.
	ReasonRemoving    = "Removing"
	ReasonRemovalHeld = "RemovalHeld"
)

// RequestAnnotation asks for a run now, with any value that is new, as meta.ReconcileRequestAnnotation of Flux does.
const RequestAnnotation = "prerig.dev/requestedAt"

// RenderPipelineStatus is what was observed of a pipeline.
type RenderPipelineStatus struct {
	meta.ReconcileRequestStatus `json:",inline"`
	// ObservedGeneration is the generation of the object that the rest is about, for a pipeline that is an object of a cluster; -1 until
	// anything was observed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready, Reconciling and Stalled, as Flux uses them.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// LastRun is the last run that came to an end.
	LastRun *Run `json:"lastRun,omitempty"`
	// Published is what is published now, one entry for each element of spec.publish.
	Published []Published `json:"published,omitempty"`
}

// StatusOf reads the status that an object of a cluster has, which is decoded from JSON already; without one it is empty.
func StatusOf(value any) (status RenderPipelineStatus, err error) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	return status, err
}

// PolicyStatus is what was observed of an InjectionPolicy that is an object of a cluster.
type PolicyStatus struct {
	// ObservedGeneration is the generation of the object that the rest is about; -1 until anything was observed.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions are Ready and Stalled, as Flux uses them.
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Run is one run of a pipeline.
type Run struct {
	// ID is the one identifier of the run in logs, traces and events.
	ID string `json:"id"`
	// Revision of the source, such as main@sha1:… or latest@sha256:….
	Revision string `json:"revision,omitempty"`
	// Author wrote the source's commit, Subject is the first line of its message; empty for what is no Git repository.
	Author  string `json:"author,omitempty"`
	Subject string `json:"subject,omitempty"`
	// Sources are the revisions of the further sources.
	Sources []SourceRevision `json:"sources,omitempty"`
	// Fingerprint of everything that the result depends on.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Started and Finished are when it ran.
	Started  metav1.Time `json:"started,omitempty"`
	Finished metav1.Time `json:"finished,omitempty"`
	// Objects is the number of rendered objects.
	Objects int `json:"objects,omitempty"`
	// Outcome is Published, Unchanged, Refused, Failed, or Drifted where others have changed what is published.
	// +enum=Published,Unchanged,Refused,Failed,Drifted
	Outcome string `json:"outcome,omitempty"`
	// Message describes in one sentence what happened.
	Message string `json:"message,omitempty"`
}

// Published is what a run left at one place.
type Published struct {
	// Target is the branch and path, or the repository and tag.
	Target string `json:"target"`
	// Revision is the commit or the digest.
	Revision string `json:"revision,omitempty"`
	// SourceRevision is the revision of the source that it was rendered from.
	SourceRevision string `json:"sourceRevision,omitempty"`
	// Sources are the revisions of the further sources that it was rendered from.
	Sources []SourceRevision `json:"sources,omitempty"`
	// Snapshots lists digests of the policies with from: Cluster that it was rendered with; prerig daemon snapshot prints
	// one.
	Snapshots []string `json:"snapshots,omitempty"`
	// Istio is which minor versions of Istio's proxy the result has, such as 1.26 or 1.26-1.27, and IstioBefore those of what is merged
	// as long as the result waits.
	Istio       string `json:"istio,omitempty"`
	IstioBefore string `json:"istioBefore,omitempty"`
	// PullRequest is the one that it waits in, for a place that is published to by pull request; unset if
	// everything is merged.
	PullRequest *PullRequestStatus `json:"pullRequest,omitempty"`
}

// SourceRevision is where a further source of a pipeline was.
type SourceRevision struct {
	// MountPath of the source.
	MountPath string `json:"mountPath"`
	// URL of the source, or the path of a directory.
	URL string `json:"url,omitempty"`
	// Revision of the source, such as main@sha1:….
	Revision string `json:"revision,omitempty"`
}

// GetAnnotations returns the annotations, for the reconcile requests of fluxcd/pkg/apis/meta.
func (p *RenderPipeline) GetAnnotations() map[string]string { return p.Metadata.Annotations }

// GetLastHandledReconcileRequest returns the token of the last request that was handled.
func (p *RenderPipeline) GetLastHandledReconcileRequest() string {
	return p.Status.GetLastHandledReconcileRequest()
}

// GetConditions returns the conditions.
func (p *RenderPipeline) GetConditions() []metav1.Condition { return p.Status.Conditions }

// SetConditions sets the conditions.
func (p *RenderPipeline) SetConditions(c []metav1.Condition) { p.Status.Conditions = c }

// SpecDigest returns a digest that is equal for pipelines with the same specification.
func (p *RenderPipeline) SpecDigest() string {
	text, err := json.Marshal(p.Spec)
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Key is the identity of the pipeline: its name, with the namespace in front where it has one.
func (p *RenderPipeline) Key() string {
	if p.Metadata.Namespace == "" {
		return p.Metadata.Name
	}
	return p.Metadata.Namespace + "/" + p.Metadata.Name
}

// NamespaceOf returns the namespace in a Key, empty where it has none.
func NamespaceOf(key string) string {
	namespace, _, ok := strings.Cut(key, "/")
	if !ok {
		return ""
	}
	return namespace
}

var (
	_ meta.ObjectWithAnnotationRequests = (*RenderPipeline)(nil)
	_ meta.ObjectWithConditions         = (*RenderPipeline)(nil)
	_ meta.ObjectWithConditionsSetter   = (*RenderPipeline)(nil)
)
