// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// State is what became of a locked image.
type State string

// The states of a locked image.
const (
	// Current means that the tag still names the locked digest.
	Current State = "current"
	// Moved means that the tag names another digest now; the locked one still exists.
	Moved State = "moved"
	// Deleted means that the registry no longer has such a tag; the locked digest still exists.
	Deleted State = "deleted"
	// Lost means that the registry does not have the locked digest any more: pods that use it cannot start on a new
	// node.
	Lost State = "lost"
	// Unsigned means that Options.Verify requires a signature of the locked digest, and that none by one of its
	// keys exists. It has precedence over all other states of an existing tag.
	Unsigned State = "unsigned"
	// Unknown means that the registry could not be asked.
	Unknown State = "unknown"
)

// Status is the state of one locked image.
type Status struct {
	Image string `json:"image"`
	// Locked is the digest in the lock, and Now the one that the tag names; empty if none exists.
	Locked string `json:"locked"`
	Now    string `json:"now,omitempty"`
	State  State  `json:"state"`
	// Signed reports whether the locked digest is signed as Options.Verify requires; also false if the image needs
	// no signature.
	Signed bool `json:"signed,omitempty"`
	// Message has details if the state is Unsigned or Unknown.
	Message string `json:"message,omitempty"`
}

// Verify checks for every image of a lock whether its tag still names the locked digest, and verifies the
// signatures of that digest as Options.Verify requires. The statuses are in the order of the images' names, and
// complete: an image that could not be checked is Unknown. The error is always the context's.
func Verify(ctx context.Context, lock *v1alpha1.ImageLock, o Options) ([]Status, error) {
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	byImage := map[string]string{}
	var images []string
	for _, locked := range lock.Spec.Images {
		byImage[locked.Image] = locked.Digest
		images = append(images, locked.Image)
	}
	var mu sync.Mutex
	var out []Status
	err = c.forEachImage(ctx, sortUnique(images), func(ctx context.Context, image string) error {
		s := c.signedStatus(ctx, c.imageStatus(ctx, image, byImage[image]))
		mu.Lock()
		out = append(out, s)
		mu.Unlock()
		if s.State == Unknown {
			return fmt.Errorf("checking %s: %s", image, s.Message)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, err
	}
	if o.Unused != nil {
		for _, pattern := range c.rules.unmatchedPatterns() {
			o.Unused(pattern)
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Image < out[j].Image })
	return out, nil
}

// imageStatus asks for the tag, and for the locked digest where the tag names another. It sends HEAD requests, which
// registries do not count as pulls.
func (c *registryClient) imageStatus(ctx context.Context, image, locked string) Status {
	s := Status{Image: image, Locked: locked}
	ref, err := parseTag(image)
	if err != nil {
		return s.asUnknown(err)
	}
	now, err := c.resolveDigest(ctx, ref)
	if err != nil && !notFound(err) {
		return s.asUnknown(explainRegistryError(ref, err))
	}
	s.Now = now
	if now == locked {
		s.State = Current
		return s
	}
	_, err = c.resolveDigest(ctx, ref.Context().Digest(locked))
	switch {
	case notFound(err):
		s.State = Lost
	case err != nil:
		return s.asUnknown(explainRegistryError(ref, err))
	case now == "":
		s.State = Deleted
	default:
		s.State = Moved
	}
	return s
}

// signedStatus verifies the signatures of the locked digest if it still exists.
func (c *registryClient) signedStatus(ctx context.Context, s Status) Status {
	if s.State == Lost || s.State == Unknown {
		return s
	}
	ref, err := parseTag(s.Image)
	if err != nil {
		return s.asUnknown(err)
	}
	asked, err := c.verifySignatures(ctx, ref, s.Locked)
	var unsigned *unsignedError
	switch {
	case errors.As(err, &unsigned):
		s.State, s.Message = Unsigned, err.Error()
	case err != nil:
		return s.asUnknown(err)
	default:
		s.Signed = asked
	}
	return s
}

func (s Status) asUnknown(err error) Status {
	s.State, s.Message = Unknown, err.Error()
	return s
}

// resolveDigest asks what a reference names; with GET where a registry does not answer HEAD with a digest.
func (c *registryClient) resolveDigest(ctx context.Context, ref name.Reference) (string, error) {
	desc, err := c.puller.Head(ctx, ref)
	if err == nil {
		return desc.Digest.String(), nil
	}
	if terr := transportError(err); terr != nil && terr.StatusCode == 404 {
		return "", err
	}
	full, getErr := c.puller.Get(ctx, ref)
	if getErr != nil {
		return "", getErr
	}
	return full.Digest.String(), nil
}
