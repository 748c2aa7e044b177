// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// spilling reaches registries, whose contents it puts on disk.
type spilling struct {
	publish.Repositories
	dir string
}

func (s spilling) Registry(url string, keys map[string][]byte, insecure bool) (*oci.Registry, error) {
	r, err := oci.Connect(url, keys, insecure, nil)
	if err == nil {
		r.Dir = s.dir
	}
	return r, err
}

// TestWhatWasPublishedBeforeStaysOnDisk: whoever may write to a registry can have an artifact of some hundred KB unpack
// to 200 MB, in place of what was published.
func TestWhatWasPublishedBeforeStaysOnDisk(t *testing.T) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	content := make([]byte, 15<<20)
	for i := range 13 {
		content[0] = byte(i) // the same content would be kept once
		header := &tar.Header{Name: fmt.Sprintf("%d.txt", i), Mode: 0o644, Size: int64(len(content)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := archive.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	reached := spilling{dir: t.TempDir()}
	to := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{
		URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/rendered/shop", Tags: []string{"latest"}, Insecure: true,
	}}
	r, err := reached.Registry(to.OCI.URL, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.Append(mutate.MediaType(empty.Image, types.OCIManifestSchema1), mutate.Addendum{
		Layer: static.NewLayer(packed.Bytes(), types.MediaType(oci.LayerMediaType)), MediaType: types.MediaType(oci.LayerMediaType),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(r.Repository.Tag("latest"), image); err != nil {
		t.Fatal(err)
	}
	target, err := newTargets(reached).Open(ctx, "", to)
	if err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	c := change(t, "apps/shop", "shop", configMap("a", "1"))
	receipt, err := target.Publish(ctx, c)
	if err != nil || receipt.Problem != nil || len(receipt.Outcome.Deleted) != 13 {
		t.Fatalf("%v, %v, %d files deleted", err, receipt.Problem, len(receipt.Outcome.Deleted))
	}
	if took := int64(heap()) - int64(before); took > 64<<20 {
		t.Errorf("the receipt holds %d MiB", took>>20)
	}
	if got := receipt.Old("12.txt"); len(got) != len(content) {
		t.Errorf("%d bytes of the file before", len(got))
	}
	runtime.KeepAlive(receipt)
}
