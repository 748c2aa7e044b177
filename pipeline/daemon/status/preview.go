// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/prerig/prerig/pipeline/promotion/pullrequest"
	"github.com/prerig/prerig/pipeline/source/giturl"
)

const previewPrefix = "preview/"

// Preview is what is known of one open pull request that is previewed, for the pipelines of one namespace.
type Preview struct {
	// Namespace is that of the pipelines, Repository is the target of the pull request, followed by its number in it.
	Namespace  string `json:"namespace"`
	Repository string `json:"repository"`
	Number     int64  `json:"number"`
	// Since is when it was first heard of.
	Since time.Time `json:"since,omitzero"`
	// Cause is the id of the newest event, Wanted when it came; zero when it is done with. NotBefore puts that off, Tries counts.
	Cause     string    `json:"cause,omitempty"`
	Wanted    time.Time `json:"wanted,omitzero"`
	NotBefore time.Time `json:"notBefore,omitzero"`
	Tries     int       `json:"tries,omitempty"`
	// HostAfter is when the host wants to be asked again, where it has named a time.
	HostAfter time.Time `json:"hostAfter,omitzero"`
	// URL is the page of the pull request, Fork reports whether it is from another repository.
	URL  string `json:"url,omitempty"`
	Fork bool   `json:"fork,omitempty"`
	// Head is the last previewed commit and Base its target branch. Fetched are the commits fetched for it.
	Head    string   `json:"head,omitempty"`
	Base    string   `json:"base,omitempty"`
	Fetched []string `json:"fetched,omitempty"`
	// Pending is the commit whose status reports a preview in progress, for the branch PendingTo.
	Pending   string `json:"pending,omitempty"`
	PendingTo string `json:"pendingTo,omitempty"`
	// Comment is the one on the pull request.
	Comment pullrequest.Written `json:"comment,omitzero"`
	// Failed reports whether a render would fail, or the preview has failed; Message has details. Ended is the time
	// of that.
	Failed  bool      `json:"failed,omitempty"`
	Message string    `json:"message,omitempty"`
	Ended   time.Time `json:"ended,omitzero"`
}

// States of a Preview.
const (
	PreviewWaiting   = "Waiting"
	PreviewSucceeded = "Succeeded"
	PreviewFailed    = "Failed"
)

// State returns its phase: a preview that waits, or is in progress, has not been reported since the last event.
func (p *Preview) State() string {
	switch {
	case !p.Wanted.IsZero():
		return PreviewWaiting
	case p.Failed:
		return PreviewFailed
	}
	return PreviewSucceeded
}

// PreviewGroup is what previews have in common that go to one repository and are for the pipelines of one namespace.
func PreviewGroup(namespace, repository string) string {
	sum := sha256.Sum256([]byte(giturl.Normal(repository)))
	return namespace + "/" + hex.EncodeToString(sum[:8]) + "/"
}

// Key is what a preview is stored by.
func (p *Preview) Key() string {
	return PreviewGroup(p.Namespace, p.Repository) + fmt.Sprint(p.Number)
}

// Previews lists the keys of the previews that are known, sorted.
func (s *Store) Previews() []string {
	return s.namesBelow(previewPrefix)
}

// Preview returns a preview as this process knows it, or nil if none exists.
func (s *Store) Preview(key string) *Preview {
	data, _, ok := s.table.Get(previewPrefix + key)
	if !ok {
		return nil
	}
	p, err := decodeJSON[Preview](data)
	if err != nil {
		return nil
	}
	return p
}

// LoadPreview returns a preview as stored in the queue, or nil if none exists.
func (s *Store) LoadPreview(ctx context.Context, key string) (*Preview, error) {
	data, _, ok, err := s.q.Load(ctx, previewPrefix+key)
	if err != nil || !ok {
		return nil, err
	}
	p, err := decodeJSON[Preview](data)
	if err != nil {
		return nil, nil //nolint:nilerr,nilnil // of another version
	}
	return p, nil
}

// ChangePreview changes the stored preview, which is nil if none is stored. change returns the new value, or nil to
// remove it.
func (s *Store) ChangePreview(ctx context.Context, key string, change func(*Preview) *Preview) error {
	data, revision, ok, err := s.q.Load(ctx, previewPrefix+key)
	if err != nil {
		return err
	}
	var was *Preview
	if ok {
		if was, err = decodeJSON[Preview](data); err != nil {
			was = nil // of another version
		}
	}
	now := change(was)
	if now == nil {
		return s.q.ForgetAfter(ctx, previewPrefix+key, revision)
	}
	if data, err = encodeJSON(now); err != nil {
		return fmt.Errorf("storing the preview %s: %w", key, err)
	}
	_, err = s.q.SaveAfter(ctx, previewPrefix+key, data, revision)
	return err
}
