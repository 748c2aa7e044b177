// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "github.com/fluxcd/pkg/apis/meta"

// Publish is one target of the result: exactly one of git, oci and externalArtifact.
type Publish struct {
	// Secrets is Refuse (the default: a result with a Secret whose values can be read is not published), Allow, or Encrypt, which
	// writes Secrets as SOPS encrypts them. Secrets that SOPS has encrypted already, and those without values, are published as they
	// are in any case.
	// +enum=Refuse,Allow,Encrypt
	Secrets SecretsPolicy `json:"secrets,omitempty"`
	// Encryption lists for whom Secrets are encrypted, with secrets: Encrypt.
	Encryption *Encryption `json:"encryption,omitempty"`
	// Git is a branch.
	Git *GitPublish `json:"git,omitempty"`
	// OCI is an artifact in a registry.
	OCI *OCIPublish `json:"oci,omitempty"`
	// ExternalArtifact is an artifact that the daemon serves itself, for Flux' Kustomizations to take without a repository between.
	ExternalArtifact *ExternalArtifactPublish `json:"externalArtifact,omitempty"`
}

// publishKindsByName returns what an entry names, by the names of all of its fields, nil for those that it leaves out.
func (p Publish) publishKindsByName() map[string]publishKind {
	return map[string]publishKind{"git": nonNilPublishKind(p.Git), "oci": nonNilPublishKind(p.OCI), "externalArtifact": nonNilPublishKind(p.ExternalArtifact)}
}

// GitPublish is a directory on a branch.
type GitPublish struct {
	// URL of the repository. The default is the source's.
	URL string `json:"url,omitempty"`
	// Branch that is written. A pipeline publishes to a branch once, and never to the branch that it is rendered from.
	Branch string `json:"branch"`
	// Path of the directory for this pipeline on the branch. The default is the pipeline's name; "." is refused, except with
	// propose, as it would leave no room for a second pipeline.
	Path string `json:"path,omitempty"`
	// Layout is Objects (the default: one file for each object) or Single (manifests.yaml).
	// +enum=Objects,Single
	Layout Layout `json:"layout,omitempty"`
	// Style is Canonical (the default: every object is written in one style, keys sorted) or Preserve (as rendered).
	// +enum=Canonical,Preserve
	Style Style `json:"style,omitempty"`
	// Propose writes BRANCH-next (with activePath: BRANCH-next/ACTIVEPATH) with hydrator.metadata and the note of GitOps
	// Promoter's custom hydrators, which then opens a pull request.
	Propose *Propose `json:"propose,omitempty"`
	// PullRequest writes a branch of Prerig's own instead, and keeps a pull request from it to the branch.
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Adopt accepts a branch, or files at the path, that Prerig did not write, and owns them from then on. Without it
	// they are rejected.
	Adopt bool `json:"adopt,omitempty"`
	// Message is the subject of the commit message, a Go template over .Name, .Namespace, .Path, .Branch, .Source (url,
	// revision, subject, author) and .Count. Trailers follow in any case.
	Message string `json:"message,omitempty"`
	// Author of the commits. The default is Prerig <prerig@prerig.dev>.
	Author *Author `json:"author,omitempty"`
	// Signing signs commits.
	Signing *Signing `json:"signing,omitempty"`
	// Attestation signs a statement about the files of each change, with a key of cosign: which source, policies, program and
	// captured cluster they come from. The statement is in .prerig/statements on the branch; prerig verify --attestations reads it.
	Attestation *ArtifactSigning `json:"attestation,omitempty"`
	// SecretRef names the secret for pushing. The default is the source's, where the URL is the source's too.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
}

// Layout is how a result is divided into files.
type Layout string

// The layouts.
const (
	LayoutObjects Layout = "Objects"
	LayoutSingle  Layout = "Single"
)

// Style is how objects are written.
type Style string

// The styles.
const (
	StyleCanonical Style = "Canonical"
	StylePreserve  Style = "Preserve"
)

// Propose asks for GitOps Promoter's contract.
type Propose struct {
	// ActivePath is the activePath of the promotion strategy, for several applications on one branch.
	ActivePath string `json:"activePath,omitempty"`
}

// Author is who commits.
type Author struct {
	// Name of the author.
	Name string `json:"name"`
	// Email of the author.
	Email string `json:"email"`
}

// Signing signs commits with the key in a secret: git.asc (OpenPGP, armored) or identity (SSH private key), each with
// an optional passphrase under password.
type Signing struct {
	// SecretRef names the secret.
	SecretRef meta.LocalObjectReference `json:"secretRef"`
	// Format is Auto (the default: by the key), OpenPGP or SSH.
	// +enum=Auto,OpenPGP,SSH
	Format SigningFormat `json:"format,omitempty"`
}

// SigningFormat is the kind of a signature.
type SigningFormat string

// The kinds of signatures.
const (
	SigningAuto    SigningFormat = "Auto"
	SigningOpenPGP SigningFormat = "OpenPGP"
	SigningSSH     SigningFormat = "SSH"
)

// OCIPublish is an artifact that Flux's OCIRepository can pull.
type OCIPublish struct {
	// URL of the repository, oci://registry/path without a tag.
	URL string `json:"url"`
	// Tags to set. The default is latest.
	Tags []string `json:"tags,omitempty"`
	// Layout is Objects (the default) or Single.
	// +enum=Objects,Single
	Layout Layout `json:"layout,omitempty"`
	// Style is Canonical (the default) or Preserve.
	// +enum=Canonical,Preserve
	Style Style `json:"style,omitempty"`
	// Signing signs the artifact with a key of cosign, for spec.verify of Flux's OCIRepository.
	Signing *ArtifactSigning `json:"signing,omitempty"`
	// Attestation attaches a signed statement to the artifact, with a key of cosign: which source, policies, program and captured
	// cluster its files come from. cosign verify-attestation reads it.
	Attestation *ArtifactSigning `json:"attestation,omitempty"`
	// SecretRef names the secret with .dockerconfigjson, or username and password; and ca.crt.
	SecretRef *meta.LocalObjectReference `json:"secretRef,omitempty"`
	// Insecure uses plain HTTP.
	Insecure bool `json:"insecure,omitempty"`
}

// ExternalArtifactPublish is an object of kind ExternalArtifact of Flux in the pipeline's namespace, and the files that it points to.
type ExternalArtifactPublish struct {
	// Name of the object. The default is the pipeline's name.
	Name string `json:"name,omitempty"`
	// Namespace of the object. It is the pipeline's, and may be no other.
	Namespace string `json:"namespace,omitempty"`
	// Layout is Objects (the default) or Single.
	// +enum=Objects,Single
	Layout Layout `json:"layout,omitempty"`
	// Style is Canonical (the default) or Preserve.
	// +enum=Canonical,Preserve
	Style Style `json:"style,omitempty"`
}

// ArtifactSigning signs with the key in a secret, as cosign generate-key-pair makes it: cosign.key, and its password under
// cosign.password. Signatures are kept beside what they are of, and go to no transparency log.
type ArtifactSigning struct {
	// SecretRef names the secret.
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}
