// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// The user that the images run as.
const (
	imageUser     = 65534
	imageUserName = "nobody"
)

// image is one for several processors.
type image struct {
	product product
	name    string // with the registry, without a tag
	file    string // the archive of its layout
	index   v1.ImageIndex
	digest  v1.Hash
	builds  []build
}

// imageReferenceWithDigest names the image by tag and digest.
func (i image) imageReferenceWithDigest(version string) string {
	return i.name + ":" + version + "@" + i.digest.String()
}

// imageConfigs are the configurations by product, the same as in the Dockerfile.
var imageConfigs = map[string]v1.Config{
	"prerig-fn": {User: imageUserName, Entrypoint: []string{"/usr/local/bin/prerig-fn"}, WorkingDir: "/"},
	"prerig": {
		// By number, since Kubernetes cannot infer from a name that it is not root.
		User: "65534:65534", Env: []string{"PATH=/usr/local/bin"}, WorkingDir: "/etc/prerig",
		Entrypoint:   []string{"/usr/local/bin/prerig"},
		Cmd:          []string{"serve", "--state", "/var/lib/prerig", "--listen", ":8080"},
		ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	},
}

// makeImages makes the images for Linux as archives of OCI layouts.
func (r *release) makeImages(context.Context) error {
	for _, p := range products {
		one := image{product: p, name: r.Images + "/" + p.name, builds: r.buildsOf(p.name, "linux")}
		if len(one.builds) == 0 {
			continue
		}
		one.file = fmt.Sprintf("%s_%s_image.tar", p.name, r.Version)
		one.index = mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
		for _, b := range one.builds {
			made, err := r.makeImage(b)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, b.platform, err)
			}
			one.index = mutate.AppendManifests(one.index, mutate.IndexAddendum{
				Add: made, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.platform.OS, Architecture: b.platform.Arch}},
			})
		}
		one.index = mutate.Annotations(one.index, imageLabels(r.Version, r.revision, p)).(v1.ImageIndex)
		var err error
		if one.digest, err = one.index.Digest(); err != nil {
			return err
		}
		if err := r.writeLayout(one.file, one.name+":"+r.Version, one.index); err != nil {
			return err
		}
		r.logf("  %s", one.imageReferenceWithDigest(r.Version))
		if r.signer != nil {
			if err := r.signImage(one); err != nil {
				return err
			}
		}
		r.published = append(r.published, one)
	}
	return nil
}

func imageLabels(version string, revision *revision, p product) map[string]string {
	const prefix, home = "org.opencontainers.image.", "https://github.com/prerig/prerig"
	return map[string]string{
		prefix + "title": p.name, prefix + "description": p.summary, prefix + "url": home, prefix + "source": home,
		prefix + "documentation": home + "#readme", prefix + "vendor": "The Prerig Authors",
		prefix + "licenses": "Apache-2.0",
		prefix + "version":  version, prefix + "revision": revision.commit, prefix + "created": revision.date(),
	}
}

// makeImage makes the image of a build, in one layer.
func (r *release) makeImage(b build) (v1.Image, error) {
	entries, err := r.imageFiles(b)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	if err := writeTar(&files, withDirectories(entries), r.revision.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	made := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made, err = mutate.Append(made, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: r.revision.time}, CreatedBy: "make release"}})
	if err != nil {
		return nil, err
	}
	config, err := made.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.platform.OS, b.platform.Arch, v1.Time{Time: r.revision.time}
	config.Config = imageConfigs[b.product.name]
	config.Config.Labels = imageLabels(r.Version, r.revision, b.product)
	return mutate.ConfigFile(made, config)
}

// imageFiles are the same as make dist-image and make dist-image-pipeline lay out, but for the certificates: those of
// this machine would be others elsewhere.
func (r *release) imageFiles(b build) ([]entry, error) {
	license, err := os.ReadFile(filepath.Join(r.Root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	others, err := os.ReadFile(licenseFilePath(r.work, b.product, b.platform))
	if err != nil {
		return nil, err
	}
	entries := []entry{
		{name: "etc/passwd", mode: modeFile, content: []byte(imageUserName + ":x:65534:65534:" + imageUserName + ":/:/sbin/nologin\n")},
		{name: "etc/group", mode: modeFile, content: []byte(imageUserName + ":x:65534:\n")},
		{name: "usr/share/licenses/prerig/LICENSE", mode: modeFile, content: license},
		{name: "usr/share/licenses/prerig/THIRD-PARTY", mode: modeFile, content: others},
	}
	for _, one := range b.binaries {
		text, err := os.ReadFile(one.file)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: "usr/local/bin/" + one.executableFileName(), mode: modeProgram, content: text})
	}
	if b.product.name == command.name {
		entries = append(entries,
			entry{name: "etc/prerig/", mode: modeProgram},
			entry{name: "etc/ssl/certs/ca-certificates.crt", mode: modeFile, content: mozillaRootCertificates()},
			// An empty volume mounted at this path belongs to the user too.
			entry{name: "var/lib/prerig/", mode: modeProgram, owner: imageUser},
		)
	}
	return entries, nil
}

// mozillaRootCertificates returns those of the authorities that Mozilla trusts, in their release that go.mod names.
// Those trusted only for what they signed until a date are left out, since a file cannot express that.
func mozillaRootCertificates() []byte {
	var text bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			_ = pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}) // writing to a buffer never fails
		}
	}
	return text.Bytes()
}

// writeLayout writes an OCI layout with one image or index as an archive, which docker and podman load, and skopeo
// copies.
func (r *release) writeLayout(file, name string, content mutate.Appendable) error {
	dir, err := os.MkdirTemp(r.work, "layout-")
	if err != nil {
		return err
	}
	path, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	named := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name, "io.containerd.image.name": name})
	switch content := content.(type) {
	case v1.ImageIndex:
		err = path.AppendIndex(content, named)
	case v1.Image:
		err = path.AppendImage(content, named)
	}
	if err != nil {
		return err
	}
	entries, err := readEntries(dir, "")
	if err != nil {
		return err
	}
	var text bytes.Buffer
	if err := writeTar(&text, withDirectories(entries), r.revision.time); err != nil {
		return err
	}
	return r.writeReleaseFile(file, text.Bytes())
}
