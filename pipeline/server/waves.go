// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package server

import (
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
