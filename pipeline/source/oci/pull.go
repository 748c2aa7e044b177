// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Limits bound one artifact.
type Limits struct {
	// LayerBytes is the size of the layer as it is transferred.
	LayerBytes int64
	// Tree bounds what it unpacks to: Entries, FileBytes and TotalBytes.
	Tree tree.Limits
	// Dir is where contents that are too much for memory are put; "" means that all are in memory.
	Dir string
}

// DefaultLimits are for manifests.
func DefaultLimits() Limits {
	return Limits{LayerBytes: 128 << 20, Tree: tree.Limits{Entries: 100_000, FileBytes: 16 << 20, TotalBytes: 256 << 20}}
}

// Ref is what to pull: a tag or a digest.
type Ref struct{ Tag, Digest string }

// Artifact is what was pulled.
type Artifact struct {
	// Digest of the manifest, sha256:….
	Digest string
	// Tag that it was found by, "" for a digest.
	Tag string
	// Created, Source and Revision are set by the publisher.
	Created          time.Time
	Source, Revision string
	// Tree holds its files. It is nil from Resolve.
	Tree *tree.Tree
}

// String is the artifact's revision as Flux writes it: latest@sha256:… or sha256:….
func (a *Artifact) String() string {
	if a.Tag == "" {
		return a.Digest
	}
	return a.Tag + "@" + a.Digest
}

// Resolve asks what a reference points to now, without pulling it.
func (r *Registry) Resolve(ctx context.Context, ref Ref) (*Artifact, error) {
	reference, err := r.parseReference(ref)
	if err != nil {
		return nil, err
	}
	head, err := remote.Head(reference, r.Options(remote.WithContext(ctx))...)
	if err == nil {
		return &Artifact{Digest: head.Digest.String(), Tag: ref.Tag}, nil
	}
	if mayAnswerGet(err) {
		r, release := r.Count(ctx)
		defer release()
		var manifest *remote.Descriptor
		if manifest, err = r.getManifest(ctx, reference); err == nil {
			return &Artifact{Digest: manifest.Digest.String(), Tag: ref.Tag}, nil
		}
	}
	return nil, fmt.Errorf("asking for %s: %w", reference, HideContent(err))
}

// mayAnswerGet reports whether a registry may answer to GET what it has not answered to HEAD. Some registries, and
// proxies in front of them, do not allow HEAD, or leave out required headers. A registry that was not reached, that
// is busy, that has no such artifact or wants other credentials would answer the same again.
func mayAnswerGet(err error) bool {
	var answer *transport.Error
	if errors.As(err, &answer) {
		return !answer.Temporary() && answer.StatusCode != http.StatusUnauthorized &&
			answer.StatusCode != http.StatusNotFound
	}
	var failed *url.Error
	return !errors.As(err, &failed)
}

// getManifest brings what a reference points to, which must be an artifact's manifest.
func (r *Registry) getManifest(ctx context.Context, reference name.Reference) (*remote.Descriptor, error) {
	descriptor, err := remote.Get(reference, r.Options(remote.WithContext(ctx))...)
	if err != nil {
		return nil, err
	}
	if !descriptor.MediaType.IsImage() {
		return nil, fmt.Errorf("it is a %s, not an artifact's manifest", foreign.Text(string(descriptor.MediaType), maxType))
	}
	return descriptor, nil
}

func (r *Registry) parseReference(ref Ref) (name.Reference, error) {
	if ref.Digest != "" {
		if _, err := v1.NewHash(ref.Digest); err != nil {
			return nil, fmt.Errorf("reading the digest: %w", err)
		}
		return r.Repository.Digest(ref.Digest), nil
	}
	return r.Repository.Tag(ref.Tag), nil
}

// Pull pulls an artifact. The layer is the first one that is a compressed archive, or the one of the specified
// media type.
func (r *Registry) Pull(ctx context.Context, ref Ref, mediaType string, limits Limits) (*Artifact, error) {
	reference, err := r.parseReference(ref)
	if err != nil {
		return nil, err
	}
	r, release := r.Count(ctx)
	defer release()
	artifact, err := r.pullArtifact(ctx, reference, mediaType, limits)
	if err != nil {
		return nil, fmt.Errorf("pulling %s: %w", reference, HideContent(err))
	}
	artifact.Tag = ref.Tag
	return artifact, nil
}

