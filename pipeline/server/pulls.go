// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/promotion"
)

// pullsData is the page of what is published by pull request.
type pullsData struct {
	Lanes []lane
	// Promotions are waves, stages that go one after another, and what is or was taken back.
	Promotions Promotions
	// Rails are the waves.
	Rails []rail
	// Previews are pull requests to sources, of which MorePreviews are left out.
	Previews     []Preview
	MorePreviews int
	// Waiting and Stopped count pull requests, Turn those that are not opened yet.
	Waiting, Turn, Stopped int
	LeftOut                int
}

// eventStreamPath implements livePage.
func (pullsData) eventStreamPath() string { return "/events" }

// lane is a branch that is published to by pull request, with the stages on the way to it from left to right.
type lane struct {
	Repository, Branch string
	Stages             []stage
	worst              int
}

// stage is a step on the way to a branch.
type stage struct {
	Name, Explanation string
	Pulls             []*pullData
	// Pipelines lists the first of the N pipelines that no pull request represents.
	Pipelines []row
	N         int
}

// The stages, from left to right.
const (
	stageRender = iota
	stageTurn
	stageReview
	stageStopped
	stageMerged
)

var stageTexts = []struct{ name, explanation string }{
	{"To be rendered", "the last render failed, or has not run yet"},
	{"Waits for its turn", "earlier waves come first"},
	{"In review", "waiting to be merged"},
	{"Stopped by a person", "closed, or with commits of a person"},
	{"Merged", "nothing is waiting"},
}

// pullData is a pull request with the pipelines whose results it holds.
type pullData struct {
	v1alpha1.PullRequestStatus
	Pipelines []row
	N         int
	// Authors wrote the commits of the sources that it was rendered from.
	Authors []string
}

// Bounds of the page: the lanes, and in each what is listed of a kind.
const (
	maxLanes    = 50
	maxPulls    = 50
	maxListed   = 10
	maxAuthors  = 3
	unknownTime = 1 << 62
)

// pullsPage shows pull requests as stages.
func (h *pageHandler) pullsPage(w http.ResponseWriter, r *http.Request) {
	data := pullsData{}
	lanes := map[string]*lane{}
	pulls := map[string]*pullData{}
	rows := h.views.visibleRows(requestPrincipal(r), true)
	for _, p := range rows {
		if p.entry.Err != nil {
			continue
		}
		for _, to := range p.entry.Pipeline.Spec.Publish {
			if to.Git != nil && to.Git.PullRequest != nil {
				data.placeInStage(lanes, pulls, p, to)
			}
		}
	}
	for _, l := range lanes {
		l.sortLongestWaiting()
		data.Lanes = append(data.Lanes, *l)
	}
	slices.SortFunc(data.Lanes, func(a, b lane) int {
		return cmp.Or(cmp.Compare(b.worst, a.worst), strings.Compare(a.Repository, b.Repository), strings.Compare(a.Branch, b.Branch))
	})
	if len(data.Lanes) > maxLanes {
		data.Lanes, data.LeftOut = data.Lanes[:maxLanes], len(data.Lanes)-maxLanes
	}
	data.Promotions = h.wavesAndRollbacks(r)
	data.Rails = h.railsFor(r, data.Promotions.Promotions, rows)
	for _, one := range data.Promotions.Rollbacks {
		if one.State == status.RollbackOpen {
			data.Waiting++
		}
	}
	data.Previews = h.views.previewsFor(requestPrincipal(r))
	data.MorePreviews = max(0, len(data.Previews)-shownPreviews)
	data.Previews = data.Previews[:len(data.Previews)-data.MorePreviews]
	h.pages.writePage(w, r, "pulls", "Pull requests", data)
}

// placeInStage puts what a pipeline publishes to a branch into the stage that it is in.
func (d *pullsData) placeInStage(lanes map[string]*lane, pulls map[string]*pullData, p row, to v1alpha1.Publish) {
	branch := strings.TrimPrefix(to.Git.Reference(), "refs/heads/")
	key := to.Git.URL + " " + branch
	l := lanes[key]
	if l == nil {
		l = &lane{Repository: to.Git.URL, Branch: branch}
		for _, text := range stageTexts {
			l.Stages = append(l.Stages, stage{Name: text.name, Explanation: text.explanation})
		}
		lanes[key] = l
	}
	published := publishedTo(p.Pipeline, to)
	if isBad(p.State) || published == nil {
		l.Stages[stageRender].addUnrepresentedPipeline(p)
	}
	switch {
	case published == nil:
	case published.PullRequest == nil:
		l.Stages[stageMerged].addUnrepresentedPipeline(p)
	default:
		at := stageStopped
		switch published.PullRequest.State {
		case v1alpha1.PullRequestOpen:
			at = stageReview
		case v1alpha1.PullRequestWaiting:
			at = stageTurn
		}
		d.addPull(&l.Stages[at], pulls, key, p, published.PullRequest)
	}
}

