// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/prerig/prerig/fn/podmap"
	"github.com/prerig/prerig/fn/workload"
)

// Commit is a state of what was committed.
type Commit struct {
	// ID is the commit's hash, or "" for files that are in no repository.
	ID string `json:"id,omitempty"`
	// Time is when it was committed.
	Time time.Time `json:"time,omitzero"`
	// Subject is the first line of its message.
	Subject string `json:"subject,omitempty"`
	// Source is the revision that it was rendered from, according to its trailer.
	Source string `json:"source,omitempty"`
	// Behind is how many commits that touch what is compared come after it.
	Behind int `json:"behind,omitempty"`
}

// String is the beginning of the hash and the subject.
func (c Commit) String() string {
	if c.ID == "" {
		return "the files"
	}
	if c.Subject == "" {
		return c.ID[:min(len(c.ID), 10)]
	}
	return c.ID[:min(len(c.ID), 10)] + " " + c.Subject
}

// Workload is an object with a pod template, as it was committed.
type Workload struct {
	Ref Ref
	// File is its path in what was committed.
	File string
	// Commit is the newest one that has it so.
	Commit Commit
	// Object is the whole object.
	Object map[string]any
	// Templates are its pod templates with the keys metadata and spec, nearly always one.
	Templates []map[string]any
	// elsewhere names the workload that has the template, as an Argo Rollout may.
	elsewhere *Ref
}

// History is what was committed, at the newest commit and before.
type History interface {
	// Head is the newest commit.
	Head() Commit
	// Workloads are those of the newest commit.
	Workloads() map[Ref]*Workload
	// Versions yields the versions of a workload before the newest commit, the newest version first, each with the
	// newest commit that has it. An error is about one version that cannot be read; others may follow.
	Versions(ref Ref) iter.Seq2[*Workload, error]
}

// NewWorkload returns the workload of a committed object, or nil if it has no pod template. An object without a
// namespace is in namespace.
func NewWorkload(registry *workload.Registry, obj map[string]any, namespace, file string) (*Workload, error) {
	templates, err := registry.Templates(obj)
	var other *workload.ElsewhereError
	ref := refOf(obj)
	if ref.Namespace == "" {
		ref.Namespace = namespace
	}
	if begins := podmap.TextAt(obj, "metadata", "generateName"); ref.Name == "" && begins != "" {
		ref.Name = begins + anyEnding
	}
	w := &Workload{Ref: ref, File: file, Object: obj}
	if errors.As(err, &other) {
		elsewhere := newRef(other.APIVersion, other.Kind, ref.Namespace, other.Name)
		w.elsewhere = &elsewhere
		return w, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s in %s: %w", ref, file, err)
	}
	if len(templates) == 0 || ref.Name == "" {
		return nil, nil
	}
	for _, t := range templates {
		w.Templates = append(w.Templates, t.Pod)
	}
	return w, nil
}

// Namespaces returns the namespaces that workloads are committed for, sorted.
func Namespaces(history History) []string {
	found := map[string]bool{}
	for ref := range history.Workloads() {
		found[ref.Namespace] = true
	}
	return slices.Sorted(maps.Keys(found))
}
