// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
)

// SecretsPolicy is how Secrets with readable values in the result are handled. Anyone who can read a branch or an
// artifact can read them in it, and in its history.
type SecretsPolicy string

// What becomes of Secrets.
const (
	SecretsRefuse SecretsPolicy = "Refuse"
	SecretsAllow  SecretsPolicy = "Allow"
	// SecretsEncrypt writes them as SOPS encrypts them.
	SecretsEncrypt SecretsPolicy = "Encrypt"
)

// Encryption lists for whom Secrets are encrypted, in the format of SOPS.
type Encryption struct {
	// Age lists the recipients who can decrypt: public keys as age-keygen prints them, such as age1….
	Age []string `json:"age"`
	// SecretRef names the secret with the key seed, at least 32 random bytes or as many characters. The values that
	// SOPS chooses at random are derived from it, so that the same Secret produces the same bytes. Its holder
	// cannot decrypt, but can verify guesses.
	SecretRef meta.LocalObjectReference `json:"secretRef"`
}

// publishKind describes a kind of publish target: a field of Publish.
type publishKind interface {
	// describeTarget names an entry in the status; url is where it is, which tenants and egress are checked by.
	describeTarget() string
	url() string
	// describeForUsers names an entry for people, describeComparisonBase what a difference from what is published
	// compares with.
	describeForUsers() string
	describeComparisonBase() string
	// layoutAndStyle returns how the files are laid out and written, directory where they are, or "" if they are the
	// whole content.
	layoutAndStyle() (Layout, Style)
	publishDirectory() string
	// isRemovable and recordsSourceRevisions are Publish's Removable and NotesRevisions.
	isRemovable() bool
	recordsSourceRevisions() bool
	// claimedPlaces is what no two pipelines share, nor two entries of one.
	claimedPlaces() []Place
	// setDefaults sets what depends only on the pipeline; check returns what is wrong with an entry at a path.
	setDefaults(p *RenderPipeline)
	check(v *validator, at string, p *RenderPipeline)
}

// Place is what is published to by one pipeline alone: a directory on a branch, or a tag of an artifact.
type Place struct {
	// Key is equal for all spellings of the same branch or tag. Path is the directory in it, "." for all of it.
	Key, Path string

	field                            string                  // the one that is wrong where another pipeline has it
	conflictMessage                  func(who string) string // returns the error message
	duplicateField, duplicateMessage string                  // the same where another entry of the pipeline has it, with %d for its index
}

// TakenBy returns the error for a place of the entry at a path that already has another owner.
func (p Place) TakenBy(at, who string) *FieldError {
	return &FieldError{Path: at + "." + p.field, Message: p.conflictMessage(who)}
}

// nonNilPublishKind returns a kind, or nil if the entry omits it.
func nonNilPublishKind[T any, P interface {
	*T
	publishKind
}](kind P) publishKind {
	if kind == nil {
		return nil
	}
	return kind
}

// Kind returns the field that an entry names, "" for one that names none.
func (p Publish) Kind() string {
	name, _ := p.firstNamedKind()
	return name
}

// PublishKinds lists the fields of an entry of spec.publish, exactly one of which must be set, in alphabetical
// order.
func PublishKinds() []string { return slices.Sorted(maps.Keys(Publish{}.publishKindsByName())) }

// publishKindSet returns the kind that an entry sets, or nil if it sets none.
func (p Publish) publishKindSet() publishKind {
	_, kind := p.firstNamedKind()
	return kind
}

// firstNamedKind returns the first field by name that an entry sets, and its value.
func (p Publish) firstNamedKind() (string, publishKind) {
	kinds := p.publishKindsByName()
	for _, name := range slices.Sorted(maps.Keys(kinds)) {
		if kinds[name] != nil {
			return name, kinds[name]
		}
	}
	return "", nil
}

// Target names an entry of spec.publish in the status.
func (p Publish) Target() string { return p.publishKindSet().describeTarget() }

// Address returns the URL that an entry is published to and the field that holds it, both empty if the entry sets
// no kind.
func (p Publish) Address() (field, url string) {
	name, kind := p.firstNamedKind()
	if kind == nil {
		return "", ""
	}
	return name + ".url", kind.url()
}

// Format returns how the files of an entry are laid out and written, with defaults for unset fields.
func (p Publish) Format() (Layout, Style) {
	if kind := p.publishKindSet(); kind != nil {
		return kind.layoutAndStyle()
	}
	return LayoutObjects, StyleCanonical
}

// Directory returns where the files are at the place, "" where they are all that it holds.
func (p Publish) Directory() string { return p.publishKindSet().publishDirectory() }

// Description names an entry for people.
func (p Publish) Description() string { return p.publishKindSet().describeForUsers() }

// ComparedWith describes in words what a difference from the published state is compared with.
func (p Publish) ComparedWith() string { return p.publishKindSet().describeComparisonBase() }

// Removable reports whether published content can be removed again. What cannot is left as it is.
func (p Publish) Removable() bool { return p.publishKindSet().isRemovable() }

// NotesRevisions reports whether each revision of the source is to be noted at the target, even if the result is
// unchanged: GitOps Promoter waits for a note for each commit.
func (p Publish) NotesRevisions() bool { return p.publishKindSet().recordsSourceRevisions() }

// Places returns what no other pipeline may publish to.
func (p Publish) Places() []Place {
	if kind := p.publishKindSet(); kind != nil {
		return kind.claimedPlaces()
	}
	return nil
}

// SamePlace reports whether the next run of a pipeline that moves from one entry to the other moves its files, so that
// no file is left behind.
func (p Publish) SamePlace(other Publish) bool {
	return p.sharesPublishPlace(other, func(Place, Place) bool { return true })
}

// Overlaps reports whether two entries can have files in common: they are on one branch, one's directory in the other's.
func (p Publish) Overlaps(other Publish) bool {
	return p.sharesPublishPlace(other, func(a, b Place) bool { return isWithin(a.Path, b.Path) || isWithin(b.Path, a.Path) })
}

// sharesPublishPlace reports whether both entries use the same branch or tag, and their places in it match.
func (p Publish) sharesPublishPlace(other Publish, matches func(a, b Place) bool) bool {
	for _, a := range p.Places() {
		for _, b := range other.Places() {
			if a.Key == b.Key && matches(a, b) {
				return true
			}
		}
	}
	return false
}

func isWithin(dir, name string) bool {
	dir, name = path.Clean(dir), path.Clean(name)
	return dir == "." || dir == name || strings.HasPrefix(name, dir+"/")
}
