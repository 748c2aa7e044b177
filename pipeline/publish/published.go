// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Managed says whether Prerig has written a branch, so that it may write it again.
func Managed(branch tree.Reader) (bool, error) {
	_, err := branch.Lookup(markerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Pulled gives the files of an artifact, and none where the registry has no such artifact.
func Pulled(ctx context.Context, registry *oci.Registry, ref oci.Ref) (map[string][]byte, error) {
	artifact, err := registry.Pull(ctx, ref, oci.LayerMediaType, oci.DefaultLimits())
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if err := readAll(tree.NewView(artifact.Tree, tree.Limits{}), ".", files); err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	return files, nil
}

// readAll reads the files below a directory. Links are left out: Prerig writes none, and they could lead round in a circle.
func readAll(view tree.Reader, dir string, files map[string][]byte) error {
	entries, err := view.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if at, err := view.Lookup(e.Path); err != nil || at.Path != e.Path {
			continue
		}
		if e.Dir {
			if err := readAll(view, e.Path, files); err != nil {
				return err
			}
			continue
		}
		content, err := view.Read(e.Path)
		if err != nil {
			return err
		}
		files[e.Path] = content
	}
	return nil
}

// Published gives the files of a pipeline that a branch holds, by their paths on the branch. A branch that the pipeline was
// never published to gives none.
func Published(branch tree.Reader, pipeline string) (map[string][]byte, error) {
	files := map[string][]byte{}
	text, err := branch.Read(recordFile(pipeline))
	if errors.Is(err, fs.ErrNotExist) {
		return files, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what is published: %w", err)
	}
	var record owned
	if err := json.Unmarshal(text, &record); err != nil {
		return nil, fmt.Errorf("reading %s of the branch: %w", recordFile(pipeline), err)
	}
	for _, name := range record.Files {
		content, err := branch.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // somebody has removed it
		}
		if err != nil {
			return nil, fmt.Errorf("reading what is published: %w", err)
		}
		files[name] = content
	}
	return files, nil
}
