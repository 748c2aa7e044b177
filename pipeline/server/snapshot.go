// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"errors"
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/server/access"
)

// Snapshot is a policy that was completed from a cluster.
type Snapshot struct {
	Digest string `json:"digest"`
	// Policy is a self-contained InjectionPolicy, in YAML.
	Policy string `json:"policy"`
}

// showSnapshot returns a policy that a pipeline was rendered with, if the user may see it.
func (s *Server) showSnapshot(w http.ResponseWriter, r *http.Request) {
	if err := s.Store.Sync(r.Context()); err != nil {
		writeError(w, http.StatusServiceUnavailable, err)
		return
	}
	digest := r.URL.Query().Get("digest")
	may := requestPrincipal(r).MayEverywhere(access.Read) || slices.ContainsFunc(s.visibleEntries(requestPrincipal(r)), func(e catalog.Entry) bool {
		return s.Store.Get(e.Key).NamesSnapshot(digest)
	})
	text, ok := s.Store.Snapshot(digest)
	if !ok || !may {
		writeError(w, http.StatusNotFound, errors.New("no snapshot of this digest is kept: what neither is published nor stands in the history of a pipeline is forgotten"))
		return
	}
	writeJSON(w, Snapshot{digest, string(text)})
}
