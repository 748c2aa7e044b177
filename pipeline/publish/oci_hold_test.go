// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// registries reaches registries only.
type registries struct{ publish.Repositories }

func (registries) Registry(url string, keys map[string][]byte, insecure bool) (*oci.Registry, error) {
	return oci.Connect(url, keys, insecure, nil)
}

// TestAHoldDuringTheDownloadOfAnArtifactCounts puts a pipeline on hold while what it has published is read.
func TestAHoldDuringTheDownloadOfAnArtifactCounts(t *testing.T) {
	var said, known, during atomic.Bool
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if during.Load() && r.Method == http.MethodGet && strings.Contains(r.URL.Path, "/manifests/") {
			said.Store(true)
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	targets := newTargets(registries{})
	targets.Refresh = func(context.Context) error { known.Store(said.Load()); return nil }
	to := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/rendered/shop", Tags: []string{"latest"}, Insecure: true}}
	target, err := targets.Open(ctx, "", to)
	if err != nil {
		t.Fatal(err)
	}
	onHold := errors.New("on hold")
	put := func(value string) (publish.Receipt, error) {
		c := change(t, "apps/shop", "shop", configMap("a", value))
		c.Gate = func(int, []string) error {
			if known.Load() {
				return onHold
			}
			return nil
		}
		return target.Publish(ctx, c)
	}
	first, err := put("1")
	if err != nil || !first.Changed {
		t.Fatalf("got %+v, %v", first, err)
	}
	during.Store(true)
	if second, err := put("2"); !errors.Is(err, onHold) || second.Changed {
		t.Errorf("got %+v, %v", second, err)
	}
	if !said.Load() {
		t.Error("nothing was read")
	}
}
