// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path"
	"sort"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// Artifact is an OCI artifact that Flux' OCIRepository pulls.
type Artifact struct {
	// Registry is the repository.
	Registry *oci.Registry
	// Tags that are set, at least one. The first is the one whose content is compared.
	Tags []string
	// Signer signs what is published; nil leaves it unsigned.
	Signer *ArtifactSigner
	// Attester signs a statement about what is published; nil makes none.
	Attester *ArtifactSigner
}

// ArtifactResult is what publishing an artifact gave.
type ArtifactResult struct {
	// Digest is the digest of the manifest at the first tag, Before the previous one, or "" if none existed.
	Digest, Before string
	// Changed reports whether anything was pushed.
	Changed bool
}

// Publish moves the tags to what the change wants. The files form one layer, whose digest depends only on their
// paths and contents. If the first tag already has this layer, Publish pushes no image, so that a source commit
// without an effect creates no new digest; missing or diverging tags are set to the existing image.
func (a *Artifact) Publish(ctx context.Context, c Change) (ArtifactResult, error) {
	counted, release := a.Registry.Count(ctx) // a manifest is kept until the end
	defer release()
	a = &Artifact{Registry: counted, Tags: a.Tags, Signer: a.Signer, Attester: a.Attester}
	layer, err := archiveLayer(c.Files)
	if err != nil {
		return ArtifactResult{}, err
	}
	first := a.Registry.Repository.Tag(a.Tags[0])
	now, objects, err := a.currentImage(ctx, first.TagStr())
	if isRefusal(err) {
		now, objects, err = a.currentImageForPush(ctx, first.TagStr())
	}
	if err != nil {
		return ArtifactResult{}, fmt.Errorf("publishing %s: %w", first, err)
	}
	digest, err := layer.Digest()
	if err != nil {
		return ArtifactResult{}, err
	}
	image := now
	if now == nil || layerOf(now) != digest.String() {
		if c.Gate != nil {
			if objects == nil {
				if objects, err = a.objectsIn(ctx, now); err != nil {
					return ArtifactResult{}, fmt.Errorf("publishing %s: %w", first, err)
				}
			}
			if err := c.Gate(len(objects), deletedObjects(objects, objectIDs(c.Objects))); err != nil {
				return ArtifactResult{}, err
			}
		}
		if image, err = artifactImage(layer, c); err != nil {
			return ArtifactResult{}, err
		}
	}
	return a.setTags(ctx, image, now, c)
}

// setTags sets every tag that does not point to the image. The image is uploaded first, signed and attested if required, so
// that clients that verify signatures never find it unsigned and setting a tag is quick.
func (a *Artifact) setTags(ctx context.Context, image, now v1.Image, c Change) (ArtifactResult, error) {
	want, err := image.Digest()
	if err != nil {
		return ArtifactResult{}, err
	}
	result := ArtifactResult{Digest: want.String()}
	if now != nil {
		before, err := now.Digest()
		if err != nil {
			return ArtifactResult{}, err
		}
		result.Before = before.String()
	}
	if image != now {
		at := a.Registry.Repository.Digest(want.String())
		if err := remote.Write(at, image, a.Registry.Options(remote.WithContext(ctx))...); err != nil {
			return result, fmt.Errorf("publishing %s: %w", at, err)
		}
	}
	if a.Signer != nil {
		if result.Changed, err = a.signDigest(ctx, want); err != nil {
			return result, err
		}
	}
	if a.Attester != nil {
		attested, err := a.attestImage(ctx, image, c)
		if err != nil {
			return result, err
		}
		result.Changed = result.Changed || attested
	}
	for i, tag := range a.Tags {
		if i == 0 && image == now {
			continue
		}
		at := a.Registry.Repository.Tag(tag)
		if head, err := remote.Head(at, a.Registry.Options(remote.WithContext(ctx))...); err == nil && head.Digest == want {
			continue
		}
		// Setting a tag is not a compare-and-swap: an overdue run must notice before it writes.
		if err := watchdog.Check(ctx); err != nil {
			return result, err
		}
		if c.Still != nil {
			if err := c.Still(); err != nil {
				return result, fmt.Errorf("publishing %s: %w", at, err)
			}
		}
		if err := remote.Put(at, image, a.Registry.Options(remote.WithContext(ctx))...); err != nil {
			return result, fmt.Errorf("publishing %s: %w", at, err)
		}
		result.Changed = true
	}
	return result, nil
}

// annotationObjects holds the identities of the objects, for the deletion gate. It is omitted if they are many: the
// files are read instead.
const annotationObjects = "prerig.dev/objects"

// annotationMounted names the further sources, one a line: mount path, URL and revision.
const annotationMounted = "prerig.dev/mounted-sources"

// annotationSnapshots names the policies that were completed from a cluster by their digests, one a line.
const annotationSnapshots = "prerig.dev/cluster-snapshots"

const maxAnnotation = 256 << 10

