// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fluxoci "github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Flux' own client pulls what Prerig publishes, and Prerig reads what Flux' client publishes.
func TestFlux(t *testing.T) {
	host, r := startRegistry(t)
	published, err := (&publish.Artifact{Registry: r, Tags: []string{"latest"}}).Publish(ctx, change(t, "apps/shop", "shop", configMap("a", "1")))
	if err != nil {
		t.Fatal(err)
	}
	client := fluxoci.NewClient([]crane.Option{crane.Insecure})
	dir := t.TempDir()
	metadata, err := client.Pull(ctx, host+"/rendered/shop:latest", dir)
	if err != nil {
		t.Fatal(err)
	}
	if metadata.Digest != host+"/rendered/shop@"+published.Digest || metadata.Revision != "main@sha1:abc" || metadata.Created != "2026-01-02T03:04:05Z" ||
		metadata.Source != "https://git.example.com/config.git" {
		t.Errorf("got %+v, published %s", metadata, published.Digest)
	}
	if content, err := os.ReadFile(filepath.Join(dir, "shop", "configmap-a.yaml")); err != nil || !strings.Contains(string(content), "name: a") {
		t.Errorf("got %s, %v", content, err)
	}

	checkLayers(t, r)
	// Signatures are no artifacts, for flux list artifacts.
	secret, _ := cosignKey(t)
	signed := &publish.Artifact{Registry: r, Tags: []string{"latest"}, Signer: signer(t, secret)}
	if _, err := signed.Publish(ctx, change(t, "apps/shop", "shop", configMap("a", "1"))); err != nil {
		t.Fatal(err)
	}
	list, err := client.List(ctx, host+"/rendered/shop", fluxoci.ListOptions{})
	if err != nil || len(list) != 1 || list[0].Revision != "main@sha1:abc" {
		t.Errorf("%v, the artifacts are %+v", err, list)
	}

	if _, err := client.Push(ctx, host+"/config/shop:v1", dir, fluxoci.WithPushMetadata(fluxoci.Metadata{Source: "s", Revision: "main@sha1:def", Created: "2026-02-03T04:05:06Z"})); err != nil {
		t.Fatal(err)
	}
	if r, err = oci.Connect("oci://"+host+"/config/shop", nil, true, nil); err != nil {
		t.Fatal(err)
	}
	pulled, err := r.Pull(ctx, oci.Ref{Tag: "v1"}, "", oci.DefaultLimits())
	if err != nil || pulled.Revision != "main@sha1:def" {
		t.Fatalf("%+v, %v", pulled, err)
	}
	if content, err := tree.NewView(pulled.Tree, tree.Limits{}).Read("shop/configmap-a.yaml"); err != nil || !strings.Contains(string(content), "name: a") {
		t.Errorf("got %s, %v", content, err)
	}
}

// checkLayers looks at the types by which spec.layerSelector of an OCIRepository finds the content.
func checkLayers(t *testing.T, r *oci.Registry) {
	t.Helper()
	image, err := remote.Image(r.Repository.Tag("latest"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.MediaType != types.OCIManifestSchema1 || manifest.Config.MediaType != fluxoci.CanonicalConfigMediaType ||
		len(manifest.Layers) != 1 || manifest.Layers[0].MediaType != fluxoci.CanonicalContentMediaType {
		t.Errorf("the manifest is %+v", manifest)
	}
}

// The digest is that of the content and of the source's revision: two registries, two processes or two times make no
// difference to it. What is packed is written down here, so that a change of it is seen: every cluster would pull
// everything again.
func TestDigestIsStable(t *testing.T) {
	digests, contents := map[string]bool{}, map[string]bool{}
	for range 2 {
		_, r := startRegistry(t)
		result, err := (&publish.Artifact{Registry: r, Tags: []string{"v1"}}).Publish(ctx, change(t, "apps/shop", "shop", configMap("a", "1"), configMap("b", "2")))
		if err != nil {
			t.Fatal(err)
		}
		digests[result.Digest] = true
		contents[unpackedDigest(t, r)] = true
	}
	const want = "9c215d40ee0af4b7d389eeda06890f078de3dc7443c5fe8e03a5528a6fb23f4b"
	if len(digests) != 1 || len(contents) != 1 || !contents[want] {
		t.Errorf("the digests are %v, of the contents %v, want %s", digests, contents, want)
	}
}

// unpackedDigest is that of the tar file, which does not depend on how well it was compressed.
func unpackedDigest(t *testing.T, r *oci.Registry) string {
	t.Helper()
	image, err := remote.Image(r.Repository.Tag("v1"))
	if err != nil {
		t.Fatal(err)
	}
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	content, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(sum.Sum(nil))
}
