// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package build_test

import (
	"context"
	"errors"
	"testing"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// trustOf notes with whom a render may share its process.
type trustOf struct{ trust string }

func (r *trustOf) Render(_ context.Context, _ tree.Reader, request render.Request) (*render.Response, error) {
	r.trust = request.Trust
	return nil, errors.New("it is not rendered")
}

// TestAloneSharesNoProcess expects that builds share processes by their namespace and sources, and with Alone not at all: so what a
// fork asks to be merged never meets what is published.
func TestAloneSharesNoProcess(t *testing.T) {
	p := &v1alpha1.RenderPipeline{}
	p.Metadata.Namespace, p.Spec.Source.Git = "shop", &v1alpha1.GitSource{URL: "https://git.example.com/shop"}
	for _, alone := range []bool{false, true} {
		r := &trustOf{}
		b := &build.Builder{Renderer: r, Limits: render.DefaultLimits(), Alone: alone}
		if _, err := b.Build(t.Context(), p, &tree.Tree{}); err == nil {
			t.Fatal("there is no error")
		}
		if (r.trust == "") != alone {
			t.Errorf("alone %v: the render shares its process with those of %q", alone, r.trust)
		}
	}
}
