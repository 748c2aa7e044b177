// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	fluxoci "github.com/fluxcd/pkg/oci"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// Flux' own client pulls what Prerig publishes, and Prerig reads what Flux' client publishes.
func TestFlux(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	r, err := oci.Connect("oci://"+host+"/rendered/shop", nil, true)
	if err != nil {
		t.Fatal(err)
	}
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

	if _, err := client.Push(ctx, host+"/config/shop:v1", dir, fluxoci.WithPushMetadata(fluxoci.Metadata{Source: "s", Revision: "main@sha1:def", Created: "2026-02-03T04:05:06Z"})); err != nil {
		t.Fatal(err)
	}
	if r, err = oci.Connect("oci://"+host+"/config/shop", nil, true); err != nil {
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
