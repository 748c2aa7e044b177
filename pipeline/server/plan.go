// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
	"github.com/prerig/prerig/pipeline/review/diff"
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
func (s *Server) planOf(r *http.Request, a action, names []string) (plans []planData, problem string) {
	if a.Plan == nil {
		return nil, ""
	}
	if len(names) > maxPlans {
		return nil, fmt.Sprintf("more than %d pipelines are chosen", maxPlans)
	}
	ctx, cancel := context.WithTimeout(r.Context(), planTimeout)
	defer cancel()
	plans, err := a.Plan(s, r.WithContext(ctx), names)
	if err != nil {
		return nil, diff.Visible(status.OneLine(shownToOthers(err).Error()))
	}
	return plans, ""
}

// addDiff adds the files of a difference.
func (p *planData) addDiff(d *status.Diff) {
	if d == nil {
		return
	}
	shown := 0
	p.LeftOut += d.LeftOut
	for _, f := range d.Files {
		one := fileData{FileDiff: f, Lines: diffLines(f), Open: shown < openLines}
		one.Path = diff.Visible(f.Path)
		shown += len(one.Lines)
		p.Files = append(p.Files, one)
	}
}

// planRollback returns the publishes that a rollback would take back.
func (s *Server) planRollback(r *http.Request, names []string) (plans []planData, err error) {
	if s.Promoter == nil {
		return nil, errNoPromoter
	}
	found, err := s.Promoter.PlanRollback(r.Context(), names, "", s.mayOperate(requestPrincipal(r)))
	for _, one := range found {
		plan := planData{
			Title: fmt.Sprintf("%.12s: %s", one.Commit, diff.Visible(one.Subject)), Message: diff.Visible(status.OneLine(one.Message)), Pipelines: one.Pipelines,
		}
		plan.addDiff(one.Diff)
		plans = append(plans, plan)
	}
	return plans, err
}

// askPutBack returns the question that is asked before what others have changed is undone.
func (s *Server) askPutBack(names []string) string {
	if !slices.ContainsFunc(names, func(name string) bool { return s.Store.Get(name).IsDrifted() }) {
		return ""
	}
	return "Undo what others have changed of these, and publish what is rendered?"
}

// planPutBack returns what others have changed of pipelines, the other way round.
func (s *Server) planPutBack(r *http.Request, names []string) (plans []planData, err error) {
	if s.askPutBack(names) == "" {
		return nil, nil
	}
	if s.Promoter == nil || s.Promoter.Targets == nil {
		return nil, errNoPromoter
	}
	for _, name := range names {
		e, ok := s.visibleEntry(requestPrincipal(r), name)
		if !ok || e.Err != nil {
			continue
		}
		state := s.Store.Get(name)
		if !state.IsDrifted() {
			continue
		}
		found, err := publish.PreviewPutBack(r.Context(), s.Promoter.Targets, e.Pipeline, state)
		if err != nil {
			return nil, err
		}
		plan := planData{Title: name}
		if c := state.Condition(); c != nil {
			plan.Message = diff.Visible(status.OneLine(c.Message))
		}
		plan.addDiff(found)
		plans = append(plans, plan)
	}
	return plans, nil
}
