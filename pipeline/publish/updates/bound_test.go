// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package updates_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/publish/updates"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate/validation"
)

// slowValidator needs a second for each object, and ends with its context.
type slowValidator struct{}

func (slowValidator) Ask(ctx context.Context, requests []validation.Request) ([]validation.Answer, error) {
	for range requests {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return make([]validation.Answer, len(requests)), nil
}

// TestSlowObjectsAreValidatedForAsLongAsARenderMayTake: a source has thousands of objects, each of which takes a little less than the
// longest that one may take.
func TestSlowObjectsAreValidatedForAsLongAsARenderMayTake(t *testing.T) {
	checker := updates.Checker{Validator: slowValidator{}, Objects: localChecker{}, Limits: render.Limits{Timeout: 50 * time.Millisecond}}
	response := &render.Response{}
	for range 100 {
		yaml := []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		response.Objects = append(response.Objects, render.Object{APIVersion: "v1", Kind: "ConfigMap", Name: "a", YAML: yaml})
	}
	gates := v1alpha1.Gates{Schemas: &v1alpha1.SchemaGate{}}
	if _, err := checker.CheckResult(t.Context(), gates, response, nil); !errors.Is(err, render.ErrTimeout) {
		t.Errorf("the objects of a render: %v", err)
	}
	before := asFiles(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"})
	after := asFiles(map[string]string{"a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"})
	if _, err := checker.Check(t.Context(), v1alpha1.Gates{}, before, after, nil); !errors.Is(err, render.ErrTimeout) {
		t.Errorf("the objects that change: %v", err)
	}
}
