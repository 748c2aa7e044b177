// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/cli/files"
	"github.com/prerig/prerig/pipeline/cli/images"
	"github.com/prerig/prerig/pipeline/cli/lock"
	"github.com/prerig/prerig/pipeline/cli/policy"
)

// maxImageLock bounds a file that may be an ImageLock, in bytes.
const maxImageLock = 16 << 20

// imageLocks returns the ImageLocks in the directories of the sources, by their files. A file has nothing beside the
// lock, as prerig images pin writes it.
func (c *lockRun) imageLocks() (map[string]*v1alpha1.ImageLock, error) {
	out := map[string]*v1alpha1.ImageLock{}
	slices.Sort(c.directories)
	for _, dir := range slices.Compact(c.directories) {
		err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && at != dir && strings.HasPrefix(entry.Name(), "."):
				return filepath.SkipDir
			case !entry.Type().IsRegular() || !manifest.IsFileName(at):
				return nil
			}
			if info, err := entry.Info(); err != nil || info.Size() > maxImageLock {
				return err
			}
			data, err := os.ReadFile(at)
			if err != nil || !strings.Contains(string(data), "kind: "+v1alpha1.KindImageLock) {
				return err
			}
			file, err := manifest.Parse(at, data)
			if err != nil || len(file.Docs) != 1 {
				return nil //nolint:nilerr // templates and others only mention the kind
			}
			if meta, ok := file.Docs[0].Peek(); !ok || !v1alpha1.IsImageLock(meta.APIVersion, meta.Kind) {
				return nil
			}
			found, err := v1alpha1.ParseImageLock(data)
			if err != nil {
				return fmt.Errorf("%s: %w", at, err)
			}
			out[at] = found
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("looking for ImageLocks: %w", err)
		}
	}
	return out, nil
}

// optionsFor returns how the images of a lock are asked for: with the signatures that the nearest policy requires.
func (c *lockRun) optionsFor(at string) (images.Options, error) {
	o := *c.images
	var err error
	o.Verify, err = verificationsFor(nil, nil, []string{at})
	return o, err
}

// renewImages adds the ImageLocks of the sources with the digests that their tags have now.
func (c *lockRun) renewImages(ctx context.Context, outs []files.Output, said *strings.Builder) ([]files.Output, error) {
	locks, err := c.imageLocks()
	if err != nil {
		return nil, err
	}
	for _, at := range slices.Sorted(maps.Keys(locks)) {
		old := locks[at]
		o, err := c.optionsFor(at)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, one := range old.Spec.Images {
			names = append(names, one.Image)
		}
		now, err := images.Pin(ctx, old.Metadata.Name, names, o)
		if err != nil {
			if err := c.passOver(fmt.Errorf("%s: %w", policy.DisplayPath(at), err)); err != nil {
				return nil, err
			}
			continue
		}
		now.Metadata = old.Metadata
		data, err := v1alpha1.MarshalImageLock(now)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(said, "%s: %s locked\n", policy.DisplayPath(at), countWithNoun(len(now.Spec.Images), "image"))
		if outs, err = addChanged(outs, at, data); err != nil {
			return nil, err
		}
	}
	return outs, nil
}

// imageStates are the states of locked images as those of an entry of a lock.
var imageStates = map[images.State]lock.State{
	images.Current: lock.Current, images.Moved: lock.Changed, images.Unsigned: lock.Changed, images.Deleted: lock.Lost,
	images.Lost:    lock.Lost,
	images.Unknown: lock.Unknown,
}

// verifyImages compares the ImageLocks of the sources with the registries.
func (c *lockRun) verifyImages(ctx context.Context) ([]lock.Status, error) {
	locks, err := c.imageLocks()
	if err != nil {
		return nil, err
	}
	var out []lock.Status
	var errs []error
	for _, at := range slices.Sorted(maps.Keys(locks)) {
		o, err := c.optionsFor(at)
		if err != nil {
			return nil, err
		}
		statuses, err := images.Verify(ctx, locks[at], o)
		errs = append(errs, err)
		for _, s := range statuses {
			out = append(out, lock.Status{
				Lock: policy.DisplayPath(at), Image: s.Image, Digest: s.Locked, Now: s.Now, State: imageStates[s.State],
				Message: s.Message,
			})
		}
	}
	return out, errors.Join(errs...)
}
