// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"

	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// renderChart returns the manifests of a chart.
func renderChart(ctx context.Context, files tree.Reader, request *render.ChartRequest) ([]render.Manifest, error) {
	options := helmchart.Options{FieldName: func(field string) string { return request.Fields[field] }}
	made, err := helmchart.Render(ctx, files, request.Helm, options)
	if err != nil {
		return nil, err
	}
	var out []render.Manifest
	for _, one := range made {
		out = append(out, render.Manifest{Template: one.Template, YAML: []byte(one.YAML)})
	}
	return out, nil
}

// checkArchive reports what is wrong with the archive of a chart.
func checkArchive(request *render.ArchiveRequest) error {
	return helmchart.CheckArchive(request.Content, request.Name, request.Version)
}
