// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package images

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/fn/api/v1alpha1"
)

// Pin resolves the tag of every image to the digest of the manifest that it names now, and returns the lock. An
// image for several platforms keeps its index, so that every node still finds its own. Images that are already
// named by a digest are checked for their platforms and left out of the lock. Signatures required by Options.Verify
// are verified for all of them. All images have to resolve: otherwise Pin returns an error for each that did not,
// and no lock.
func Pin(ctx context.Context, lockName string, images []string, o Options) (*v1alpha1.ImageLock, error) {
	want, err := parsePlatforms(o.Platforms)
	if err != nil {
		return nil, err
	}
	c, err := newClient(o)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var locked []v1alpha1.LockedImage
	err = c.forEachImage(ctx, sortUnique(images), func(ctx context.Context, image string) error {
		l, err := c.resolveImage(ctx, image, want)
		if err != nil {
			return fmt.Errorf("resolving %s: %w", image, describeUnreachable(err))
		}
		if err := c.verifyImage(ctx, image, l.Digest); err != nil {
			return fmt.Errorf("verifying %s: %w", image, err)
		}
		if Pinned(image) {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		locked = append(locked, l)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, pattern := range c.rules.unmatchedPatterns() {
		if o.Unused != nil {
			o.Unused(pattern)
		}
	}
	return v1alpha1.NewImageLock(lockName, locked), nil
}

// verifyImage verifies the signatures of an image with the digest that was resolved, or with its own.
func (c *registryClient) verifyImage(ctx context.Context, image, digest string) error {
	if len(c.rules.rules) == 0 {
		return nil
	}
	ref, err := parseTag(image)
	if err != nil {
		return err
	}
	if d, ok := ref.(name.Digest); ok {
		digest = d.DigestStr()
	}
	_, err = c.verifySignatures(ctx, ref, digest)
	return err
}

// resolveImage reads the manifest that the image names.
func (c *registryClient) resolveImage(ctx context.Context, image string,
	want []v1.Platform) (v1alpha1.LockedImage, error) {
	if Pinned(image) && len(want) == 0 {
		return v1alpha1.LockedImage{}, nil
	}
	ref, err := parseTag(image)
	if err != nil {
		return v1alpha1.LockedImage{}, err
	}
	desc, err := c.puller.Get(ctx, ref)
	if err != nil {
		return v1alpha1.LockedImage{}, explainRegistryError(ref, err)
	}
	have, err := imagePlatforms(desc, len(want) > 0)
	if err != nil {
		return v1alpha1.LockedImage{}, explainRegistryError(ref, err)
	}
	if missing := missingPlatforms(want, have); len(missing) > 0 {
		return v1alpha1.LockedImage{}, fmt.Errorf("it does not support %s, only %s", strings.Join(missing, ", "), strings.Join(platformNames(have), ", "))
	}
	return v1alpha1.LockedImage{Image: image, Digest: desc.Digest.String(), Platforms: platformNames(have)}, nil
}

// imagePlatforms returns the platforms of the image. An index lists them; for a single image they are in its
// configuration, which is read only if asked is set.
func imagePlatforms(desc *remote.Descriptor, asked bool) ([]v1.Platform, error) {
	if desc.MediaType.IsIndex() {
		index, err := desc.ImageIndex()
		if err != nil {
			return nil, fmt.Errorf("reading the index: %w", err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			return nil, fmt.Errorf("reading the index: %w", err)
		}
		var have []v1.Platform
		for _, m := range manifest.Manifests {
			// Attestations of a build are in the index too, for the platform unknown/unknown.
			if m.Platform != nil && m.Platform.OS != "unknown" && m.Platform.OS != "" {
				have = append(have, *m.Platform)
			}
		}
		return have, nil
	}
	if !asked {
		return nil, nil
	}
	if !desc.MediaType.IsImage() {
		return nil, fmt.Errorf("reading the platform: a manifest of type %s has none", desc.MediaType)
	}
	image, err := desc.Image()
	if err != nil {
		return nil, fmt.Errorf("reading the image: %w", err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the image: %w", err)
	}
	return []v1.Platform{{OS: config.OS, Architecture: config.Architecture, Variant: config.Variant}}, nil
}

func parsePlatforms(list []string) ([]v1.Platform, error) {
	var out []v1.Platform
	for _, s := range list {
		p, err := v1.ParsePlatform(s)
		if err != nil || p.OS == "" || p.Architecture == "" {
			return nil, fmt.Errorf("reading the platform %q: it must be OS/ARCHITECTURE, such as linux/amd64", s)
		}
		out = append(out, *p)
	}
	return out, nil
}

// missingPlatforms returns the wanted platforms that are missing. A wanted platform without a variant matches any.
func missingPlatforms(want, have []v1.Platform) []string {
	var out []string
	for _, w := range want {
		if !slices.ContainsFunc(have, func(h v1.Platform) bool {
			return h.OS == w.OS && h.Architecture == w.Architecture && (w.Variant == "" || h.Variant == w.Variant)
		}) {
			out = append(out, platformText(&w))
		}
	}
	return out
}

// platformNames writes platforms sorted and once each.
func platformNames(list []v1.Platform) []string {
	var out []string
	for _, p := range list {
		out = append(out, platformText(&p))
	}
	sort.Strings(out)
	return slices.Compact(out)
}
