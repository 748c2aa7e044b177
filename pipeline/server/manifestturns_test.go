// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"testing"

	"github.com/prerig/prerig/pipeline/publish"
)

// TestManifestsOfOneNamespaceKeepNoOtherWaiting has the servers of one namespace not answer, so that all who look at its
// manifests wait.
func TestManifestsOfOneNamespaceKeepNoOtherWaiting(t *testing.T) {
	m := newManifestReader(&publish.Targets{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	taken := make(chan struct{}, 10)
	for range 10 {
		go func() {
			if _, _, err := m.takeTurn(ctx, "evil"); err == nil {
				taken <- struct{}{} // and it is never given back
			}
		}()
	}
	<-taken
	for range 20 {
		_, done, err := m.takeTurn(t.Context(), "shop")
		if err != nil {
			t.Fatal(err)
		}
		done()
	}
	if len(taken) > 0 {
		t.Errorf("one namespace has %d turns more than its share", len(taken))
	}
}
