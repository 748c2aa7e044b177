// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"

	"github.com/prerig/prerig/pipeline/catalog"
)

// Catalog is where the pipelines are from, as the API shows it.
type Catalog struct {
	catalog.Status
}

// catalog tells where the pipelines are from and how that goes.
func (s *Server) catalog(w http.ResponseWriter, _ *http.Request) { answer(w, s.catalogView()) }

func (s *Server) catalogView() Catalog { return Catalog{Status: s.Catalog.Status()} }
