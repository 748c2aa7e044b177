// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Request is what to render.
type Request struct {
	// Type is how; Auto finds out.
	Type v1alpha1.BuildType `json:"type"`
	// Path of the directory in the source.
	Path string `json:"path"`
	// Helm is the release, with the type Helm.
	Helm *v1alpha1.Helm `json:"helm,omitempty"`
	// LoadRestrictor is what kustomizations may load; empty for the files below their own directories.
	LoadRestrictor v1alpha1.LoadRestrictor `json:"loadRestrictor,omitempty"`
	// Flux is the cluster, with the type Flux.
	Flux *v1alpha1.Flux `json:"flux,omitempty"`
	// Functions are further names of Prerig's own function.
	Functions []string `json:"functions,omitempty"`
	// Policies are applied after the build, together, in this order.
	Policies []Policy `json:"policies,omitempty"`
	// Bases are the remote bases that may be named, fetched beforehand (reference.FindBases).
	Bases []Base `json:"bases,omitempty"`
	// Sources are the directories of further sources. A kustomization inside one must not refer to files outside of
	// it.
	Sources []string `json:"sources,omitempty"`
	// HelmCharts is what the helmCharts of kustomizations are rendered with.
	HelmCharts *v1alpha1.HelmCharts `json:"helmCharts,omitempty"`
	// Releases renders releases among the objects of the build; nil leaves them as they are.
	Releases *v1alpha1.Releases `json:"releases,omitempty"`
	// Review renders for people who compare two results, never to publish. Flux's Kustomizations stay among the objects,
	// suspended ones are built too, variables keep their text where only the cluster or a key has the values
	// (CodeVariableKept), and what a kustomization loads from elsewhere is left out where it cannot be had (CodeNotLoaded).
	Review bool `json:"review,omitempty"`
	// NoLock is the path of the lock that the source does not have, in a review: what only a lock could give is missing
	// then, without being wanted first. It is empty where there is one.
	NoLock string `json:"noLock,omitempty"`
	// Repositories are the Git repositories whose files are in the tree, for releases.
	Repositories []Repository `json:"repositories,omitempty"`
	// Discover only finds the charts that releases need. helmCharts whose charts are missing are not rendered.
	Discover bool `json:"discover,omitempty"`
	// Charts are the charts of repositories that may be used, fetched beforehand (reference.FindCharts).
	Charts []Chart `json:"charts,omitempty"`
	// Missing are charts, and MissingBases remote bases and files, that cannot be had: the units that need them fail.
	Missing      []MissingChart `json:"missing,omitempty"`
	MissingBases []MissingBase  `json:"missingBases,omitempty"`
	// Schemas configures what the objects are checked against; nil disables the check.
	Schemas *v1alpha1.SchemaGate `json:"schemas,omitempty"`
	// Admission configures the evaluation of policies and Pod Security; nil disables it.
	Admission *v1alpha1.AdmissionGate `json:"admission,omitempty"`
	// Limits bound the render.
	Limits Limits `json:"limits"`
	// Given is the result of an earlier build: only the remaining steps are performed. It is sent to the renderer
	// next to the request.
	Given *Built `json:"-"`
	// Trust identifies those who may share a renderer, one after the other; "" requests a renderer that is used for
	// this render alone. The caller sets it, and the renderer does not know it.
	Trust string `json:"-"`
	// Keep requests the result of the build (Response.Built) and receives notes of its dependencies; nil requests
	// neither.
	Keep Notes `json:"-"`
}

// Notes take down what a build asks of its files. One goroutine calls them at a time.
type Notes interface {
	// Begin is called when a renderer begins. What is noted by then is of one that did not come to its end.
	Begin()
	// Note is called for each question.
	Note(tree.Question, tree.Answer)
	// End is called when the build is complete and asks no more questions.
	End()
}

// Repository is where the files of a Git repository are.
type Repository struct {
	// URL of the repository, and Path of its root among the files.
	URL, Path string
	// Ref is the ref that is followed. It is ignored if Any is true: then the files are available for every
	// revision.
	Ref v1alpha1.GitRef
	Any bool
}

// Policy is the text of one InjectionPolicy.
type Policy struct {
	// Origin describes where it comes from, for messages.
	Origin string `json:"origin"`
	// YAML is one document.
	YAML string `json:"yaml"`
}

// Limits bound one render.
type Limits struct {
	// Timeout from the request to the last byte of the result.
	Timeout time.Duration `json:"timeout"`
	// MaxTimeout is the most that a pipeline may raise Timeout to; less than Timeout permits no more than that.
	MaxTimeout time.Duration `json:"-"`
	// Memory in bytes that the renderer may have.
	Memory int64 `json:"memory"`
	// Output in bytes of the result.
	Output int64 `json:"output"`
	// Read bounds what is read of the source.
	Read tree.Limits `json:"read"`
}

// DefaultLimits are enough for some ten thousand objects.
func DefaultLimits() Limits {
	return Limits{
		Timeout: 2 * time.Minute, Memory: 1 << 30, Output: 64 << 20,
		Read: tree.Limits{FileBytes: 16 << 20, TotalBytes: 128 << 20, Files: 20_000, Entries: 100_000},
	}
}

