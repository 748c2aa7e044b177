// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package promotion

import (
	"context"
	"errors"
	"fmt"

	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/publish"
)

// Hold stops pipelines from publishing, and keeps Prerig from merging what waits of them.
func (p *Promoter) Hold(ctx context.Context, pipelines []string, by, reason string) error {
	hold := &status.OnHold{Since: p.now().UTC(), By: by, Reason: status.OneLine(reason)}
	for _, key := range pipelines {
		err := p.Store.SetControl(ctx, key, func(c *status.Control) {
			if c.OnHold == nil || c.OnHold.Rollback == "" {
				c.OnHold = hold // that of a rollback is more specific
			}
		})
		if err != nil {
			return fmt.Errorf("putting %s on hold: %w", key, err)
		}
	}
	p.Wake()
	return nil
}

// Release ends the hold of pipelines, and returns those that were on hold. They must run again, as a rollback has
// left what is published behind the last render, which is not detected otherwise: the token of that request is
// stored together with the end of the hold.
func (p *Promoter) Release(ctx context.Context, pipelines []string, token string) (held []string, err error) {
	for _, key := range pipelines {
		was := false
		err := p.Store.SetControl(ctx, key, func(c *status.Control) {
			if was = c.OnHold != nil; was {
				c.OnHold, c.RequestedAt, c.Force = nil, token, true
			}
		})
		if err != nil {
			return held, fmt.Errorf("releasing %s: %w", key, err)
		}
		if was {
			held = append(held, key)
		}
	}
	return held, p.rollbacks().cancel(ctx, held)
}

// ErrRolledBack is about a pipeline that was rolled back already.
var ErrRolledBack = errors.New("it was rolled back already and is on hold; name the commit to go back further, or promote it first")

// Rollback reverts the last publish of pipelines, or the named commit, wherever they publish to with Git. All
// pipelines that it had changed are put on hold, and may is called for each of them first.
func (p *Promoter) Rollback(ctx context.Context, pipelines []string, commit, by string, may func(pipeline string) error) ([]status.Rollback, error) {
	asked, err := p.rollbacks().findAll(ctx, pipelines, commit, by, may)
	if err != nil {
		return nil, err
	}
	for i, one := range asked {
		done, err := p.rollbacks().begin(ctx, one)
		if err != nil && done.ID == "" {
			return nil, err
		}
		asked[i] = done
		if err != nil {
			asked[i].Message = err.Error() // it is tried again
		}
	}
	p.Wake()
	return asked, nil
}

// RollbackPlan is what a rollback would do.
type RollbackPlan struct {
	status.Rollback
	// Subject is the first line of the commit. Diff is what would change, or nil if the rollback would be rejected,
	// as Message explains.
	Subject string       `json:"subject,omitempty"`
	Diff    *status.Diff `json:"diff,omitempty"`
}

// PlanRollback returns what Rollback would do, without doing it.
func (p *Promoter) PlanRollback(ctx context.Context, pipelines []string, commit string, may func(pipeline string) error) ([]RollbackPlan, error) {
	asked, err := p.rollbacks().findAll(ctx, pipelines, commit, "", may)
	if err != nil {
		return nil, err
	}
	plans := make([]RollbackPlan, len(asked))
	for i, one := range asked {
		e, to := p.rollbacks().entryOf(one)
		if to == nil {
			return nil, fmt.Errorf("rolling back %s: it was changed meanwhile", one.Pipeline)
		}
		plans[i].Rollback = one
		plans[i].Subject, plans[i].Diff, err = p.Targets.PreviewRollback(ctx, e.Pipeline.Metadata.Namespace, *to, one.Commit)
		switch {
		case errors.Is(err, publish.ErrChangedSince):
			plans[i].State, plans[i].Message = status.RollbackRefused, err.Error()
		case err != nil:
			return nil, fmt.Errorf("rolling back %s: %w", one.Pipeline, err)
		default:
			plans[i].Files = len(plans[i].Diff.Files) + plans[i].Diff.LeftOut
		}
	}
	return plans, nil
}
