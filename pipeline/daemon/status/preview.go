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
	// Namespace of the pipelines, Repository that the pull request goes to, and its number there.
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
	// URL is the page of the pull request, Fork says that it is from another repository.
	URL  string `json:"url,omitempty"`
	Fork bool   `json:"fork,omitempty"`
	// Head is the commit that was previewed last and Base the branch that it goes to. Fetched are commits that were fetched for it.
	Head    string   `json:"head,omitempty"`
	Base    string   `json:"base,omitempty"`
	Fetched []string `json:"fetched,omitempty"`
	// Pending is the commit whose status says that a preview is under way, for the branch PendingTo.
	Pending   string `json:"pending,omitempty"`
	PendingTo string `json:"pendingTo,omitempty"`
	// Comment is the one on the pull request.
	Comment pullrequest.Written `json:"comment,omitzero"`
	// Failed says that something would fail, or the preview has; Message says more. Ended is when.
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

// State says where it is: one that waits, or is under way, was not told of since the last event.
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

// Preview returns a preview as this process knows it, nil where there is none.
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

// LoadPreview returns a preview as the queue has it, nil where there is none.
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

// ChangePreview changes what is stored of a preview, which is nil where nothing is. change returns what is stored then, nil to remove it.
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
