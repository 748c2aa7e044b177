// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/prerig/prerig/fn/foreign"
	"github.com/prerig/prerig/pipeline/api/v1alpha1"
	"github.com/prerig/prerig/pipeline/build"
	"github.com/prerig/prerig/pipeline/daemon/catalog"
	"github.com/prerig/prerig/pipeline/daemon/queue"
	"github.com/prerig/prerig/pipeline/daemon/status"
	"github.com/prerig/prerig/pipeline/internal/process/watchdog"
	"github.com/prerig/prerig/pipeline/publish"
)

// readBranches returns what the target branches have of a pipeline now, and the targets whose branch has the last
// result.
func (r *Runner) readBranches(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	state *status.State,
	since time.Time,
) (*status.OnBranch, map[string]bool, error) {
	type found struct {
		onBranch *status.OnBranch
		holding  map[string]bool
	}
	step := watchdog.Step{Name: watchdog.StepPublish, Subject: p.Key(), Limit: driftTimeout}
	got, err := watchdog.Run(ctx, r.Watchdog, step, func(ctx context.Context) (found, error) {
		decided := map[string]bool{}
		for _, d := range state.Mesh.Decided {
			for _, name := range d.Workloads {
				decided[name] = true
			}
		}
		out := found{&status.OnBranch{Revisions: map[string]string{}}, map[string]bool{}}
		versions := map[string]string{}
		for _, to := range p.Spec.Publish {
			head, err := r.Targets.ReadHead(ctx, p, to, state, since)
			if err != nil {
				return found{}, fmt.Errorf("reading %s: %w", to.Target(), err)
			}
			proxies, err := head.Proxies(func(name string) bool { return decided[name] })
			if err != nil {
				return found{}, fmt.Errorf("reading %s: %w", to.Target(), err)
			}
			out.onBranch.Revisions[to.Target()], out.holding[to.Target()] = head.Commit, head.HasResult
			for name, version := range proxies {
				if _, known := versions[name]; !known {
					versions[name] = version
				}
			}
		}
		out.onBranch.Proxies = proxiesOf(versions)
		return out, nil
	})
	return got.onBranch, got.holding, err
}

// proxiesOf groups workloads by the versions of their proxies.
func proxiesOf(versions map[string]string) []status.Proxies {
	var out []status.Proxies
	for n, name := range slices.Sorted(maps.Keys(versions)) {
		i := slices.IndexFunc(out, func(p status.Proxies) bool { return p.Version == versions[name] })
		if i < 0 {
			i, out = len(out), append(out, status.Proxies{Version: versions[name]})
		}
		if n < maxWorkloads {
			out[i].Workloads = append(out[i].Workloads, foreign.Line(name, maxWorkloadName))
		} else {
			out[i].More++
		}
	}
	return out
}

// isMerged reports whether the target branches have all of the result.
func (t targetResults) isMerged(p *v1alpha1.RenderPipeline, built *build.Built) bool {
	if len(t) < len(p.Spec.Publish) || built.UnitError() != nil {
		return false
	}
	return !slices.ContainsFunc(t, func(t targetResult) bool {
		return t.err != nil || t.receipt.Held != "" || t.published.PullRequest != nil
	})
}

// recordBranches records what the target branches have after a run that has rendered; before is what they had before
// it, for branches that cannot be read.
func (a *attempt) recordBranches(ctx context.Context, before []status.Proxies, stage *StageError) {
	if a.built == nil || a.built.Response == nil {
		return
	}
	if a.published.isMerged(a.p, a.built) {
		a.state.Mesh.OnBranch = nil
		return
	}
	a.state.Mesh.OnBranch = &status.OnBranch{Proxies: before}
	if stage == nil || stage.Stage != status.StagePublish {
		a.refreshBranches(ctx, "")
	}
}

// refreshBranches reads the target branches again; drift is how they differ from what was published. Where they cannot
// be read, what was known of them stays.
func (a *attempt) refreshBranches(ctx context.Context, drift string) {
	if a.state.Mesh == nil {
		return
	}
	now, _, err := a.r.readBranches(ctx, a.p, a.state, a.started)
	if err != nil {
		if !errors.Is(err, publish.ErrNoBranch) {
			a.log.Warn("the target branches could not be read", "error", err)
		}
		return
	}
	now.Drift = drift
	a.state.Mesh.OnBranch = now
}

// settleBranches brings what is known of the target branches up to date after people have merged or closed what waited.
func (a *attempt) settleBranches(ctx context.Context) {
	switch {
	case a.state.Mesh == nil || !a.settled.changed:
	case a.state.WaitsForMerge():
		a.refreshBranches(ctx, "")
	default:
		a.state.Mesh.OnBranch = nil
	}
}

// lookWhileStopped is a run of a pipeline that publishes nothing at present: it reads what the target branches have, as
// rollbacks and people change them, and which waiting results are merged.
func (r *Runner) lookWhileStopped(
	ctx context.Context,
	e catalog.Entry,
	job queue.Job,
	state *status.State,
	revision uint64,
	control status.Control,
) error {
	asked := state.Asked(e.Pipeline, control)
	changed := state.NoteRequests(e.Pipeline, control)
	if job.Drift || asked {
		read, err := r.readWhileStopped(ctx, e.Pipeline, state)
		if err != nil {
			r.Log.Warn("the target branches could not be read", "pipeline", e.Key, "error", err)
		}
		changed = changed || read
	}
	if !changed {
		return nil
	}
	if _, err := r.Store.Save(ctx, e.Key, state, revision); err != nil {
		return &queue.RetryError{After: time.Second, Err: err}
	}
	return nil
}

// readWhileStopped reports whether it has changed the state.
func (r *Runner) readWhileStopped(
	ctx context.Context,
	p *v1alpha1.RenderPipeline,
	state *status.State,
) (changed bool, err error) {
	if state.Mesh == nil || len(state.Status.Published) == 0 {
		return false, nil
	}
	since := time.Now()
	now, holding, err := r.readBranches(ctx, p, state, since)
	if errors.Is(err, publish.ErrNoBranch) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	state.Status.Published = slices.Clone(state.Status.Published)
	for i := range state.Status.Published {
		if one := &state.Status.Published[i]; one.PullRequest != nil && holding[one.Target] {
			one.PullRequest, changed = nil, true
		}
	}
	if now.Drift, err = publish.FindDrift(ctx, r.Targets, p, state, since, 0); err != nil {
		return changed, err
	}
	if now.Drift == "" && !state.WaitsForMerge() {
		now = nil
	}
	mesh := *state.Mesh
	if mesh.OnBranch, changed = now, changed || !reflect.DeepEqual(mesh.OnBranch, now); changed {
		state.Mesh = &mesh
	}
	return changed, nil
}
