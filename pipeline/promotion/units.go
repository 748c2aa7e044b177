// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/status"
)

// unit is what is decided about together: waves, or one group alone.
type unit struct {
	key, url, branch, label string
	waves                   *v1alpha1.Waves
	groups                  []*group
}

// group is the pipelines whose results share a pull request.
type group struct {
	head, name, key string
	// to is that of one of its pipelines: repository and branch are those of all.
	to      v1alpha1.Publish
	members []member
	policy  policy
	// isShared reports whether its unit has pipelines of several namespaces.
	isShared bool
}

// member is a pipeline of a group.
type member struct {
	key, unit, head string
	to              *v1alpha1.GitPublish
	entry           v1alpha1.Publish // that to is of
	state           *status.State
	control         status.Control
	published       *v1alpha1.Published
}

// groupKey names a group in what is stored.
func groupKey(to *v1alpha1.GitPublish, head string) string {
	return v1alpha1.BranchKey(to.URL, to.Branch) + "\n" + head
}

// gathered is what units gathers: units and groups by their keys, and who shares a head, of whichever units.
type gathered struct {
	units   map[string]*unit
	groups  map[string]*group
	sharing map[string][]member
}

// unitsAndGroups returns the units to decide about, and all groups by their keys.
func (p *Promoter) unitsAndGroups() ([]*unit, map[string]*group) {
	all := gathered{map[string]*unit{}, map[string]*group{}, map[string][]member{}}
	for _, e := range p.Catalog.All() {
		if e.Err != nil {
			continue
		}
		for _, to := range e.Pipeline.Spec.Publish {
			if to.Git != nil && to.Git.PullRequest != nil {
				p.gatherEntry(all, e, to)
			}
		}
	}
	var out []*unit
	for _, u := range all.units {
		shared := u.isShared()
		for _, g := range u.groups {
			g.policy, g.isShared = effectivePolicy(u.key, all.sharing[g.key]), shared
		}
		out = append(out, u)
	}
	slices.SortFunc(out, func(a, b *unit) int { return cmp.Compare(a.key, b.key) })
	return out, all.groups
}

func (p *Promoter) gatherEntry(all gathered, e catalog.Entry, to v1alpha1.Publish) {
	r := to.Git.PullRequest
	m := member{key: e.Key, to: to.Git, entry: to, state: p.Store.Get(e.Key), control: p.Store.Control(e.Key)}
	for i := range m.state.Status.Published {
		if one := &m.state.Status.Published[i]; one.Target == to.Target() {
			m.published = one
		}
	}
	head := r.Head
	if r.GroupBy == v1alpha1.GroupBySourceCommit {
		if m.published == nil || m.published.PullRequest == nil {
			return
		}
		head = m.published.PullRequest.Head
	}
	wave := r.Wave(e.Pipeline.Metadata.Labels)
	key := groupKey(to.Git, head)
	if wave >= 0 {
		key = v1alpha1.TrainKey(to.Git)
	}
	m.unit = key
	u := all.units[key]
	if u == nil {
		u = &unit{key: key, url: to.Git.URL, branch: to.Git.Branch}
		if wave >= 0 {
			u.waves, u.label = r.Waves, r.Label
			for _, name := range r.Waves.Order {
				u.groups = append(u.groups, newGroup(to, r.HeadOf(to.Git, name), name))
			}
		} else {
			u.groups = []*group{newGroup(to, head, groupName(e, to.Git))}
		}
		all.units[key] = u
	} else if wave >= 0 {
		u.waves = combineWaves(u.waves, r.Waves)
	}
	g := u.groups[max(0, wave)]
	g.head, g.key, m.head = head, groupKey(to.Git, head), head
	all.groups[g.key] = g
	all.sharing[g.key] = append(all.sharing[g.key], m)
	g.members = append(g.members, m)
}

func newGroup(to v1alpha1.Publish, head, name string) *group {
	return &group{head: head, name: name, key: groupKey(to.Git, head), to: to}
}

// isShared reports whether a unit has pipelines of several namespaces.
func (u *unit) isShared() bool {
	var first *member
	for _, g := range u.groups {
		for i := range g.members {
			if first == nil {
				first = &g.members[i]
			}
			if v1alpha1.NamespaceOf(g.members[i].key) != v1alpha1.NamespaceOf(first.key) {
				return true
			}
		}
	}
	return false
}

