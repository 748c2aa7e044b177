// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/queue"
)

// Names of the stored data of pipelines that may have been removed.
const (
	registrationPrefix = "known/"
	removedName        = "catalog/removed"
)

// Registration is the data about a pipeline that is needed after its file is removed.
type Registration struct {
	// Namespace of the pipeline, for its secrets.
	Namespace string `json:"namespace,omitempty"`
	// SourceURL is where it was rendered from.
	SourceURL string `json:"sourceURL,omitempty"`
	// Policy decides whether its files are kept.
	Policy v1alpha1.DeletionPolicy `json:"policy,omitempty"`
	// Suspended reports whether its specification suspends it.
	Suspended bool `json:"suspended,omitempty"`
	// Publish is where it publishes to.
	Publish []v1alpha1.Publish `json:"publish,omitempty"`
	// Left lists branches where it has published but no longer does, until its files on them are removed or released.
	Left []v1alpha1.Publish `json:"left,omitempty"`
	// Object is the newest version of the pipeline's object that any process has seen; the zero value for pipelines of files.
	Object queue.ObjectVersion `json:"object,omitzero"`
	// Removal is set if the pipeline is missing.
	Removal *Removal `json:"removal,omitempty"`
}

// Removal is the state of the removal of a missing pipeline.
type Removal struct {
	// Since is when it was first missed.
	Since time.Time `json:"since"`
	// Held reports whether too many others disappeared at the same time, so that a person must confirm it.
	Held bool `json:"held,omitempty"`
	// Deleted reports whether it was seen being deleted, as an object of a cluster.
	Deleted bool `json:"deleted,omitempty"`
	// Approved reports whether its output may be removed.
	Approved bool `json:"approved,omitempty"`
	// Failures and Message describe the progress.
	Failures int    `json:"failures,omitempty"`
	Message  string `json:"message,omitempty"`
}

// Register returns the registration of a pipeline.
func Register(p *v1alpha1.RenderPipeline) Registration {
	r := Registration{Namespace: p.Metadata.Namespace, Policy: p.Spec.DeletionPolicy, Suspended: p.Spec.Suspend, Publish: p.Spec.Publish}
	source := p.Spec.Source
	switch {
	case source.Git != nil:
		r.SourceURL = source.Git.URL
	case source.OCI != nil:
		r.SourceURL = source.OCI.URL
	}
	return r
}

