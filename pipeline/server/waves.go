// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"

	"github.com/prerig/prerig/pipeline/promotion"
)

// shownRollbacks is how many rollbacks the page shows.
const shownRollbacks = 20

// wavesAndRollbacks returns the waves and rollbacks in progress that the requester may see, or none if they cannot
// be read.
func (s *Server) wavesAndRollbacks(r *http.Request) Promotions {
	if err := s.Store.Sync(r.Context()); err != nil {
		s.Log.Warn("the page shows no waves", "error", err)
		return Promotions{}
	}
	return s.promotionsFor(requestPrincipal(r)).limitedForPage()
}

// limitedForPage returns what the page shows of promotions: waves, those that go no further first, and the newest
// rollbacks.
func (p Promotions) limitedForPage() Promotions {
	p.Promotions = slices.DeleteFunc(p.Promotions, func(one promotion.Promotion) bool { return !one.Waves })
	slices.SortStableFunc(p.Promotions, func(a, b promotion.Promotion) int { return boolOrder(b.Stopped != "") - boolOrder(a.Stopped != "") })
	p.Promotions = p.Promotions[:min(len(p.Promotions), maxLanes)]
	p.Rollbacks = p.Rollbacks[:min(len(p.Rollbacks), shownRollbacks)]
	return p
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}