// currentImage returns the artifact at a tag, or nil if none exists, and the objects that it claims to hold.
func (a *Artifact) currentImage(ctx context.Context, tag string) (v1.Image, []string, error) {
	image, err := remote.Image(a.Registry.Repository.Tag(tag), a.Registry.Options(remote.WithContext(ctx))...)
	var answer *transport.Error
	if errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, nil, err
	}
	var objects []string
	if list := manifest.Annotations[annotationObjects]; list != "" && len(list) <= maxAnnotation { // or it is not ours
		objects = strings.Split(list, "\n")
	}
	return image, objects, nil
}

// currentImageForPush is currentImage with push access. Without it, registries do not reveal whether a repository
// is missing or must not be read: Docker Hub denies reads in both cases, and Quay creates the repository only on a
// login to push.
func (a *Artifact) currentImageForPush(ctx context.Context, tag string) (v1.Image, []string, error) {
	registry, err := a.Registry.ForPush(ctx)
	if err != nil {
		return nil, nil, err
	}
	return (&Artifact{Registry: registry}).currentImage(ctx, tag)
}

// isRefusal reports whether an error is a registry's word that something is not allowed with these credentials.
func isRefusal(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && (answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden)
}

// objectsIn returns the identities of the objects in an artifact's files, or none if the artifact does not exist or
// is not ours.
func (a *Artifact) objectsIn(ctx context.Context, image v1.Image) ([]string, error) {
	if image == nil {
		return nil, nil
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Layers) != 1 || string(manifest.Layers[0].MediaType) != oci.LayerMediaType {
		return nil, nil
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	view, err := pullArtifact(ctx, a.Registry, oci.Ref{Digest: digest.String()})
	if err != nil {
		return nil, err
	}
	var objects []render.Object
	err = visitArtifact(view, func(name string, content []byte) { objects = append(objects, identitiesIn(name, content)...) })
	return objectIDs(objects), err
}

func layerOf(image v1.Image) string {
	manifest, err := image.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		return ""
	}
	return manifest.Layers[0].Digest.String()
}

// artifactImage is the manifest as Flux reads it (fluxcd/pkg/oci): its config type, one layer, three annotations. The
// time is that of the source, as it is part of the digest.
func artifactImage(layer v1.Layer, c Change) (v1.Image, error) {
	created := c.Origin.Date.UTC().Truncate(time.Second)
	if c.Origin.Date.IsZero() {
		created = time.Unix(0, 0).UTC()
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.MediaType(oci.LayerMediaType)})
	if err != nil {
		return nil, fmt.Errorf("making the artifact: %w", err)
	}
	if image, err = mutate.CreatedAt(image, v1.Time{Time: created}); err != nil {
		return nil, fmt.Errorf("making the artifact: %w", err)
	}
	// Last, as the library leaves the content of a config alone that is not an image's.
	image = mutate.ConfigMediaType(image, types.MediaType(oci.ConfigMediaType))
	annotations := map[string]string{
		oci.AnnotationCreated: created.Format(time.RFC3339), oci.AnnotationSource: c.Origin.URL,
		oci.AnnotationRevision: c.Origin.Revision,
	}
	if len(c.Origin.Mounted) > 0 {
		lines := make([]string, len(c.Origin.Mounted))
		for i, one := range c.Origin.Mounted {
			lines[i] = mountedText(one)
		}
		annotations[annotationMounted] = strings.Join(lines, "\n")
	}
	if len(c.Snapshots) > 0 {
		annotations[annotationSnapshots] = strings.Join(c.Snapshots, "\n")
	}
	if list := strings.Join(objectIDs(c.Objects), "\n"); list != "" && len(list) <= maxAnnotation {
		annotations[annotationObjects] = list
	}
	annotated, ok := mutate.Annotations(image, annotations).(v1.Image)
	if !ok {
		return nil, errors.New("making the artifact: annotations gave no image")
	}
	return annotated, nil
}

// archiveLayer packs files into a layer as archive does.
func archiveLayer(files map[string][]byte) (v1.Layer, error) {
	packed, err := packFilesDeterministically(files)
	if err != nil {
		return nil, err
	}
	return static.NewLayer(packed, types.MediaType(oci.LayerMediaType)), nil
}

// packFilesDeterministically packs files, the same bytes for the same files: no owners, no times, sorted, directories
// first.
func packFilesDeterministically(files map[string][]byte) ([]byte, error) {
	names := make([]string, 0, len(files))
	dirs := map[string]bool{}
	for name := range files {
		names = append(names, name)
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for dir := range dirs {
		names = append(names, dir+"/")
	}
	sort.Strings(names)
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	w := tar.NewWriter(zipped)
	for _, name := range names {
		header := &tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(files[name])),
			Format: tar.FormatPAX}
		if strings.HasSuffix(name, "/") {
			header.Typeflag, header.Mode = tar.TypeDir, 0o755
		}
		if err := w.WriteHeader(header); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, fmt.Errorf("packing %s: %w", name, err)
		}
	}
	if err := errors.Join(w.Close(), zipped.Close()); err != nil {
		return nil, fmt.Errorf("packing the artifact: %w", err)
	}
	return out.Bytes(), nil
}
