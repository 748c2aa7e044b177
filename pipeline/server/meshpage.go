// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"time"
)

// Clusters that the first page, and the page of the mesh, show.
const (
	clustersOnList = 6
	maxClusters    = 100
)

// meshPageData is the page of the mesh.
type meshPageData struct {
	meshData
	Delays delayChart
	Rails  []rail
}

// eventStreamPath implements livePage.
func (meshPageData) eventStreamPath() string { return "/events" }

// meshOfRows returns the mesh of pipelines, with the first clusters.
func (h *pageHandler) meshOfRows(r *http.Request, rows []row, most int) meshData {
	who := requestPrincipal(r)
	data := h.views.meshOf(rows, h.wavesAndRollbacks(r).Promotions, h.differences(who, rows))
	data.Compared = h.clusters != nil && len(h.clusters()) > 0
	data.Foreign = h.foreignPods(who)
	if data.More = len(data.Clusters) - most; data.More > 0 {
		data.Clusters = data.Clusters[:most]
	}
	return data
}

// meshPage shows the versions of Istio by cluster, what became of the workloads, and how long commits take.
func (h *pageHandler) meshPage(w http.ResponseWriter, r *http.Request) {
	rows := h.views.visibleRows(requestPrincipal(r), true)
	now := time.Now()
	data := meshPageData{meshData: h.meshOfRows(r, rows, maxClusters), Delays: drawDelays(rows, now)}
	data.Rails = h.railsFor(r, h.wavesAndRollbacks(r).Promotions, rows)
	h.pages.writePage(w, r, "mesh", "Mesh", data)
}
