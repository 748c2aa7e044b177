// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// planData is what one part of an action would do, as it is shown with the question.
type planData struct {
	Title, Message string
	Pipelines      []string
	Files          []fileData
	LeftOut        int
}

// maxPlans bounds the pipelines whose plans are made for a question, planTimeout how long that may take.
const (
	maxPlans    = 20
	planTimeout = 30 * time.Second
)

// planOf returns what an action would do, or why that is not known: the question is asked all the same.
func (h *actionHandler) planOf(r *http.Request, a action, names []string) (plans []planData, problem string) {
	if a.Plan == nil {
		return nil, ""
	}
	if len(names) > maxPlans {
		return nil, fmt.Sprintf("more than %d pipelines are chosen", maxPlans)
	}
	ctx, cancel := context.WithTimeout(r.Context(), planTimeout)
	defer cancel()
	plans, err := a.Plan(h, r.WithContext(ctx), names)
	if err != nil {
		return nil, foreign.Visible(status.OneLine(shownToOthers(err).Error()))
	}
	return plans, ""
}

// planRollback returns the publishes that a rollback would take back.
func (h *actionHandler) planRollback(r *http.Request, names []string) (plans []planData, err error) {
	if h.promoter == nil {
		return nil, errNoPromoter
	}
	found, err := h.promoter.PlanRollback(r.Context(), names, "", mayOperate(requestPrincipal(r)))
	for _, one := range found {
		plan := planData{
			Title: fmt.Sprintf("%.12s: %s", one.Commit, foreign.Visible(one.Subject)), Message: foreign.Visible(status.OneLine(one.Message)), Pipelines: one.Pipelines,
		}
		if one.Diff != nil {
			plan.LeftOut, plan.Files = one.Diff.LeftOut, filesOf(one.Diff)
		}
		plans = append(plans, plan)
	}
	return plans, err
}

// askRevert returns the question that is asked before what others have changed is undone.
func (h *actionHandler) askRevert(names []string) (label, question string) {
	if !slices.ContainsFunc(names, func(name string) bool { return h.views.store.Get(name).IsDrifted() }) {
		return "", ""
	}
	return "Revert", "Undo what others have changed, and publish the last render again?"
}

// planRevert returns what the undoing would change.
func (h *actionHandler) planRevert(r *http.Request, names []string) (plans []planData, err error) {
	if _, question := h.askRevert(names); question == "" {
		return nil, nil
	}
	return planRevert(r, h.views, h.promoter, names)
}
