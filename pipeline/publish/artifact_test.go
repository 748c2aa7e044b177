// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// startRegistry starts a registry, and returns its host and a repository rendered/shop of it.
func startRegistry(t *testing.T) (host string, repository *oci.Registry) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	host = strings.TrimPrefix(server.URL, "http://")
	repository, err := oci.Connect("oci://"+host+"/rendered/shop", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	return host, repository
}

func TestArtifact(t *testing.T) {
	_, r := startRegistry(t)
	a := &publish.Artifact{Registry: r, Tags: []string{"latest", "prod"}}
	c := change(t, "apps/shop", "shop", configMap("a", "1"), configMap("b", "1"))
	push := func(c publish.Change) publish.ArtifactResult {
		t.Helper()
		result, err := a.Publish(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	first := push(c)
	if !first.Changed {
		t.Error("nothing was pushed")
	}
	// Another source commit with the same content is no new artifact.
	c.Origin.Digest, c.Origin.Revision, c.Origin.Date = "def", "main@sha1:def", c.Origin.Date.Add(time.Hour)
	if again := push(c); again.Changed || again.Digest != first.Digest {
		t.Errorf("got %+v", again)
	}
	a.Tags = append(a.Tags, "new")
	if again := push(c); !again.Changed || again.Digest != first.Digest {
		t.Errorf("got %+v", again)
	}
	for _, tag := range a.Tags {
		pulled, err := r.Pull(ctx, oci.Ref{Tag: tag}, oci.LayerMediaType, oci.DefaultLimits())
		if err != nil {
			t.Fatal(err)
		}
		if pulled.Digest != first.Digest || pulled.Revision != "main@sha1:abc" || !pulled.Created.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
			t.Errorf("got %+v", pulled)
		}
		if content, err := tree.NewView(pulled.Tree, tree.Limits{}).Read("shop/configmap-a.yaml"); err != nil || !strings.Contains(string(content), "name: a") {
			t.Errorf("got %s, %v", content, err)
		}
	}
	image, err := remote.Image(r.Repository.Tag("latest"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := image.Manifest()
	if err != nil || string(manifest.Config.MediaType) != oci.ConfigMediaType || len(manifest.Layers) != 1 || string(manifest.Layers[0].MediaType) != oci.LayerMediaType {
		t.Errorf("got %+v, %v", manifest, err)
	}
	config, err := image.ConfigFile()
	if err != nil || config.Created.Format(time.RFC3339) != manifest.Annotations[oci.AnnotationCreated] {
		t.Errorf("got %+v, %v", config, err)
	}
	// The gate is asked with what is published.
	gone := change(t, "apps/shop", "shop")
	gone.Gate = publish.Gate(v1alpha1.Gates{}, nil)
	var closed *publish.GateError
	if _, err := a.Publish(ctx, gone); !errors.As(err, &closed) {
		t.Errorf("got %v", err)
	}
}
