// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package tenant

import (
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// TestAPlaceWithoutAnAddressIsOutOfReach has a kind of place that Address does not know: a bound on addresses refuses it, so that a new
// kind is not open to everybody by omission.
func TestAPlaceWithoutAnAddressIsOutOfReach(t *testing.T) {
	r, err := NewReach(nil, []string{"https://git.example.com/team/*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := &v1alpha1.RenderPipeline{Spec: v1alpha1.RenderPipelineSpec{Publish: []v1alpha1.Publish{{}}}}
	if err := r.Check(p, "pipelines in team"); err == nil {
		t.Error("a place without an address is allowed")
	}
	if err := (Reach{}).Check(p, "pipelines in team"); err != nil {
		t.Errorf("without a bound: %v", err)
	}
}
