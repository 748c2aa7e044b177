// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestAListOfObjectsThatIsNotOursIsNotBelieved: Prerig writes no list of more than 256 KiB into an artifact. Another one,
// of as many names as a manifest holds, would be compared with all objects.
func TestAListOfObjectsThatIsNotOursIsNotBelieved(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	r, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/shop", nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &publish.Artifact{Registry: r, Tags: []string{"latest"}}
	if _, err := a.Publish(t.Context(), change(t, "apps/shop", "shop", configMap("a", "1"))); err != nil {
		t.Fatal(err)
	}
	image, err := remote.Image(r.Repository.Tag("latest"))
	if err != nil {
		t.Fatal(err)
	}
	var names strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&names, "v1 ConfigMap shop/%d\n", i)
	}
	forged, ok := mutate.Annotations(image, map[string]string{"prerig.dev/objects": names.String()}).(v1.Image)
	if !ok {
		t.Fatal("no image")
	}
	if err := remote.Write(r.Repository.Tag("latest"), forged); err != nil {
		t.Fatal(err)
	}
	closed := errors.New("closed")
	c := change(t, "apps/shop", "shop", configMap("a", "2"))
	c.Gate = func(published int, deleted []string) error {
		if published != 1 || len(deleted) != 0 {
			t.Errorf("%d objects are published, and %d would be deleted", published, len(deleted))
		}
		return closed
	}
	if _, err := a.Publish(t.Context(), c); !errors.Is(err, closed) {
		t.Error(err)
	}
}
