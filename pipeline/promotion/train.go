// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

// TurnsOf returns whose turn it is among waves, according to the store. It is called by publishers, in any process.
func TurnsOf(store *status.Store) publish.Turns {
	return func(ctx context.Context, to *v1alpha1.GitPublish, head, revision string) (publish.Turn, error) {
		key := v1alpha1.TrainKey(to)
		var train status.Train
		turn := publish.Turn{}
		err := store.ChangeTrain(ctx, key, func(t *status.Train) bool {
			changed := false
			turn.Held, changed = admitToTrain(t, revision, time.Now())
			train = *t
			return changed
		})
		turn.Open = slices.Contains(train.Open, head)
		turn.Message = "as others come first"
		return turn, err
	}
}

// admitToTrain adds a revision to a train, or starts the next train with it, and otherwise returns why it has to wait.
// Once a wave is merged, another revision waits until the last one is, so that no wave gets what the previous ones
// have not had; a stopped train yields to the next.
func admitToTrain(t *status.Train, revision string, now time.Time) (held string, changed bool) {
	switch {
	case revision == "" || t.Revision == revision:
		return "", false
	case t.Revision != "" && t.Closed && t.Stopped == "":
		changed, t.Held = !t.Held, true
		return fmt.Sprintf("waits for the rollout of %s to finish", shortRevision(t.Revision)), changed
	case t.Revision == "" || t.Closed:
		*t = status.Train{Started: now.UTC(), Held: t.Held}
	}
	t.Revision, t.Stopped, t.Told = revision, "", nil
	return "", true
}

// shortRevision returns the abbreviated commit or digest of a revision.
func shortRevision(revision string) string {
	return fmt.Sprintf("%.12s", revision[strings.LastIndexByte(revision, ':')+1:])
}

// maxLooked bounds how many revisions of a train are remembered.
const maxLooked = 20

// isUnseen reports whether the waves carry a revision that not all of their pipelines were asked to look at: each
// polls its source independently, and one of an earlier wave that has not done so has no waiting result.
func (s *step) isUnseen() bool {
	return s.u.waves != nil && s.train.Revision != "" && !slices.Contains(s.train.Looked, s.train.Revision)
}

// showRevision makes all pipelines of the waves check their sources. Those that have to run are under way when it
// returns; no pull request is opened or merged before.
func (s *step) showRevision(ctx context.Context) error {
	for _, g := range s.u.groups {
		if err := s.p.settleWaitingPipelines(ctx, g, "the waves carry another revision"); err != nil {
			return err
		}
	}
	err := s.p.Store.ChangeTrain(ctx, s.u.key, func(t *status.Train) bool {
		if !t.Started.Equal(s.train.Started) {
			return false
		}
		t.Looked = append(t.Looked, s.train.Revision)
		t.Looked = t.Looked[max(0, len(t.Looked)-maxLooked):]
		return true
	})
	s.p.Wake()
	return err
}

// moveTrain opens the waves whose turn it is, and ends the train after the last.
func (s *step) moveTrain(ctx context.Context, verdicts []Verdict) error {
	var told status.Text
	over := true
	var open []string
	for i, v := range verdicts {
		stage := &s.stages[i]
		if v.State == StageStopped && told == nil {
			told = append(status.Plain(stage.Name), v.Told.After(": ").Of(stage.Head)...)
		}
		if v.Open || stage.Waits == 0 && slices.Contains(s.train.Open, stage.Head) {
			open = append(open, stage.Head)
		}
		done := v.State == StageDone || v.State == StageIdle
		over = over && done && stage.Waits == 0 && stage.Busy == "" && stage.Failing == ""
	}
	held := false
	err := s.p.Store.ChangeTrain(ctx, s.u.key, func(t *status.Train) bool {
		if t.Revision != s.train.Revision || !t.Started.Equal(s.train.Started) {
			open = nil // another one has begun meanwhile
			return false
		}
		if over {
			held = t.Held
			was := t.Revision
			*t = status.Train{Held: held} // until all that was held was asked for
			return was != ""
		}
		stopped := told.String()
		if t.Stopped == stopped && slices.Equal(t.Told, told) && slices.Equal(t.Open, open) {
			return false
		}
		t.Stopped, t.Told, t.Open = stopped, told, open
		return true
	})
	if err != nil {
		return err
	}
	if over && held {
		return s.p.runHeldPipelines(ctx, s.u)
	}
	for i := range verdicts {
		g := s.u.groups[i]
		request := s.stages[i].Request
		isOpen := request != nil && request.State == "Open"
		if s.stages[i].Waits == 0 || isOpen == slices.Contains(open, g.head) || s.stages[i].Declined > 0 {
			continue
		}
		err := s.p.withMemberCredentials(ctx, g, func(a asker) error {
			_, err := s.p.Targets.Look(ctx, a.namespace, a.to, g.head)
			return err
		})
		if err != nil {
			return err
		}
		if err := s.p.settleWaitingPipelines(ctx, g, "it is the turn of its wave"); err != nil {
			return err
		}
	}
	return nil
}

// settleWaitingPipelines has the pipelines of a group look at what became of what waits.
func (p *Promoter) settleWaitingPipelines(ctx context.Context, g *group, reason string) error {
	if p.Consider == nil {
		return nil
	}
	var keys []string
	for _, m := range g.members {
		keys = append(keys, m.key)
	}
	return p.Consider(ctx, keys, reason)
}

// runHeldPipelines runs all pipelines of the waves whose results had to wait. Then no result is held, unless the next
// train has begun: after that one they are asked once more.
func (p *Promoter) runHeldPipelines(ctx context.Context, u *unit) error {
	for _, g := range u.groups {
		if err := p.settleWaitingPipelines(ctx, g, "the waves before are through"); err != nil {
			return err
		}
	}
	return p.Store.ChangeTrain(ctx, u.key, func(t *status.Train) bool {
		was := t.Held
		t.Held = t.Held && t.Revision != ""
		return was != t.Held
	})
}
