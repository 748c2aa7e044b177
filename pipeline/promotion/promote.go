// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// Promoted is what a request to promote has changed.
type Promoted struct {
	// Released were on hold. Groups are the heads that go on whatever the policies wait for.
	Released, Groups []string
}

// Promote ends the hold of pipelines, and lets the groups in which their results wait proceed in their current
// state: open pull requests are merged, and those that wait for their turn are opened. The host's own rules still
// apply. may is called for all pipelines that wait in these groups before any change is made. The token is used to
// request runs of the pipelines that were on hold.
func (p *Promoter) Promote(ctx context.Context, pipelines []string, by, token string, may func(pipeline string) error) (done Promoted, err error) {
	groups, waiting, err := p.findWaiting(pipelines, may)
	if err != nil {
		return done, err
	}
	if done.Released, err = p.Release(ctx, pipelines, token); err != nil {
		return done, err
	}
	for _, key := range slices.Sorted(maps.Keys(waiting)) {
		g, decided := groups[key], waiting[key]
		decided.At, decided.By = p.now().UTC(), by
		if err := p.Store.ChangeGroup(ctx, g.key, func(k *status.Group) bool { k.Head, k.Promoted = g.head, decided; return true }); err != nil {
			return done, err
		}
		done.Groups = append(done.Groups, g.head)
	}
	p.retries.forgetAll(p.now())
	p.Wake()
	return done, nil
}

// PlanPromote returns what Promote would change, without changing it.
func (p *Promoter) PlanPromote(pipelines []string, may func(pipeline string) error) (plan Promoted, err error) {
	groups, waiting, err := p.findWaiting(pipelines, may)
	if err != nil {
		return plan, err
	}
	for _, key := range pipelines {
		if p.Store.Control(key).OnHold != nil {
			plan.Released = append(plan.Released, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(waiting)) {
		plan.Groups = append(plan.Groups, groups[key].head)
	}
	return plan, nil
}

// findWaiting returns all groups, and by their keys what is decided about those in which results of pipelines wait.
// may is called for all pipelines that wait in these.
func (p *Promoter) findWaiting(pipelines []string, may func(pipeline string) error) (map[string]*group, map[string]*status.Decision, error) {
	_, groups := p.unitsAndGroups()
	waiting := map[string]*status.Decision{}
	for key, g := range groups {
		decided := g.pendingDecisionSubject(pipelines)
		if decided == nil {
			continue
		}
		waiting[key] = decided
		for _, m := range g.members {
			if m.published == nil || m.published.PullRequest == nil {
				continue
			}
			if err := may(m.key); err != nil {
				return nil, nil, fmt.Errorf("promoting what waits on %s: %w", g.head, err)
			}
		}
	}
	return groups, waiting, nil
}

// pendingDecisionSubject returns the subject of a decision to promote: what waits with results of some of the
// pipelines, or was closed with them. It is nil without such results.
func (g *group) pendingDecisionSubject(pipelines []string) *status.Decision {
	var found *status.Decision
	for _, m := range g.members {
		if !slices.Contains(pipelines, m.key) || m.published == nil || m.published.PullRequest == nil {
			continue
		}
		r := m.published.PullRequest
		if r.HeadCommit != "" && r.State != v1alpha1.PullRequestClosed {
			return &status.Decision{Commit: r.HeadCommit, Heads: g.otherHeads(r.HeadCommit)}
		}
		if found == nil && (r.HeadCommit != "" || r.State == v1alpha1.PullRequestClosed) {
			found = &status.Decision{Commit: r.HeadCommit, Number: r.Number}
			if r.State == v1alpha1.PullRequestClosed {
				found.Closed = r.Since.Time
			}
		}
	}
	return found
}

// otherHeads returns the heads of the group that its pipelines know, but for one.
func (g *group) otherHeads(known string) (out []string) {
	for _, m := range g.members {
		if m.published == nil || !m.published.PullRequest.Waits() {
			continue
		}
		if head := m.published.PullRequest.HeadCommit; head != "" && head != known && !slices.Contains(out, head) {
			out = append(out, head)
		}
	}
	return out
}

// Promotion is the progress of a group, or of waves that proceed one after another.
type Promotion struct {
	// URL and Branch are the destination.
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Waves reports whether the stages proceed one after another. Label is the label that distinguishes them.
	Waves bool   `json:"waves,omitempty"`
	Label string `json:"label,omitempty"`
	// Revision is the source that a train of waves carries; Stopped is why it does not continue.
	Revision string `json:"revision,omitempty"`
	Stopped  string `json:"stopped,omitempty"`
	// Stages are the groups, waves in their order.
	Stages []StageStatus `json:"stages"`
}

// Promotions returns the promotions of the pipelines that may be disclosed.
func (p *Promoter) Promotions(may func(pipeline string) bool) []Promotion {
	var out []Promotion
	units, _ := p.unitsAndGroups()
	all, rollbacks := isAllKnown(units, may), takenBackIn(p.Store.Rollbacks())
	for _, u := range units {
		to := reader{unit: u, may: may, all: all}
		if to.own = u.firstOf(may); to.own == nil {
			continue
		}
		train := p.Store.Train(u.key)
		one := Promotion{URL: to.own.to.URL, Branch: u.branch, Waves: u.waves != nil, Label: u.label, Revision: train.Revision, Stopped: to.disclosableText(train.Stopped, train.Told)}
		for _, g := range u.groups {
			one.Stages = append(one.Stages, g.disclosableStageStatus(p.Store.Group(g.key), rollbacks, to))
		}
		if one.Waves {
			addHeldVersions(one.Stages)
		}
		out = append(out, one)
	}
	return out
}

// disclosableStageStatus returns the state of a group, limited to the pipelines that may be disclosed. For a wave with
// none of them it is only its state.
func (g *group) disclosableStageStatus(known status.Group, rollbacks takenBack, to reader) StageStatus {
	s := StageStatus{Name: g.name, State: cmp.Or(known.State, StageIdle), Since: known.Since}
	own := slices.IndexFunc(g.members, func(m member) bool { return to.may(m.key) })
	if own < 0 && !to.all {
		s.Head = to.own.to.PullRequest.HeadOf(to.own.to, g.name)
		return s
	}
	s.Head, s.Message, s.Until = g.head, to.disclosableText(known.Message, known.Told), known.Until
	if own >= 0 {
		s.Head = g.members[own].head
	}
	if landed := known.Landed; landed != nil && s.State != StageWaiting {
		s.Number, s.URL = landed.Number, landed.URL
	}
	mine := slices.DeleteFunc(slices.Clone(g.members), func(m member) bool { return !to.may(m.key) })
	for _, m := range mine {
		s.Pipelines++
		if m.control.OnHold != nil {
			s.OnHold++
		}
		if m.published == nil || m.published.PullRequest == nil {
			continue
		}
		r := m.published.PullRequest
		if r.State != v1alpha1.PullRequestClosed {
			s.Waits++
		}
		if r.Number > s.Number && r.State != v1alpha1.PullRequestWaiting {
			s.Number, s.URL = r.Number, r.URL
		}
		if known.State == "" && r.State == v1alpha1.PullRequestOpen { // people merge it, so it needs no decision
			s.State, s.Message, s.Since = StageOpen, "waits for people to merge it", r.Since.Time
		}
	}
	s.addVersions(mine)
	s.overrideState(mine, rollbacks, to)
	return s
}