// Digest returns the same value for registrations with equal content.
func (r Registration) Digest() string {
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it is plain data
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Registration returns what this process knows of a pipeline; it must not be changed.
func (s *Registrations) Registration(pipeline string) (Registration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data, revision, ok := s.table.Get(registrationPrefix + pipeline)
	if !ok {
		return Registration{}, false
	}
	if known, ok := s.registrations[pipeline]; ok && known.revision == revision {
		return known.registration, true
	}
	r, err := decodeJSON[Registration](data)
	if err != nil {
		return Registration{}, false
	}
	s.registrations[pipeline] = decodedRegistration{revision, *r}
	return *r, true
}

// decodedRegistration is one that was decoded.
type decodedRegistration struct {
	revision     uint64
	registration Registration
}

// Registered lists the pipelines that are registered, or of which a state is stored.
func (s *Store) Registered() []string {
	names := slices.Concat(s.Known(), s.namesBelow(registrationPrefix))
	slices.Sort(names)
	return slices.Compact(names)
}

// ChangeRegistration changes the stored registration of a pipeline, and retries after concurrent changes. A change
// that returns false leaves it unchanged.
func (s *Registrations) ChangeRegistration(ctx context.Context, pipeline string, change func(r *Registration) bool) error {
	const attempts = 10
	for try := 1; ; try++ {
		data, revision, ok, err := s.q.Load(ctx, registrationPrefix+pipeline)
		if err != nil {
			return err
		}
		r := &Registration{}
		if ok {
			if r, err = decodeJSON[Registration](data); err != nil {
				r = &Registration{}
			}
		}
		if !change(r) {
			return nil
		}
		if data, err = encodeJSON(r); err != nil {
			return fmt.Errorf("registering %s: %w", pipeline, err)
		}
		_, err = s.q.SaveAfter(ctx, registrationPrefix+pipeline, data, revision)
		if !errors.Is(err, queue.ErrChanged) || try == attempts {
			return err
		}
	}
}

// LoadRegistration returns the stored registration of a pipeline with the revision for Forget, which is 0 if none
// is stored.
func (s *Registrations) LoadRegistration(ctx context.Context, pipeline string) (Registration, uint64, error) {
	data, revision, ok, err := s.q.Load(ctx, registrationPrefix+pipeline)
	if err != nil || !ok {
		return Registration{}, 0, err
	}
	r, err := decodeJSON[Registration](data)
	if err != nil {
		return Registration{}, revision, nil
	}
	return *r, revision, nil
}

// IsKnown reports whether anything is stored of a pipeline that would have to be dealt with before it may go.
func (s *Store) IsKnown(ctx context.Context, pipeline string) (bool, error) {
	_, registered, err := s.LoadRegistration(ctx, pipeline)
	if err != nil || registered != 0 {
		return registered != 0, err
	}
	_, stored, err := s.Load(ctx, pipeline)
	return stored != 0, err
}

// Forget deletes all stored data of a pipeline. The registration is deleted last, so that a crash does not leave
// unknown data behind; if its revision has changed, it stays, and Forget returns false.
func (s *Store) Forget(ctx context.Context, pipeline string, revision uint64) (forgotten bool, err error) {
	state, _, err := s.Load(ctx, pipeline)
	if err != nil {
		return false, err
	}
	s.Drop(ctx, pipeline, state.Runs)
	if err := s.q.Forget(ctx, statePrefix+pipeline); err != nil {
		return false, err
	}
	// Requests of people apply to a pipeline that exists again.
	if _, now, err := s.LoadRegistration(ctx, pipeline); err != nil || now != revision {
		return false, err
	}
	if err := s.q.Forget(ctx, controlPrefix+pipeline); err != nil {
		return false, err
	}
	err = s.q.ForgetAfter(ctx, registrationPrefix+pipeline, revision)
	if errors.Is(err, queue.ErrChanged) {
		return false, nil
	}
	return err == nil, err
}

// Removed is a pipeline that was removed.
type Removed struct {
	Pipeline string    `json:"pipeline"`
	At       time.Time `json:"at"`
	// Message describes what happened to its published output.
	Message string `json:"message"`
}

// keepRemoved is how many removed pipelines are remembered.
const keepRemoved = 50

// AddRemoved records a removed pipeline, for people. since is when the pipeline was found missing: a younger entry
// is about the same removal, which was interrupted after its work, and is kept.
func (s *Registrations) AddRemoved(ctx context.Context, r Removed, since time.Time) error {
	for {
		data, revision, _, err := s.q.Load(ctx, removedName)
		if err != nil {
			return err
		}
		known := decodeRemoved(data)
		if slices.ContainsFunc(known, func(old Removed) bool { return old.Pipeline == r.Pipeline && old.At.After(since) }) {
			return nil
		}
		all := append([]Removed{r}, known...)
		if data, err = encodeJSON(all[:min(len(all), keepRemoved)]); err != nil {
			return err
		}
		if _, err = s.q.SaveAfter(ctx, removedName, data, revision); !errors.Is(err, queue.ErrChanged) {
			return err
		}
	}
}

// Removed returns the pipelines that were removed last, the newest first.
func (s *Registrations) Removed() []Removed {
	data, _, _ := s.table.Get(removedName)
	return decodeRemoved(data)
}

func decodeRemoved(data []byte) []Removed {
	if len(data) == 0 {
		return nil
	}
	all, err := decodeJSON[[]Removed](data)
	if err != nil {
		return nil
	}
	return *all
}
