// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/promotion"
)

// rail is waves from left to right.
type rail struct {
	promotion.Promotion
	Stops []waveStage
}

// waveStage is a stop of a rail.
type waveStage struct {
	promotion.StageStatus
	// Left is the time until it goes on, "" where only others know; Passed is the share of the wait that is over, of
	// 100.
	Left   string
	Passed int
	// Position of Of is which stop it is.
	Position, Of int
	// Scope is the query of the list with its pipelines; Buttons are what the viewer may do with all of them.
	Scope   string
	Buttons []button
	Form    formData
}

// Link is the address of the list with its pipelines.
func (s waveStage) Link() string { return "/?" + s.Scope }

// StateText is the state in words.
func (s waveStage) StateText() string {
	switch s.State {
	case promotion.StageRollingBack:
		return "Rolling back"
	case promotion.StageRolledBack:
		return "Rolled back"
	}
	return s.State
}

// Class is the class of the colour of the state.
func (s waveStage) Class() string { return strings.ToLower(s.State) }

// IsRollback reports whether its pull request takes a publish back.
func (s waveStage) IsRollback() bool {
	return s.State == promotion.StageRollingBack || s.State == promotion.StageRolledBack
}

// Title is the value of its label, or its branch.
func (s waveStage) Title() string {
	if s.Name != "" {
		return s.Name
	}
	return s.Head
}

// railsOf returns waves as rails.
func railsOf(all []promotion.Promotion, now time.Time) (out []rail) {
	for _, p := range all {
		if p.Waves {
			out = append(out, railOf(p, now))
		}
	}
	return out
}

func railOf(p promotion.Promotion, now time.Time) rail {
	r := rail{Promotion: p}
	for i, one := range p.Stages {
		stop := waveStage{StageStatus: one, Position: i + 1, Of: len(p.Stages)}
		stop.Scope = listQuery{Wave: stageKey(p.URL, p.Branch, one.Head), Sort: sortState}.Scope()
		if left := one.Until.Sub(now); !one.Until.IsZero() && left > 0 {
			stop.Left = shortDuration(left.Round(time.Second))
			if all := one.Until.Sub(one.Since); all > 0 {
				stop.Passed = int(100 * max(0, all-left) / all)
			}
		}
		r.Stops = append(r.Stops, stop)
	}
	return r
}

// railsFor returns waves as rails, with the buttons of the viewer; rows are the pipelines that they may see.
func (h *pageHandler) railsFor(r *http.Request, all []promotion.Promotion, rows []row) []rail {
	out := railsOf(all, time.Now())
	form := h.pages.forms.formData(r)
	if form.CSRF == "" || len(out) == 0 {
		return out
	}
	members := map[string][]row{}
	for _, p := range rows {
		for _, key := range waveKeys(p) {
			members[key] = append(members[key], p)
		}
	}
	for i := range out {
		for j := range out[i].Stops {
			stop := &out[i].Stops[j]
			stop.Form = form
			stop.Buttons = waveButtons(members[stageKey(out[i].URL, out[i].Branch, stop.Head)])
		}
	}
	return out
}

// waveActions are the actions that a stop of a rail has.
var waveActions = []string{"promote", "hold", "rollback"}

// waveButtons returns the buttons for the pipelines of a wave: an action is offered if it is for one that the viewer
// may change.
func waveButtons(members []row) (out []button) {
	for _, name := range waveActions {
		a, _ := findAction(name)
		offered := slices.ContainsFunc(members, func(p row) bool {
			return p.Operable && (a.IsOffered == nil || a.IsOffered(p.Pipeline, p.entry.Pipeline))
		})
		if offered {
			out = append(out, button{a.Name, a.Label})
		}
	}
	return out
}

// waveKeys returns the keys of the waves that a pipeline is in.
func waveKeys(p row) (out []string) {
	if p.entry.Err != nil || p.entry.Pipeline == nil {
		return nil
	}
	labels := p.entry.Pipeline.Metadata.Labels
	for _, to := range p.entry.Pipeline.Spec.Publish {
		if to.Git == nil || to.Git.PullRequest == nil || to.Git.PullRequest.Wave(labels) < 0 {
			continue
		}
		head := to.Git.PullRequest.HeadOf(to.Git, labels[to.Git.PullRequest.Label])
		out = append(out, stageKey(to.Git.URL, to.Git.Branch, head))
	}
	return out
}

// waveOrder returns the positions of clusters in waves by cluster.
func waveOrder(all []promotion.Promotion) map[string]int {
	out := map[string]int{}
	for _, p := range all {
		for i, stage := range p.Stages {
			if p.Waves && p.Label == clusterLabel && out[stage.Name] == 0 {
				out[stage.Name] = i + 1
			}
		}
	}
	return out
}

// stageKey names the stage of a pull request from head to a branch.
func stageKey(url, branch, head string) string { return v1alpha1.BranchKey(url, branch) + "\n" + head }

// stagesByHead returns the stages of waves by the branches of their pull requests.
func stagesByHead(all []promotion.Promotion) map[string]*waveStage {
	out := map[string]*waveStage{}
	for _, r := range railsOf(all, time.Now()) {
		for i := range r.Stops {
			out[stageKey(r.URL, r.Branch, r.Stops[i].Head)] = &r.Stops[i]
		}
	}
	return out
}
