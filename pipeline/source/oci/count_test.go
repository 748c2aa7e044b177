// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package oci_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/internal/process/budget"
	"github.com/prerig/prerig/pipeline/source/oci"
)

// TestManifestsCountAsAnswersOfForeignServers: a manifest of 4 MiB of short annotations is ten times as large when it
// is decoded, and its artifact is held back meanwhile.
func TestManifestsCountAsAnswersOfForeignServers(t *testing.T) {
	var annotations strings.Builder
	for i := 0; annotations.Len() < 3<<20; i++ {
		fmt.Fprintf(&annotations, `"%x":"",`, i)
	}
	digest := "sha256:" + strings.Repeat("a", 64)
	manifest := fmt.Sprintf(`{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","annotations":{%s"x":""},`+
		`"layers":[{"mediaType":"application/vnd.cncf.flux.content.v1.tar+gzip","size":5,"digest":%q}]}`, annotations.String(), digest)
	asked, goOn := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/manifests/"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			fmt.Fprint(w, manifest)
		case strings.Contains(r.URL.Path, "/blobs/"):
			asked <- struct{}{}
			<-goOn
		}
	}))
	t.Cleanup(server.Close)
	ctx := budget.WithTeam(t.Context(), "hostile")
	var all sync.WaitGroup
	all.Go(func() {
		registry, err := oci.Connect("oci://"+strings.TrimPrefix(server.URL, "http://")+"/one", nil, true, nil)
		if err != nil {
			t.Error(err)
			return
		}
		if _, err := registry.Pull(ctx, oci.Ref{Tag: "latest"}, "", oci.DefaultLimits()); err == nil {
			t.Error("what is no archive was pulled")
		}
	})
	<-asked
	// Nothing is left for the team to hold its whole share.
	share := budget.Memory(ctx, "")
	waiting, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if err := share.Grow(waiting, math.MaxInt64); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the manifest is not counted while the layer is read: %v", err)
	}
	close(goOn)
	all.Wait()
	if err := share.Grow(ctx, math.MaxInt64); err != nil {
		t.Errorf("the manifest is counted for ever: %v", err)
	}
	share.Release()
}