// groupName is what a group is of. It follows from the head, so that whichever pipeline comes first is not named to those who share it.
func groupName(e catalog.Entry, to *v1alpha1.GitPublish) string {
	r := to.PullRequest
	if r.Head != r.DefaultHead(to, e.Pipeline) {
		return strings.TrimPrefix(r.Head, "prerig/")
	}
	switch r.GroupBy {
	case v1alpha1.GroupByNamespace:
		return e.Pipeline.Metadata.Namespace
	case v1alpha1.GroupByLabel:
		return e.Pipeline.Metadata.Labels[r.Label]
	case v1alpha1.GroupByPipeline:
		return e.Key
	default:
		return strings.TrimPrefix(r.Head, "prerig/")
	}
}

// isActive reports whether Prerig has anything to decide about a unit: people merge groups that are Manual and not
// waves, unless they were promoted.
func (u *unit) isActive(s *status.Store) bool {
	if u.waves != nil || u.groups[0].policy.asked {
		return true
	}
	return s.Group(u.groups[0].key).Promoted != nil
}

// quietFor is how long no job of a group must have run: the jobs of one event are requested one after another.
const quietFor = 3 * time.Second

// knownStage returns what this process knows of a group without asking anybody.
func (g *group) knownStage(known status.Group, pending map[string]bool, now time.Time) Stage {
	s := Stage{Name: g.name, Head: g.head, Merge: g.policy.merge, When: g.policy.when, Differ: g.policy.differ, Known: known}
	running := 0
	for _, m := range g.members {
		waits := m.addToStage(&s, known.Landed)
		s.Unsettled = s.Unsettled || m.isUnsettled(known.Landed) && !pending[m.key]
		if pending[m.key] || m.isRecent(now) || m.state.Seen.Outcome == "" && !m.control.Suspended {
			running++
		}
		if c := m.state.Condition(); c != nil && c.Status != "True" && !m.state.IsDrifted() && !m.control.Suspended && s.Failing == "" && g.isStoppedBy(c.Reason) {
			s.Failing = m.key
		}
		if waits && m.control.Suspended && s.OnHold == "" {
			s.OnHold = m.key
		}
		if m.control.OnHold != nil && s.Held == "" {
			s.Held = m.key
		}
	}
	if running > 0 && s.Busy == "" {
		s.Busy = fmt.Sprintf("%s under way", status.Count(running, "run"))
	}
	return s
}

// isStoppedBy reports whether a pipeline that is not ready for a reason stops its group. A failure to read or
// write, such as an expired secret, does not stop pipelines of other namespaces: no result of it is in the pull
// request.
func (g *group) isStoppedBy(reason string) bool {
	return !g.isShared || reason != v1alpha1.ReasonSourceFailed && reason != v1alpha1.ReasonPublishFailed
}

func (m *member) isRecent(now time.Time) bool {
	last := m.state.Status.LastRun
	return last != nil && now.Sub(last.Finished.Time) < quietFor && now.After(last.Finished.Add(-time.Minute))
}

// isUnsettled reports whether a pipeline has not looked yet at what became of its result, which was merged.
func (m *member) isUnsettled(landed *status.Landed) bool {
	if m.published == nil || m.published.PullRequest == nil || landed == nil {
		return false
	}
	pr := m.published.PullRequest
	return pr.State != v1alpha1.PullRequestClosed && pr.Number > 0 && pr.Number <= landed.Number
}

// addToStage adds what waits of a member to its stage.
func (m *member) addToStage(s *Stage, landed *status.Landed) (waits bool) {
	if m.published == nil {
		return false
	}
	runs, result := ParseVersions(m.published.IstioBefore), ParseVersions(m.published.Istio)
	pr := m.published.PullRequest
	switch {
	case pr == nil:
		runs = result
	case pr.State == v1alpha1.PullRequestClosed:
		s.Declined++
		result = runs
	case m.isUnsettled(landed):
		s.Busy = "what was merged is being read"
		runs = result
	default:
		waits = true
		s.Waits++
		s.Edited = s.Edited || pr.State == v1alpha1.PullRequestEdited
		if pr.HeadCommit != "" && !slices.Contains(s.HeadCommits, pr.HeadCommit) {
			s.HeadCommits = append(s.HeadCommits, pr.HeadCommit)
		}
	}
	s.Runs, s.Proposed = s.Runs.unionOfVersions(runs), s.Proposed.unionOfVersions(result)
	return waits
}

// stageSignature returns a value that stays equal as long as the stage has not changed in this process.
func (s *Stage) stageSignature() string {
	return fmt.Sprintf("%s %d %d %q %q %q %q %q %t %v", s.Head, s.Waits, s.Declined, s.Busy, s.Failing, s.OnHold, s.Held, s.HeadCommits, s.Edited, s.Known.Promoted)
}
