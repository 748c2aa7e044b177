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

	"github.com/prerig/prerig/fn/manifest"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Managed reports whether Prerig has written a branch, so that it may write it again.
func Managed(branch tree.Reader) (bool, error) {
	_, err := branch.Lookup(markerFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// pullArtifact returns the files of an artifact, and none where the registry has no such artifact. It is for as many
// bytes as a registry may answer, so that no more than one file at a time is in memory.
func pullArtifact(ctx context.Context, registry *oci.Registry, ref oci.Ref) (*tree.View, error) {
	limits := oci.DefaultLimits()
	limits.Dir = registry.Dir
	artifact, err := registry.Pull(ctx, ref, oci.LayerMediaType, limits)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return tree.NewView(tree.NewBuilder(tree.Limits{}).Build(), tree.Limits{}), nil
	}
	if err != nil {
		return nil, err
	}
	return tree.NewView(artifact.Tree, tree.Limits{}), nil
}

// visitArtifact calls visit with each file of an artifact.
func visitArtifact(view *tree.View, visit func(name string, content []byte)) error {
	if err := readBelow(view, ".", visit); err != nil {
		return fmt.Errorf("reading what is published: %w", err)
	}
	return nil
}

// readBelow reads the files below a directory. Links are left out: Prerig writes none, and they could lead round in a
// circle.
func readBelow(view *tree.View, dir string, visit func(name string, content []byte)) error {
	entries, err := view.List(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if at, err := view.Lookup(e.Path); err != nil || at.Path != e.Path {
			continue
		}
		if e.Dir {
			if err := readBelow(view, e.Path, visit); err != nil {
				return err
			}
			continue
		}
		content, err := view.ReadOnce(e.Path)
		if err != nil {
			return err
		}
		visit(e.Path, content)
	}
	return nil
}

// Holding is what a place holds of a pipeline.
type Holding struct {
	// Files by their paths on the branch, or in the artifact.
	Files map[string][]byte
	// Objects are their identities, as they were recorded when the files were written.
	Objects []string
	// Refused is the reason why publishing would be rejected regardless of the content, or nil if it would
	// not.
	Refused error
}

// Gate asks a gate as publishing would. An object that only moves to another file is not deleted.
func (h Holding) Gate(gate func(published int, deleted []string) error, objects []render.Object) error {
	return gate(len(h.Objects), deletedObjects(h.Objects, objectIDs(objects)))
}

// Published returns what a branch holds of a pipeline: the files that it owns, wherever they are. A branch that the
// pipeline was never published to holds no files.
func Published(branch tree.Reader, pipeline string) (Holding, error) {
	held := Holding{Files: map[string][]byte{}}
	text, err := branch.Read(recordFile(pipeline))
	if errors.Is(err, fs.ErrNotExist) {
		return held, nil
	}
	if err != nil {
		return held, fmt.Errorf("reading what is published: %w", err)
	}
	var record ownershipRecord
	if err := json.Unmarshal(text, &record); err != nil {
		return held, fmt.Errorf("reading %s of the branch: %w", recordFile(pipeline), err)
	}
	held.Objects = record.Objects
	for _, name := range record.Files {
		content, err := branch.Read(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed by others
		}
		if err != nil {
			return held, fmt.Errorf("reading what is published: %w", err)
		}
		held.Files[name] = content
	}
	return held, nil
}

// PublishedArtifact returns what an artifact's tag holds. A tag that does not exist holds no files.
func PublishedArtifact(ctx context.Context, registry *oci.Registry, tag string) (Holding, error) {
	image, objects, err := (&Artifact{Registry: registry}).currentImage(ctx, tag)
	if err != nil || image == nil {
		return Holding{}, err
	}
	digest, err := image.Digest()
	if err != nil {
		return Holding{}, err
	}
	files := map[string][]byte{}
	view, err := pullArtifact(ctx, registry, oci.Ref{Digest: digest.String()})
	if err == nil {
		err = visitArtifact(view, func(name string, content []byte) { files[name] = content })
	}
	if err == nil && objects == nil {
		objects = objectIdentities(files)
	}
	return Holding{Files: files, Objects: objects}, err
}

// objectIdentities reads those of the objects in files as Files writes them, sorted. Files of others are left out, as
// they cannot be read for what they are not.
func objectIdentities(files map[string][]byte) []string {
	var objects []render.Object
	for name, content := range files {
		objects = append(objects, identitiesIn(name, content)...)
	}
	return objectIDs(objects)
}

// identitiesIn returns objects in one file, of which only the identity is known.
func identitiesIn(name string, content []byte) (objects []render.Object) {
	parsed, err := manifest.Parse(name, content)
	if err != nil {
		return nil
	}
	for _, doc := range parsed.Docs {
		if object, ok := identityOf(doc); ok {
			objects = append(objects, object)
		}
	}
	return objects
}

// identityOf returns the identity of a document, and false if it is no object.
func identityOf(doc *manifest.Document) (object render.Object, ok bool) {
	value, err := doc.Object()
	if err != nil {
		return object, false
	}
	metadata, _ := value["metadata"].(map[string]any)
	object.APIVersion, _ = value["apiVersion"].(string)
	object.Kind, _ = value["kind"].(string)
	object.Name, _ = metadata["name"].(string)
	object.Namespace, _ = metadata["namespace"].(string)
	return object, true
}
