// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
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

// TestALateUploadSetsNoTag has a run lose its pipeline while it uploads, and another one publish meanwhile: the older result does not
// replace the newer, neither at the tag that is compared nor at a further one.
func TestALateUploadSetsNoTag(t *testing.T) {
	var slow, lost atomic.Bool
	begun, goOn := make(chan struct{}), make(chan struct{})
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPatch && slow.CompareAndSwap(true, false) {
			close(begun)
			<-goOn
		}
		store.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	to := v1alpha1.Publish{OCI: &v1alpha1.OCIPublish{URL: "oci://" + strings.TrimPrefix(server.URL, "http://") + "/rendered/shop", Tags: []string{"latest", "prod"}, Insecure: true}}
	errLost := errors.New("the lock was lost")
	put := func(value string, tags int, still func() error) (publish.Receipt, error) {
		one := to
		of := *to.OCI
		one.OCI = &of
		one.OCI.Tags = to.OCI.Tags[:tags]
		target, err := newTargets(registries{}).Open(ctx, "", one) // each is another process, whose lock has run out
		if err != nil {
			return publish.Receipt{}, err
		}
		c := change(t, "apps/shop", "shop", configMap("a", value))
		c.Still = still
		return target.Publish(ctx, c)
	}
	slow.Store(true)
	late := make(chan error)
	go func() {
		_, err := put("old", 2, func() error {
			if lost.Load() {
				return errLost
			}
			return nil
		})
		late <- err
	}()
	<-begun
	lost.Store(true)
	receipt, err := put("new", 1, func() error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	close(goOn)
	if err := <-late; !errors.Is(err, errLost) {
		t.Errorf("the late one got %v", err)
	}
	repository, err := oci.Connect(to.OCI.URL, nil, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	if now, err := repository.Resolve(ctx, oci.Ref{Tag: "latest"}); err != nil || now.Digest != receipt.Revision {
		t.Errorf("latest is %+v, %v, want %s", now, err, receipt.Revision)
	}
	// Where only further tags are to be set, it is asked too.
	if _, err := put("new", 2, func() error { return errLost }); !errors.Is(err, errLost) {
		t.Errorf("a tag was set: %v", err)
	}
	if _, err := repository.Resolve(ctx, oci.Ref{Tag: "prod"}); err == nil {
		t.Error("the further tag was set")
	}
}
