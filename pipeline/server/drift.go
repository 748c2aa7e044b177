// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"net/url"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
	"github.com/prerig/prerig/pipeline/publish"
)

// driftData is the page of what others have changed of what a pipeline has published.
type driftData struct {
	Pipeline
	Plans   []planData
	Problem string
	Buttons []button
	Form    formData
}

// eventStreamPath implements livePage.
func (d driftData) eventStreamPath() string { return "/events?pipeline=" + url.QueryEscape(d.Name) }

func (h *pageHandler) driftPage(w http.ResponseWriter, r *http.Request) {
	e, ok := h.requestedEntry(w, r)
	if !ok {
		return
	}
	data := driftData{Pipeline: h.views.viewPipeline(e), Form: h.pages.forms.formData(r)}
	if data.State == StateDrifted {
		var err error
		if data.Plans, err = planRevert(r, h.views, h.promotions.promoter, []string{e.Key}); err != nil {
			data.Problem = h.problemOf(shownToOthers(err))
		}
		for _, one := range buttonsOf(r, data.Pipeline, e) {
			if one.Name == retryAction {
				data.Buttons = append(data.Buttons, one)
			}
		}
	}
	h.pages.writePage(w, r, "drift", "Drift of "+e.Key, data)
}

// planRevert returns what others have changed of pipelines, the other way round.
func planRevert(
	r *http.Request,
	views *pipelineViews,
	promoter *promotion.Promoter,
	names []string,
) (plans []planData, err error) {
	if promoter == nil || promoter.Targets == nil {
		return nil, errNoPromoter
	}
	for _, name := range names {
		e, ok := views.visibleEntry(requestPrincipal(r), name)
		if !ok || e.Err != nil {
			continue
		}
		state := views.store.Get(name)
		if !state.IsDrifted() {
			continue
		}
		found, err := publish.PreviewPutBack(r.Context(), promoter.Targets, e.Pipeline, state)
		if err != nil {
			return nil, err
		}
		plan := planData{Title: name}
		if c := state.Condition(); c != nil {
			plan.Message = foreign.Visible(status.OneLine(c.Message))
		}
		if found != nil {
			plan.LeftOut, plan.Files = found.LeftOut, filesOf(found)
		}
		plans = append(plans, plan)
	}
	return plans, nil
}
