// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
)

// promotionsRoute is the route of the API that tells of waves and rollbacks.
const promotionsRoute = "/api/v1/promotions"

// waves are groups of results that go to a branch one after another, as the API tells of them.
type waves struct {
	URL      string `json:"url"`
	Branch   string `json:"branch"`
	Waves    bool   `json:"waves"`
	Label    string `json:"label"`
	Revision string `json:"revision"`
	Stopped  string `json:"stopped"`
	Stages   []wave `json:"stages"`
}

// wave is one of them.
type wave struct {
	Name      string    `json:"name"`
	Head      string    `json:"head"`
	State     string    `json:"state"`
	Message   string    `json:"message"`
	Since     time.Time `json:"since"`
	Number    int64     `json:"number"`
	URL       string    `json:"url"`
	Pipelines int       `json:"pipelines"`
	Waits     int       `json:"waits"`
	OnHold    int       `json:"onHold"`
}

// rollback is something that is or was taken back.
type rollback struct {
	Pipeline  string    `json:"pipeline"`
	Pipelines []string  `json:"pipelines"`
	Target    string    `json:"target"`
	Commit    string    `json:"commit"`
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	State     string    `json:"state"`
	Number    int64     `json:"number"`
	URL       string    `json:"url"`
	Message   string    `json:"message"`
}

// shownRollbacks is how many rollbacks the page shows.
const shownRollbacks = 20

// promotions returns what goes on of waves and rollbacks as far as who asks may know of it; nothing where the API does not tell.
func (s *Server) promotions(r *http.Request) (out []waves, back []rollback) {
	if !s.offers(http.MethodGet, promotionsRoute) {
		return nil, nil
	}
	var found struct {
		Promotions []waves    `json:"promotions"`
		Rollbacks  []rollback `json:"rollbacks"`
	}
	if _, err := s.askAPI(r, http.MethodGet, promotionsRoute, nil, &found); err != nil {
		s.Log.Warn("the page shows no waves", "error", err)
		return nil, nil
	}
	for _, one := range found.Promotions {
		if one.Waves {
			out = append(out, one)
		}
	}
	slices.SortStableFunc(out, func(a, b waves) int { return boolOrder(b.Stopped != "") - boolOrder(a.Stopped != "") })
	return out[:min(len(out), maxLanes)], found.Rollbacks[:min(len(found.Rollbacks), shownRollbacks)]
}

func boolOrder(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Pull is the pull request of a wave, as those of pipelines are shown.
func (w wave) Pull() *v1alpha1.PullRequestStatus {
	if w.Number == 0 {
		return nil
	}
	return &v1alpha1.PullRequestStatus{Number: w.Number, URL: w.URL}
}
