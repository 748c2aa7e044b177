// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Package event receives the deliveries of Git hosts, registries, Flux and other senders about changes, verifies
// their origin, and reduces them to the changes. It makes no decision about pipelines and stores no events itself.
package event

import "strings"

// Event is one delivery that was verified.
type Event struct {
	// ID is the same for every repetition of a delivery: a hash over the receiver's name and the sender's delivery
	// id or, without one, the body and, for a reference that may move back, the number of its moves.
	ID string `json:"id"`
	// Receiver is the name of the receiver that took it.
	Receiver string `json:"receiver"`
	// Provider is the kind of the sender.
	Provider Provider `json:"provider"`
	// Changes are the reported changes. An event without changes (a ping, a push of a blob) is acknowledged and
	// dropped.
	Changes []Change `json:"changes"`
}

// Change is one thing that changed: exactly one of its fields.
type Change struct {
	Git  *GitChange  `json:"git,omitempty"`
	OCI  *OCIChange  `json:"oci,omitempty"`
	Flux *FluxChange `json:"flux,omitempty"`
	Pull *PullChange `json:"pull,omitempty"`
}

// GitChange is a reference that moved. What files it touches is found in Git; the lists in payloads are not trusted.
type GitChange struct {
	// URLs under which the sender knows the repository.
	URLs []string `json:"urls"`
	// Ref is the full reference, such as refs/heads/main; empty if the sender omits it.
	Ref string `json:"ref,omitempty"`
	// Before and After are commits; empty for a reference that was created or deleted, or if the sender omits them.
	Before string `json:"before,omitempty"`
	After  string `json:"after,omitempty"`
	// Deleted means that the reference was deleted.
	Deleted bool `json:"deleted,omitempty"`
}

// OCIChange is an artifact that was pushed.
type OCIChange struct {
	// Repository is host/path, with the registry's host if the sender includes it.
	Repository string `json:"repository"`
	// Host reports whether Repository begins with a host.
	Host   bool   `json:"host,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// FluxChange is a Flux source with a new artifact. Flux does not send the URL of the source.
type FluxChange struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Revision as Flux writes it: main@sha1:<hex> or latest@sha256:<hex>; the older main/<hex> is accepted.
	Revision string `json:"revision,omitempty"`
}

// Ref returns the branch or tag of the revision; empty where it has none.
func (c FluxChange) Ref() string {
	if ref, _, ok := strings.Cut(c.Revision, "@sha"); ok {
		return ref
	}
	if i := strings.LastIndexByte(c.Revision, '/'); i > 0 && !strings.Contains(c.Revision, ":") {
		return c.Revision[:i]
	}
	return ""
}

// Provider is the kind of a sender.
type Provider string

// The senders.
const (
	GitHub           Provider = "github"
	GitLab           Provider = "gitlab"
	Gitea            Provider = "gitea"
	Forgejo          Provider = "forgejo"
	BitbucketCloud   Provider = "bitbucket-cloud"
	BitbucketServer  Provider = "bitbucket-server"
	AzureDevOps      Provider = "azure-devops"
	Gogs             Provider = "gogs"
	Flux             Provider = "flux"
	Distribution     Provider = "distribution"
	Harbor           Provider = "harbor"
	Quay             Provider = "quay"
	DockerHub        Provider = "dockerhub"
	ACR              Provider = "acr"
	ECR              Provider = "ecr"
	ArtifactRegistry Provider = "artifact-registry"
	Artifactory      Provider = "artifactory"
	Nexus            Provider = "nexus"
	CloudEvents      Provider = "cloudevents"
	Generic          Provider = "generic"
)
