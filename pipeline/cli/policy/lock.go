// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/prerig/prerig/fn"
	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/cli/files"
)

// largestLock is the most that is read of a file that may hold an ImageLock, in bytes.
const largestLock = 16 << 20

// FindLock searches for the ImageLock of a name in the directory that the policy is in, among the .yaml, .yml and
// .json files. ok is false if none exists, or if the policy is in no directory: it comes with Prerig, or through a
// pipe. Two locks of the name are an error, because one of them would be used by accident.
func (n Named) FindLock(name string) (lock fn.Item, ok bool, err error) {
	if info, err := os.Stat(n.Origin); err != nil || !info.Mode().IsRegular() {
		return lock, false, nil
	}
	dir := filepath.Dir(n.Origin)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return lock, false, fmt.Errorf("searching for the ImageLock %s next to %s: %w", name, n.Origin, err)
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := os.Stat(path) // a file behind a link counts
		if err != nil || !info.Mode().IsRegular() || info.Size() > largestLock || !files.Manifest(path) {
			continue
		}
		found, err := readLocks(path, name)
		if err != nil {
			return lock, false, err
		}
		for _, d := range found {
			if ok {
				return lock, false, fmt.Errorf("searching for the ImageLock %s next to %s: it is in %s and in %s; remove one of them", name, n.Origin, lock.Path, path)
			}
			lock, ok = d, true
		}
	}
	return lock, ok, nil
}

// readLocks returns the ImageLocks of a name in a file. A file that cannot be read and does not mention an
// ImageLock is unrelated.
func readLocks(path, name string) ([]fn.Item, error) {
	data, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(data, []byte(v1alpha1.KindImageLock)) {
		return nil, nil
	}
	file, err := manifest.Parse(path, data)
	if err != nil {
		return nil, err
	}
	var found []fn.Item
	var errs []error
	for i, d := range file.Docs {
		if d.Empty() || !d.Contains(v1alpha1.KindImageLock) {
			continue
		}
		obj, err := d.Object()
		errs = append(errs, err)
		version, _ := obj["apiVersion"].(string)
		kind, _ := obj["kind"].(string)
		meta, _ := obj["metadata"].(map[string]any)
		if v1alpha1.IsImageLock(version, kind) && meta["name"] == name {
			found = append(found, fn.Item{Doc: d, Path: path, Index: i})
		}
	}
	return found, errors.Join(errs...)
}