func (r *Registry) pullArtifact(ctx context.Context, reference name.Reference, mediaType string,
	limits Limits) (pulled *Artifact, err error) {
	descriptor, err := r.getManifest(ctx, reference)
	if err != nil {
		return nil, err
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(descriptor.Manifest))
	if err != nil {
		return nil, err
	}
	chosen, err := chooseLayer(manifest.Layers, mediaType)
	if err != nil {
		return nil, err
	}
	if chosen.Size > limits.LayerBytes {
		return nil, &tree.LimitError{What: "size of the layer in bytes", Limit: limits.LayerBytes}
	}
	// Not through the image, which would read its configuration whatever size the manifest declares.
	layer, err := remote.Layer(r.Repository.Digest(chosen.Digest.String()), r.Options(remote.WithContext(ctx))...)
	if err != nil {
		return nil, err
	}
	content, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer content.Close()
	builder := tree.NewBuilder(limits.Tree)
	builder.Spill(limits.Dir)
	defer func() {
		if err != nil {
			builder.Discard()
		}
	}()
	lease := budget.Memory(ctx, r.Repository.RegistryStr())
	defer lease.Release()
	// The library reads a blob to its end, whatever its size. One byte more than the manifest declares shows that it
	// is larger.
	blob := &io.LimitedReader{R: content, N: chosen.Size + 1}
	files, err := unpackArchive(ctx, lease, blob, builder, limits.Tree)
	if err != nil {
		return nil, err
	}
	// An archive may end before its layer does, and it is at the layer's end that its digest is compared.
	if _, err := io.Copy(io.Discard, blob); err != nil {
		return nil, err
	}
	if blob.N == 0 {
		return nil, fmt.Errorf("the layer has more than the %d bytes that the manifest declares", chosen.Size)
	}
	artifact := &Artifact{
		Digest: descriptor.Digest.String(), Tree: files,
		Source: manifest.Annotations[AnnotationSource], Revision: manifest.Annotations[AnnotationRevision],
	}
	if created, err := time.Parse(time.RFC3339, manifest.Annotations[AnnotationCreated]); err == nil {
		artifact.Created = created.UTC()
	}
	return artifact, nil
}

func chooseLayer(layers []v1.Descriptor, mediaType string) (v1.Descriptor, error) {
	var types []string
	for _, layer := range layers {
		kind := string(layer.MediaType)
		types = append(types, kind)
		if kind == mediaType || (mediaType == "" && (strings.HasSuffix(kind, "tar+gzip") || strings.HasSuffix(kind, "tar.gzip"))) {
			return layer, nil
		}
	}
	if mediaType == "" {
		mediaType = "a compressed archive"
	}
	return v1.Descriptor{}, fmt.Errorf("it has no layer of type %s, only %s", mediaType, foreign.Names(types, maxTypes, maxType))
}

// maxTypes is how many of the types of layers an error names, and maxType how many bytes of each.
const maxTypes, maxType = 5, 100

// unpackArchive reads an archive. Links may be dangling, and are rejected if following them leaves the tree;
// devices and hard links do not belong in manifests and are rejected. The lease covers the memory of the file being
// read.
func unpackArchive(ctx context.Context, lease *budget.Lease, r io.Reader, builder *tree.Builder,
	limits tree.Limits) (*tree.Tree, error) {
	zipped, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unpacking: %w", err)
	}
	defer zipped.Close()
	archive := tar.NewReader(&boundedReader{r: zipped, left: limits.TotalBytes + int64(limits.Entries)*1024 + 1<<20, limit: limits.TotalBytes})
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return builder.Build(), nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
		if path.IsAbs(header.Name) {
			return nil, fmt.Errorf("unpacking %s: %w", header.Name, tree.ErrOutside)
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		err = addEntry(ctx, lease, builder, header, archive, limits)
		lease.Release()
		if err != nil {
			return nil, fmt.Errorf("unpacking: %w", err)
		}
	}
}

func addEntry(ctx context.Context, lease *budget.Lease, builder *tree.Builder, header *tar.Header, r io.Reader,
	limits tree.Limits) error {
	switch header.Typeflag {
	case tar.TypeDir, tar.TypeXGlobalHeader:
		return nil
	case tar.TypeSymlink:
		return builder.Add(header.Name, tree.Link, []byte(header.Linkname))
	case tar.TypeReg:
		if limits.FileBytes > 0 && header.Size > limits.FileBytes {
			return &tree.LimitError{What: "size of " + header.Name + " in bytes", Limit: limits.FileBytes}
		}
		content, err := budget.ReadAll(ctx, lease, io.LimitReader(r, header.Size), header.Size)
		if err != nil {
			return err
		}
		mode := tree.File
		if header.Mode&0o111 != 0 {
			mode = tree.Executable
		}
		return builder.Add(header.Name, mode, content)
	}
	return fmt.Errorf("%s is neither a file, a directory nor a symbolic link", header.Name)
}

// boundedReader fails if an archive is longer than allowed.
type boundedReader struct {
	r     io.Reader
	left  int64
	limit int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, &tree.LimitError{What: "sum of the sizes of all files in bytes", Limit: b.limit}
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
