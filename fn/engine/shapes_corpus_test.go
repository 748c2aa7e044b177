// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prerig/prerig/fn/api/v1alpha1"
	"github.com/prerig/prerig/fn/manifest"
)

// TestShapesOfRepositories injects into the workloads of directories in PRERIG_SHAPES, each also by its shape and with other names. All of
// them are compared (checksShapes), and a difference is a panic.
func TestShapesOfRepositories(t *testing.T) {
	dirs := filepath.SplitList(os.Getenv("PRERIG_SHAPES"))
	dirs = append(dirs, filepath.Join("..", "..", "examples"))
	in, err := New([]*v1alpha1.InjectionPolicy{builtInPolicy(t)})
	if err != nil {
		t.Fatal(err)
	}
	workloads := 0
	for _, dir := range dirs {
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".yaml") && !strings.HasSuffix(path, ".yml") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			file, err := manifest.Parse(path, text)
			if err != nil {
				return nil // a template of a chart, or no manifest
			}
			for i, doc := range file.Docs {
				if meta, ok := doc.Peek(); !ok || !mayHaveShape(meta) {
					continue
				}
				workloads++
				if _, err := in.Run(context.Background(), []Item{{Doc: doc, Path: path, Index: i}}); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	used := 0
	for _, learned := range in.shapes.shapes {
		if learned != nil {
			used++
		}
	}
	t.Logf("%d workloads, %d shapes, %d of them used, %d results compared and equal", workloads, len(in.shapes.shapes), used, in.shapes.compared.Load())
	if in.shapes.compared.Load() < 20 {
		t.Error("nearly nothing was compared")
	}
}

// mayHaveShape reports whether a document is a workload that could have a shape.
func mayHaveShape(m manifest.Meta) bool {
	return m.APIVersion == "apps/v1" && (m.Kind == "Deployment" || m.Kind == "StatefulSet" || m.Kind == "DaemonSet")
}
