// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/engine/apiserver"
	"github.com/prerig/prerig/pipeline/render/engine/helmchart"
	"github.com/prerig/prerig/pipeline/render/gate"
	"github.com/prerig/prerig/pipeline/source/tree"
)

// checkObjects returns what an API server refuses of the objects of documents.
func checkObjects(ctx context.Context, request *render.GateRequest) (result.Results, error) {
	options := request.Options
	var err error
	if options.Severities, err = gate.NewSeverities(request.Severities); err != nil {
		return nil, err
	}
	if options.Catalog, err = readGateDocuments(request.Catalog); err != nil {
		return nil, err
	}
	objects, err := readGateDocuments(request.Documents)
	if err != nil {
		return nil, err
	}
	old, err := readGateDocuments(request.Old)
	if err != nil {
		return nil, err
	}
	gate.PairOld(objects, old)
	return apiserver.Check(ctx, objects, options)
}

func readGateDocuments(documents []render.GateDocument) ([]gate.Object, error) {
	var out []gate.Object
	for _, one := range documents {
		document, err := one.Document.Decode()
		if err != nil {
			return nil, err
		}
		source := document
		if one.Source != nil {
			if source, err = one.Source.Decode(); err != nil {
				return nil, err
			}
		}
		objects, err := gate.ReadDocument(document, source, one.Path)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", document, err)
		}
		out = append(out, objects...)
	}
	return out, nil
}

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
