// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promote

import (
	"context"
)

// Promoted is what a request to promote has changed.
type Promoted struct {
	// Released were on hold. Groups are the heads that go on whatever the policies wait for.
	Released, Groups []string
}

// Promote ends the hold of pipelines, and lets the groups that wait with results of them go on as they are now: what is open is merged,
// and what waits for its turn is opened. The host's own rules hold all the same.
func (p *Promoter) Promote(ctx context.Context, pipelines []string, by string, may func(pipeline string) error) (done Promoted, err error) {
	if done.Released, err = p.Release(ctx, pipelines); err != nil {
		return done, err
	}
	p.Wake()
	return done, nil
}

// Promotion is what goes on of a group, or of waves that go one after another.
type Promotion struct {
	// URL and Branch are where it goes to.
	URL    string `json:"url"`
	Branch string `json:"branch"`
	// Waves says that the stages go one after another, and Label by which label they are told apart.
	Waves bool   `json:"waves,omitempty"`
	Label string `json:"label,omitempty"`
	// Revision is the source that a train of waves carries; Stopped why it goes no further.
	Revision string `json:"revision,omitempty"`
	Stopped  string `json:"stopped,omitempty"`
	// Stages are the groups, waves in their order.
	Stages []StageStatus `json:"stages"`
}

// Promotions returns what goes on of pipelines that may be told of.
func (p *Promoter) Promotions(may func(pipeline string) bool) []Promotion { return nil }