// addPull adds a pipeline to its pull request.
func (d *pullsData) addPull(at *stage, pulls map[string]*pullData, lane string, p row, pull *v1alpha1.PullRequestStatus) {
	key := strings.Join([]string{lane, pull.Head, strconv.FormatInt(pull.Number, 10), pull.State}, " ")
	one := pulls[key]
	if one == nil {
		one = &pullData{PullRequestStatus: *pull}
		pulls[key] = one
		at.Pulls = append(at.Pulls, one)
		switch pull.State {
		case v1alpha1.PullRequestOpen:
			d.Waiting++
		case v1alpha1.PullRequestWaiting:
			d.Turn++
			one.Number, one.URL = 0, "" // it has none yet
		default:
			d.Stopped++
		}
	}
	if one.N++; len(one.Pipelines) < maxListed {
		one.Pipelines = append(one.Pipelines, p)
	}
	if last := p.Status.LastRun; last != nil && last.Author != "" && !slices.Contains(one.Authors, last.Author) && len(one.Authors) < maxAuthors {
		one.Authors = append(one.Authors, last.Author)
	}
}

// addUnrepresentedPipeline adds a pipeline that no pull request represents.
func (t *stage) addUnrepresentedPipeline(p row) {
	if t.N++; len(t.Pipelines) < maxListed {
		t.Pipelines = append(t.Pipelines, p)
	}
}

// sortLongestWaiting sorts what waits, the longest first.
func (l *lane) sortLongestWaiting() {
	for i := range l.Stages {
		t := &l.Stages[i]
		slices.SortStableFunc(t.Pulls, func(a, b *pullData) int {
			return cmp.Or(cmp.Compare(waitingSinceUnix(a), waitingSinceUnix(b)), cmp.Compare(a.Number, b.Number))
		})
		for _, one := range t.Pulls {
			t.N += one.N
		}
		t.Pulls = t.Pulls[:min(len(t.Pulls), maxPulls)]
	}
	l.worst = len(l.Stages[stageStopped].Pulls)*2 + len(l.Stages[stageReview].Pulls)
}

func waitingSinceUnix(p *pullData) int64 {
	if p.Since.IsZero() {
		return unknownTime
	}
	return p.Since.Truncate(time.Second).Unix()
}

// Left is how many pipelines are not listed.
func (t stage) Left() int {
	n := t.N - len(t.Pipelines)
	for _, one := range t.Pulls {
		n -= one.N
	}
	return max(0, n)
}

// Left is how many pipelines are not listed.
func (p pullData) Left() int { return p.N - len(p.Pipelines) }

// shownRollbacks is how many rollbacks the page shows.
const shownRollbacks = 20

// wavesAndRollbacks returns the waves and rollbacks in progress that the requester may see, or none if they cannot
// be read.
func (h *pageHandler) wavesAndRollbacks(r *http.Request) Promotions {
	if err := h.views.store.Sync(r.Context()); err != nil {
		h.log.Warn("the page shows no waves", "error", err)
		return Promotions{}
	}
	return h.promotions.promotionsFor(requestPrincipal(r)).limitedForPage()
}

// limitedForPage returns what the page shows of promotions: waves, those that go no further first, and the newest
// rollbacks.
func (p Promotions) limitedForPage() Promotions {
	p.Promotions = slices.DeleteFunc(p.Promotions, func(one promotion.Promotion) bool { return !one.Waves })
	slices.SortStableFunc(p.Promotions, func(a, b promotion.Promotion) int { return min(1, len(b.Stopped)) - min(1, len(a.Stopped)) })
	p.Promotions = p.Promotions[:min(len(p.Promotions), maxLanes)]
	p.Rollbacks = p.Rollbacks[:min(len(p.Rollbacks), shownRollbacks)]
	return p
}
