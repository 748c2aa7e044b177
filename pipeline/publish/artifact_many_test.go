// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/render"
)

// The gate on deletions knows what a large artifact holds, although it is too much for an annotation.
func TestTheGateOfALargeArtifact(t *testing.T) {
	_, r := startRegistry(t)
	var many []render.Object
	for i := range 1500 {
		many = append(many, configMap(fmt.Sprint(strings.Repeat("n", 200), i), "1"))
	}
	a := &publish.Artifact{Registry: r, Tags: []string{"latest"}}
	if _, err := a.Publish(ctx, change(t, "apps/shop", "shop", many...)); err != nil {
		t.Fatal(err)
	}
	half := 50
	fewer := change(t, "apps/shop", "shop", many[:100]...)
	fewer.Gate = publish.Gate(v1alpha1.Gates{MaxDeleted: &half}, fewer.Objects)
	var closed *publish.GateError
	if _, err := a.Publish(ctx, fewer); !errors.As(err, &closed) || !strings.Contains(err.Error(), "1400 of 1500") {
		t.Errorf("got %v", err)
	}
	held, err := publish.PublishedArtifact(ctx, r, "latest")
	if err != nil || len(held.Objects) != 1500 {
		t.Errorf("%d objects, %v", len(held.Objects), err)
	}
	fewer = change(t, "apps/shop", "shop", many[:1400]...)
	fewer.Gate = publish.Gate(v1alpha1.Gates{MaxDeleted: &half}, fewer.Objects)
	if result, err := a.Publish(ctx, fewer); err != nil || !result.Changed {
		t.Errorf("got %+v, %v", result, err)
	}
}