// Longest is the longest time that a render may take, whatever its pipeline sets.
func (l Limits) Longest() time.Duration { return max(l.Timeout, l.MaxTimeout) }

// Lower returns the limits with those of a pipeline, which cannot raise them, except for the time up to MaxTimeout.
func (l Limits) Lower(by *v1alpha1.RenderLimits) (Limits, error) {
	if by == nil {
		return l, nil
	}
	if by.Timeout != nil {
		l.Timeout = min(by.Timeout.Duration, l.Longest())
	}
	if by.Files > 0 && by.Files < l.Read.Files {
		l.Read.Files = by.Files
	}
	for _, value := range []struct {
		text string
		to   *int64
	}{{by.Memory, &l.Memory}, {by.Output, &l.Output}} {
		if value.text == "" {
			continue
		}
		n, err := parseQuantity(value.text)
		if err != nil {
			return l, err
		}
		*value.to = min(*value.to, n)
	}
	return l, nil
}

// Response is what was rendered.
type Response struct {
	// Type is how it was rendered, never Auto.
	Type v1alpha1.BuildType `json:"type"`
	// Objects in the order of the build.
	Objects []Object `json:"-"`
	// Wanted lists the charts without which releases cannot be rendered, and WantedBases the remote bases and files without
	// which kustomizations cannot be built. If one is not empty, the response has no objects.
	Wanted      []ChartReference `json:"wanted,omitempty"`
	WantedBases []WantedBase     `json:"wantedBases,omitempty"`
	// Failed are the units of which nothing is among the objects: what is published of them is to stay. Results with the
	// tag TagUnit say why.
	Failed []string `json:"failed,omitempty"`
	// Units describes the Applications, and in a review the Kustomizations of Flux, that are units, failed ones too.
	Units []Unit `json:"units,omitempty"`
	// Results are the findings of the injection.
	Results result.Results `json:"results,omitempty"`
	// Decisions has one entry for each pod template and layer.
	Decisions []Decision `json:"decisions,omitempty"`
	// FollowJobs reports whether a policy has Jobs and bare Pods follow it, whatever is published of them
	// (spec.jobs: Follow).
	FollowJobs bool `json:"followJobs,omitempty"`
	// Warnings are further messages of the build.
	Warnings []string `json:"warnings,omitempty"`
	// Built is what the build gave, with Request.Keep; nil where that is not to be kept, as it holds what is secret.
	Built *Built `json:"-"`
	// Build and Inject are how long the two took, without starting the renderer.
	Build  time.Duration `json:"build"`
	Inject time.Duration `json:"inject"`
}

// CodeNotRendered marks the results about releases that could not be rendered (result.TagCode). The objects are without those
// of these releases then.
const CodeNotRendered = "not-rendered"

// TagUnlocked is the tag of a result about a release whose chart is not in the lock.
const TagUnlocked = "unlocked"

// TagOutside is the tag of a result about a release that needs what is not in the tree, such as a plugin or another repository.
const TagOutside = "outside"

// CodeVariableKept marks the results about variables that stay as they are (result.TagCode), in a review, and
// CodeVariableMissing those about variables of which nothing has a value. TagVariable is their name.
const (
	CodeVariableKept    = "variable-kept"
	CodeVariableMissing = "variable-missing"
	TagVariable         = "variable"
)

// CodeNotLoaded marks the results about what a kustomization loads from elsewhere, or by a program, and that the build
// is without, in a review (result.TagCode). TagReference is the text of the entry, and TagDigest a digest of its content
// where the text does not tell one from another.
const (
	CodeNotLoaded = "not-loaded"
	TagReference  = "reference"
	TagDigest     = "digest"
)

// IsWanting reports whether the build needs what it did not have, and has to be repeated with it.
func (r *Response) IsWanting() bool { return len(r.Wanted)+len(r.WantedBases) > 0 }

// AddWarning adds a message of the build.
func (r *Response) AddWarning(message string) { r.Warnings = append(r.Warnings, message) }

// Digest of the objects: their identities and bytes, in order.
func (r *Response) Digest() string {
	h := sha256.New()
	for _, object := range r.Objects {
		fmt.Fprintf(h, "%s %d\n", object.ID(), len(object.YAML))
		h.Write(object.YAML)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// PolicyDigest is a digest of the policies of a request.
func (r *Request) PolicyDigest() string {
	h := sha256.New()
	for _, policy := range r.Policies {
		fmt.Fprintf(h, "%d\n", len(policy.YAML))
		io.WriteString(h, policy.YAML)
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Fingerprint returns a digest of everything that a result depends on: what was read of the source, the request
// without its limits, and the version of Prerig. Two renders with the same fingerprint yield the same objects,
// whatever other parts of the source have changed.
func Fingerprint(record tree.Record, request *Request, version string) string {
	plain := *request
	plain.Limits = Limits{}
	text, err := json.Marshal(plain)
	if err != nil {
		// The request is plain data.
		panic(err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n", record.Fingerprint(), text, version)
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}
