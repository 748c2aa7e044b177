// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// pushReleaseImages sends the images of a release, and their signatures, to the registry that they are named after.
// Credentials are docker's.
func pushReleaseImages(ctx context.Context, o Options, log io.Writer) error {
	archives, err := filepath.Glob(filepath.Join(o.Out, "*_image*.tar"))
	if err != nil {
		return err
	}
	if len(archives) == 0 {
		return fmt.Errorf("pushing the images: there are none in %s; make release makes them", o.Out)
	}
	// Signatures come after what they sign; the order of the others does not matter.
	slices.SortFunc(archives, func(a, b string) int {
		return boolOrder(!strings.HasSuffix(a, ".sig.tar"), !strings.HasSuffix(b, ".sig.tar"))
	})
	for _, archive := range archives {
		pushed, err := pushArchive(ctx, archive, o.Images)
		if err != nil {
			return fmt.Errorf("pushing %s: %w", filepath.Base(archive), err)
		}
		fmt.Fprintln(log, pushed)
	}
	return nil
}

func pushArchive(ctx context.Context, archive, images string) (string, error) {
	dir, err := os.MkdirTemp("", "prerig-push-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := unpackImageLayout(archive, dir); err != nil {
		return "", err
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	if len(manifest.Manifests) != 1 {
		return "", fmt.Errorf("it has %d images, and should have one", len(manifest.Manifests))
	}
	one := manifest.Manifests[0]
	to, err := name.ParseReference(one.Annotations["org.opencontainers.image.ref.name"])
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(to.Context().Name(), images+"/") {
		return "", fmt.Errorf("it is named %s, and RELEASE_IMAGES is %s: make the release with the same", to, images)
	}
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	if one.MediaType.IsIndex() {
		var content v1.ImageIndex
		if content, err = index.ImageIndex(one.Digest); err == nil {
			err = remote.WriteIndex(to, content, options...)
		}
	} else {
		var content v1.Image
		if content, err = index.Image(one.Digest); err == nil {
			err = remote.Write(to, content, options...)
		}
	}
	return to.String() + "@" + one.Digest.String(), err
}

// unpackImageLayout unpacks an archive that writeLayout has made.
func unpackImageLayout(archive, dir string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for files := tar.NewReader(file); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag == tar.TypeDir {
			if err := root.MkdirAll(strings.TrimSuffix(header.Name, "/"), modeProgram); err != nil {
				return err
			}
			continue
		}
		into, err := root.Create(header.Name)
		if err != nil {
			return err
		}
		_, err = io.Copy(into, files) // it is ours, and as large as the image
		if closed := into.Close(); err != nil || closed != nil {
			return errors.Join(err, closed)
		}
	}
}
