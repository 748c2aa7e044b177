// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"

	"github.com/prerig/prerig/fn/result"
	"github.com/prerig/prerig/pipeline/render"
	"github.com/prerig/prerig/pipeline/render/gate"
)

// CheckRequest returns what an API server refuses of the objects of a request.
func CheckRequest(ctx context.Context, request *render.GateRequest) (result.Results, error) {
	options := request.Options
	var err error
	if options.Severities, err = gate.NewSeverities(request.Severities); err != nil {
		return nil, err
	}
	if options.Catalog, err = readDocuments(request.Catalog); err != nil {
		return nil, err
	}
	objects, err := readDocuments(request.Documents)
	if err != nil {
		return nil, err
	}
	old, err := readDocuments(request.Old)
	if err != nil {
		return nil, err
	}
	gate.PairOld(objects, old)
	return Check(ctx, objects, options)
}

func readDocuments(documents []render.GateDocument) ([]gate.Object, error) {
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
